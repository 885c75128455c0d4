// The models: files that are fetched when they are needed, and what the engine has made of them.

import { unpack } from "./unpack.js";

const MOST = 8; // networks that are kept ready

export class Models {
  #engine;
  #load;
  #files = new Map(); // from a name to a promise of its bytes
  #networks = new Map(); // from file and sigma to what was made, the oldest first
  #eye = null;

  /** `load(name)` gives a model file. */
  constructor(engine, load) {
    this.#engine = engine;
    this.#load = load;
  }

  /** What looks at an image. */
  eye() {
    this.#eye ??= this.#file("eye").then((bytes) => this.#engine.make(bytes, true));
    this.#eye.catch(() => {
      this.#eye = null;
    });
    return this.#eye;
  }

  /** The network of a quality for white noise, whose handle is good until the next eight. */
  async network(quality, channels, sigma) {
    const name = `${channels === 1 ? "gray" : "color"}${quality === "best" ? "-plus" : ""}`;
    const key = `${name} ${sigma}`;
    const made = this.#networks.get(key) ?? (await this.#make(name, sigma));
    this.#networks.delete(key);
    this.#networks.set(key, made); // the newest comes last
    for (const [old, { memory }] of this.#networks) {
      if (this.#networks.size <= MOST) break;
      this.#networks.delete(old);
      this.#engine.heap.give(memory);
    }
    return made.handle;
  }

  async #make(name, sigma) {
    return this.#engine.makeAt(await this.#file(name), sigma);
  }

  #file(name) {
    if (!this.#files.has(name)) {
      const bytes = this.#load(name).then(unpack);
      bytes.catch(() => this.#files.delete(name)); // so that it can be tried again
      this.#files.set(name, bytes);
    }
    return this.#files.get(name);
  }
}
