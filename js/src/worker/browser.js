// A worker in a browser: the leader, or one that helps.

import { Helper } from "./helper.js";
import { Leader } from "./leader.js";

const post = (message, transferred = []) => self.postMessage(message, transferred);

async function load(name) {
  const answer = await fetch(new URL(`../../models/${name}.nlnet`, import.meta.url));
  if (!answer.ok) throw new Error(`The model cannot be loaded (${answer.status}).`);
  return new Uint8Array(await answer.arrayBuffer());
}

const tell = ({ message }) => post({ type: "broken", message });
const worker = self.name === "helper" ? new Helper(post) : new Leader(post, load);
self.onmessage = ({ data }) => worker.receive(data).catch(tell);
