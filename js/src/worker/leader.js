// The worker that is asked: it holds the images, calls the engine, and calls the other workers to help.

import { Engine } from "../shared/engine.js";
import { makeMemory } from "../shared/memory.js";
import { estimate, takeSample } from "./estimate.js";
import { Models } from "./models.js";
import { remove } from "./remove.js";

const ESTIMATING = 0.1; // the share of a denoising that finding the noise is taken for

/** What a leader is told, and answers: `post(message, transferred)`, `load(name)` as of Models. */
export class Leader {
  #post;
  #load;
  #session = null;
  #tasks = new Map(); // those that are not finished, by number
  #last = Promise.resolve();

  constructor(post, load) {
    this.#post = post;
    this.#load = load;
  }

  async receive({ type, ...message }) {
    if (type === "start") return this.#start(message);
    if (type === "left") return this.#session.crew.left();
    if (type === "cancel") {
      const task = this.#tasks.get(message.number);
      if (task) task.cancelled = true;
      return undefined;
    }
    const task = { cancelled: false, report: () => {} };
    this.#tasks.set(message.number, task);
    this.#last = this.#last.then(() => this.#answer(type, message, task)); // one after the other
    return this.#last;
  }

  /** Make the engine, and stacks for the helpers; `memory` and `turn` are shared, or null. */
  async #start({ module, memory, turn, helpers }) {
    const engine = await Engine.start(module, memory ?? makeMemory(false));
    const crew = new Crew(helpers, (text) => this.#post(text));
    const models = new Models(engine, this.#load);
    this.#session = { engine, crew, turn, threads: helpers + 1, models };
    const stacks = Array.from({ length: helpers }, () => engine.newStack());
    this.#post({ type: "started", stacks });
  }

  async #answer(type, { number, image, options }, task) {
    const began = performance.now();
    task.report = throttled((share) => this.#post({ type: "progress", number, share }));
    try {
      if (task.cancelled) throw new DOMException("The work was stopped.", "AbortError");
      const work = type === "denoise" ? this.#denoise : this.#estimate;
      const answer = await this.#session.engine.within((scope) =>
        work.call(this, scope, image, options, task, number),
      );
      answer.seconds = (performance.now() - began) / 1000;
      const transferred = answer.data ? [answer.data.buffer] : [];
      this.#post({ type: "done", number, answer }, transferred);
    } catch (error) {
      const { name, message } = error;
      this.#post({ type: "failed", number, name, message });
    } finally {
      this.#tasks.delete(number);
    }
  }

  async #estimate(scope, image, { kind }, task) {
    const held = hold(scope, image);
    const taken = takeSample(this.#session.engine, scope, held);
    return { noise: await estimate(this.#session, scope, held, taken, kind, task) };
  }

  async #denoise(scope, image, options, task, number) {
    const { engine } = this.#session;
    const held = hold(scope, image);
    const taken = takeSample(engine, scope, held);
    const { report } = task;
    let noise = options.record;
    if (!noise) {
      task.report = (share) => report(ESTIMATING * share);
      noise = await estimate(this.#session, scope, held, taken, options.kind, task);
      noise = ofStrength(noise, options.sigma);
      task.report = (share) => report(ESTIMATING + (1 - ESTIMATING) * share);
    }
    this.#post({ type: "noise", number, noise });
    const target = scope.copy(image.data); // with its alpha
    if (noise.kind !== "none") {
      await remove(this.#session, scope, held, target, taken, noise, options, task);
    }
    if (held.channels === 1 && noise.kind !== "none") spread(engine.bytes(target, image.data.length));
    return { noise, data: new Uint8ClampedArray(engine.bytes(target, image.data.length)) };
  }
}

/** Camera noise as it was found, but of a standard deviation that is given. */
function ofStrength(noise, sigma) {
  if (sigma === null || noise.kind !== "camera") return noise;
  const factor = Math.fround(sigma / noise.sigma); // as noise/camera.py has it
  const strengths = noise.strengths.map((strength) => strength * factor);
  return { ...noise, strengths, sigma, certainty: 1 };
}

/** An image in the memory of the engine; one whose pixels are all gray has one channel. */
function hold(scope, { data, width, height }) {
  return { at: scope.copy(data), width, height, channels: isGray(data) ? 1 : 3 };
}

function isGray(data) {
  for (let at = 0; at < data.length; at += 4) {
    if (data[at] !== data[at + 1] || data[at] !== data[at + 2]) return false;
  }
  return true;
}

/** Let green and blue be as red. */
function spread(bytes) {
  for (let at = 0; at < bytes.length; at += 4) bytes[at + 1] = bytes[at + 2] = bytes[at];
}

function throttled(report) {
  let told = -1;
  return (share) => {
    if (share - told < 0.01 && share < 1) return;
    told = share;
    report(share);
  };
}

/** The other workers, as the leader sees them. */
class Crew {
  #post;
  #count;
  #away = 0; // helpers that work on the job
  #gone = () => {};

  constructor(count, post) {
    this.#count = count;
    this.#post = post;
  }

  call(job) {
    if (!this.#count) return;
    this.#away = this.#count;
    this.#post({ type: "help", job });
  }

  left() {
    this.#away--;
    if (!this.#away) this.#gone();
  }

  /** Wait until no helper works on the job any more. */
  leave() {
    if (!this.#away) return Promise.resolve();
    return new Promise((resolve) => {
      this.#gone = resolve;
    });
  }
}
