// A worker in Node: the leader, or one that helps.

import { readFile } from "node:fs/promises";
import { parentPort, workerData } from "node:worker_threads";

import { Helper } from "./helper.js";
import { Leader } from "./leader.js";

const post = (message, transferred = []) => parentPort.postMessage(message, transferred);
const load = async (name) =>
  new Uint8Array(await readFile(new URL(`../../models/${name}.nlnet`, import.meta.url)));

const tell = ({ message }) => post({ type: "broken", message });
const worker = workerData === "helper" ? new Helper(post) : new Leader(post, load);
parentPort.on("message", (message) => worker.receive(message).catch(tell));
