// The visible part of the image as the settings would have it, before the whole is computed.

import { part } from "./backend.js";
import { askViewing } from "./pictures.js";

const MOST = 1_600_000; // pixels: a larger part is computed at a smaller size
const MARGIN = 16; // pixels around what is visible, for at its border a part lacks its neighbours

export class Live {
  #viewer;
  #control = null; // what stops the request under way
  #wanted = null; // what is to be asked next
  #finished = () => {};

  /** Settled once there is nothing more to wait for. */
  done = Promise.resolve();

  constructor(viewer) {
    this.#viewer = viewer;
  }

  /** Show the part in view as the settings would have it; of many calls the last one counts. */
  show(photo) {
    if (!photo.before) return;
    this.#wanted = photo;
    if (this.#control) return;
    this.done = new Promise((resolve) => {
      this.#finished = resolve;
    });
    this.#go();
  }

  stop() {
    this.#wanted = null;
    this.#control?.abort();
  }

  async #go() {
    const photo = this.#wanted;
    if (!photo) return this.#finished();
    this.#wanted = null;
    this.#control = new AbortController();
    const { signal } = this.#control;
    try {
      const area = this.#viewer.visiblePart(MARGIN);
      const factor = Math.min(1, this.#viewer.level, Math.sqrt(MOST / (area.width * area.height)));
      const cut = await askViewing("cut", { ...area, factor });
      const file = new File([cut], "part.png", { type: cut.type });
      const blob = await part(photo, file, factor, photo.settings, signal);
      if (!signal.aborted) await this.#viewer.showPart(blob, area);
    } catch {
      // A preview that fails is none: the result follows, or says what is wrong.
    } finally {
      this.#control = null;
      this.#go();
    }
  }
}
