// Strengths up to 1, at once: the visible part of image and result, blended on the screen. Files are
// blended by the back end; this is what they will look like (denoising/strength.py).

import { find } from "./page.js";

const MOST = 4e6; // pixels of a screen with finer ones than CSS has, before that is given up

export class Blending {
  #canvas = find("blend");
  #scratch = document.createElement("canvas");
  #shares = [1, 1]; // of luma and chroma
  #place = null; // where the image is in the view
  #read = null; // the visible pixels of both images, and where they were then
  #key = ""; // stands for the place
  #frame = 0;

  /** Choose how much of the change from image to result is shown. */
  blend(grain, chroma) {
    this.#shares = [Math.min(grain, 1), Math.min(chroma, 1)];
    this.#ask();
  }

  /** Follow the image: { x, y, scale } in CSS pixels, { width, height } in its own, { smooth }. */
  follow(place) {
    const { clientWidth, clientHeight } = find("view");
    const key = JSON.stringify([place, clientWidth, clientHeight, devicePixelRatio]);
    if (key !== this.#key) this.#read = null;
    this.#key = key;
    this.#place = place;
    this.#ask();
  }

  /** One of the images is another one. */
  renew() {
    this.#read = null;
    this.#ask();
  }

  /** Draw once, however often it is asked for before the next frame. */
  #ask() {
    const off = this.#shares.every((share) => share === 1) || find("after-layer").hidden;
    this.#canvas.hidden = off;
    find("after").classList.toggle("blended", !off);
    cancelAnimationFrame(this.#frame);
    delete this.#canvas.dataset.drawn; // until it shows what was asked for
    if (!off && this.#place) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#read ??= this.#readBoth();
    if (!this.#read) return;
    const [before, after] = this.#read;
    const blended = mix(before, after, ...this.#shares);
    Object.assign(this.#canvas, { width: blended.width, height: blended.height });
    this.#canvas.getContext("2d").putImageData(blended, 0, 0);
    this.#canvas.dataset.drawn = this.#shares;
  }

  #readBoth() {
    const images = [find("before"), find("after")];
    if (!images.every((image) => image.complete && image.naturalWidth)) return null;
    const { clientWidth, clientHeight } = find("view");
    const fine = clientWidth * clientHeight * devicePixelRatio ** 2 <= MOST;
    const ratio = fine ? devicePixelRatio : 1;
    const width = Math.round(ratio * clientWidth);
    const height = Math.round(ratio * clientHeight);
    if (!width || !height) return null;
    Object.assign(this.#scratch, { width, height });
    const context = this.#scratch.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingEnabled = this.#place.smooth;
    const { x, y, scale } = this.#place;
    const box = [x, y, scale * this.#place.width, scale * this.#place.height];
    return images.map((image) => {
      context.clearRect(0, 0, width, height);
      context.drawImage(image, ...box.map((length) => ratio * length));
      return context.getImageData(0, 0, width, height);
    });
  }
}

/** Image data between two others: luma, the mean of the channels, and the rest have shares. */
function mix(before, after, luma, chroma) {
  const [from, to] = [before.data, after.data];
  const mixed = new ImageData(before.width, before.height);
  const { data } = mixed; // rounds and clips
  for (let at = 0; at < from.length; at += 4) {
    const red = to[at] - from[at];
    const green = to[at + 1] - from[at + 1];
    const blue = to[at + 2] - from[at + 2];
    const common = ((luma - chroma) * (red + green + blue)) / 3;
    data[at] = from[at] + chroma * red + common;
    data[at + 1] = from[at + 1] + chroma * green + common;
    data[at + 2] = from[at + 2] + chroma * blue + common;
    data[at + 3] = to[at + 3];
  }
  return mixed;
}
