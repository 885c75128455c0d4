// The workers: a leader that is asked, and helpers that share its memory where that is possible.

import { makeMemory } from "../shared/memory.js";

const MOST_HELPERS = 15;

export class Team {
  #platform;
  #workers = [];
  #waiting = new Map(); // from the number of a task to what settles it
  #number = 0;

  /** Start the workers; `threads` is how many to use at most. */
  static async start(platform, threads) {
    const reason = platform.obstacle();
    const wanted = Math.min(threads ?? platform.cores(), MOST_HELPERS + 1);
    const count = reason ? 1 : Math.max(1, wanted);
    const shared = count > 1;
    const module = await platform.compile(shared ? "nlnet_engine_threads" : "nlnet_engine");
    const team = new Team(platform, count, shared ? "" : reason);
    await team.#start(module, shared ? makeMemory(true) : null, count - 1);
    return team;
  }

  constructor(platform, threads, reason) {
    this.#platform = platform;
    this.threads = threads;
    this.reason = reason;
  }

  async #start(module, memory, helpers) {
    const turn = helpers ? new Int32Array(new SharedArrayBuffer(4)) : null;
    const told = { type: "start", module, memory, turn };
    const { stacks } = await this.#begin("leader", { ...told, helpers });
    await Promise.all(stacks.map((stack) => this.#begin("helper", { ...told, stack })));
  }

  /** Start a worker, and wait for its first answer. */
  #begin(role, message) {
    return new Promise((resolve, reject) => {
      const fail = (error) => {
        reject(error);
        this.#fail(error);
      };
      const receive = (answer) => {
        if (answer.type === "broken") return fail(new Error(answer.message));
        if (answer.type !== "started") return this.#receive(answer);
        worker.hold?.(false);
        return resolve(answer);
      };
      const worker = this.#platform.start(role, receive, fail);
      this.#workers.push(worker);
      worker.post(message);
    });
  }

  /** Ask for something about an image; what is asked first is answered first. */
  ask(type, { data, width, height, transfer }, options, { signal, onProgress, onNoise }) {
    const [leader] = this.#workers;
    const number = ++this.#number;
    const copy = transfer ? data : new Uint8ClampedArray(data);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = () => {
        leader.post({ type: "cancel", number });
        this.#settle(number, reject, signal.reason);
      };
      const settled = () => signal?.removeEventListener("abort", stop);
      this.#waiting.set(number, { resolve, reject, onProgress, onNoise, settled });
      leader.hold?.(true);
      signal?.addEventListener("abort", stop, { once: true });
      leader.post({ type, number, image: { data: copy, width, height }, options }, [copy.buffer]);
    });
  }

  end() {
    for (const worker of this.#workers.splice(0)) worker.end();
    for (const number of [...this.#waiting.keys()]) {
      this.#settle(number, this.#waiting.get(number).reject, new Error("The workers have ended."));
    }
  }

  #receive({ type, number, share, noise, answer, name, message, job }) {
    const [leader, ...helpers] = this.#workers;
    if (type === "help") for (const helper of helpers) helper.post({ type: "help", job });
    if (type === "left") leader.post({ type: "left" });
    const waiting = this.#waiting.get(number);
    if (!waiting) return; // nobody waits for it any more
    if (type === "progress") waiting.onProgress?.(share);
    if (type === "noise") waiting.onNoise?.(noise);
    if (type === "done") this.#settle(number, waiting.resolve, answer);
    if (type === "failed") this.#settle(number, waiting.reject, errorOf(name, message));
  }

  #settle(number, settle, value) {
    const waiting = this.#waiting.get(number);
    if (!waiting) return;
    this.#waiting.delete(number);
    waiting.settled();
    if (!this.#waiting.size) this.#workers[0]?.hold?.(false);
    settle(value);
  }

  #fail(error) {
    for (const number of [...this.#waiting.keys()]) {
      this.#settle(number, this.#waiting.get(number).reject, error);
    }
  }
}

function errorOf(name, message) {
  if (name === "AbortError") return new DOMException(message, name);
  const kinds = { RangeError, TypeError };
  return Object.assign(new (kinds[name] ?? Error)(message), { name });
}
