// A quick preview: the visible part of the image, while a slider moves.

import { denoise } from "/static/api.js";
import { find } from "/static/page.js";
import { fieldsFor, readSettings } from "/static/settings.js";

const SIDE = 448; // image pixels: a moment's work for the server
const MARGIN = 12; // not shown, for at its border a part is denoised without its neighbours

export class Quick {
  #viewer;
  #control = null; // what stops the request under way
  #wanted = null; // what is to be asked next

  constructor(viewer) {
    this.#viewer = viewer;
  }

  /** Show the part in view as the settings would have it; of many calls the last one counts. */
  show(item) {
    if (!item.before) return;
    this.#wanted = item;
    if (!this.#control) this.#go();
  }

  stop() {
    this.#wanted = null;
    this.#control?.abort();
  }

  async #go() {
    const item = this.#wanted;
    if (!item) return;
    this.#wanted = null;
    this.#control = new AbortController();
    try {
      const part = this.#viewer.region(SIDE);
      const file = await cut(part);
      const result = await denoise(file, this.#fields(item), this.#control.signal, null);
      if (!this.#control.signal.aborted) this.#viewer.showQuick(result.blob, part, MARGIN);
    } catch {
      // A preview that fails is none: the result follows, or says what is wrong.
    } finally {
      this.#control = null;
      this.#go();
    }
  }

  /** The noise is that of the whole image, as far as it is known; the part is shown as PNG. */
  #fields(item) {
    const fields = fieldsFor(item, readSettings());
    const known = item.found && fields.sigma === "auto" && fields.noise !== "poisson";
    if (known && item.found.kind !== "poisson" && item.found.sigma > 0) {
      fields.sigma = item.found.sigma;
      if (item.found.kind === "camera" && fields.noise === "auto") fields.noise = "camera";
    }
    return { ...fields, data_range: "auto", format: "png", preview: "no" };
  }
}

/** A part of the noisy image as a file. */
async function cut({ x, y, width, height }) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  canvas.getContext("2d").drawImage(find("before"), -x, -y);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  return new File([blob], "part.png", { type: "image/png" });
}
