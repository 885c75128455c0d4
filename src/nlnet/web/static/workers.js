// Workers that are asked for something, and answer: both ends.

import { Problem } from "./problem.js";

/** Start a worker; the function that is returned asks it: ask(act, given, transferred). */
export function startWorker(address) {
  const worker = new Worker(address, { type: "module" });
  const waiting = new Map(); // from a number to what settles it
  let number = 0;
  worker.onmessage = ({ data: { number: which, answer, error } }) => {
    const { resolve, reject } = waiting.get(which);
    waiting.delete(which);
    if (error === undefined) resolve(answer);
    else reject(new Problem(error));
  };
  return (act, given, transferred = []) =>
    new Promise((resolve, reject) => {
      waiting.set(++number, { resolve, reject });
      worker.postMessage({ number, act, given }, transferred);
    });
}

/** In a worker: answer one question after the other; an act returns [answer, transferred]. */
export function answerWith(acts) {
  let last = Promise.resolve();
  self.onmessage = ({ data: { number, act, given } }) => {
    last = last.then(async () => {
      try {
        const [answer, transferred = []] = await acts[act](given);
        self.postMessage({ number, answer }, transferred);
      } catch (error) {
        self.postMessage({ number, error: error.message });
      }
    });
  };
}
