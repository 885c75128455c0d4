// What the client needs of Node.

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

/** The engine. */
export async function compile(name) {
  return WebAssembly.compile(await readFile(new URL(`../../engine/${name}.wasm`, import.meta.url)));
}

/** Start a worker, which is to call `receive` with its messages and `fail` with its errors. */
export function start(role, receive, fail) {
  const worker = new Worker(new URL("../worker/node.js", import.meta.url), { workerData: role });
  worker.on("message", receive);
  worker.on("error", fail);
  return {
    post: (message, transferred = []) => worker.postMessage(message, transferred),
    end: () => worker.terminate(),
    // A worker that waits for work does not keep the program from ending.
    hold: (held) => (held ? worker.ref() : worker.unref()),
  };
}

export const obstacle = () => "";

export const cores = () => availableParallelism();

export const makeImage = (data, width, height) => ({ data, width, height });
