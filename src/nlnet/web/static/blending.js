// Strengths up to 1, at once: the visible part of image and result, blended on the screen. Files are
// blended by the back end; this is what they will look like (denoising/strength.py).

import { find } from "./page.js";
import { askViewing } from "./pictures.js";

const MOST = 4e6; // pixels of a screen with finer ones than CSS has, before that is given up

export class Blending {
  #canvas = find("blend");
  #shares = [1, 1]; // of luma and chroma
  #place = null; // where the image is in the view
  #drawn = null; // where it was when the canvas was drawn; null: another image
  #drawing = false;
  #again = false; // something has changed since then

  /** Choose how much of the change from image to result is shown. */
  blend(grain, chroma) {
    this.#shares = [Math.min(grain, 1), Math.min(chroma, 1)];
    this.#ask();
  }

  /** Follow the image: { x, y, width, height } in CSS pixels, its { scale }, and { smooth }. */
  follow(place) {
    this.#place = place;
    this.#ask();
  }

  /** Take other images: blobs, { before, after } or one of them. */
  renew(images) {
    askViewing("show", images);
    this.#drawn = null;
    this.#ask();
  }

  get #off() {
    return this.#shares.every((share) => share === 1) || find("after-layer").hidden;
  }

  #ask() {
    delete this.#canvas.dataset.drawn; // until it shows what was asked for
    this.#reveal();
    this.#again = !this.#off && this.#place !== null;
    if (!this.#drawing) this.#draw();
  }

  /** Show what is drawn, moved to where it belongs now. */
  #reveal() {
    const shown = !this.#off && this.#drawn !== null;
    this.#canvas.hidden = !shown;
    find("after").classList.toggle("blended", shown);
    if (!shown) return;
    const zoom = this.#place.scale / this.#drawn.scale;
    const [x, y] = ["x", "y"].map((axis) => this.#place[axis] - zoom * this.#drawn[axis]);
    this.#canvas.style.transform = `translate(${x}px, ${y}px) scale(${zoom})`;
  }

  async #draw() {
    this.#drawing = true;
    while (this.#again) {
      this.#again = false;
      const [place, shares] = [this.#place, this.#shares];
      const bitmap = await this.#blended(place, shares);
      if (!bitmap) continue;
      this.#canvas.getContext("bitmaprenderer").transferFromImageBitmap(bitmap);
      this.#drawn = place;
      this.#reveal();
      if (!this.#again) this.#canvas.dataset.drawn = shares;
    }
    this.#drawing = false;
  }

  /** What the worker draws; null where there is nothing, or the images are others by then. */
  async #blended({ x, y, width, height, smooth }, shares) {
    const { clientWidth, clientHeight } = find("view");
    const fine = clientWidth * clientHeight * devicePixelRatio ** 2 <= MOST;
    const ratio = fine ? devicePixelRatio : 1;
    const size = { width: Math.round(ratio * clientWidth), height: Math.round(ratio * clientHeight) };
    if (!size.width || !size.height) return null;
    const box = [x, y, width, height].map((length) => ratio * length);
    const result = find("after").src;
    const asked = askViewing("blend", { box, ...size, smooth, shares });
    const bitmap = await asked.catch(() => null); // an image that browsers cannot show
    return find("after").src === result ? bitmap : null;
  }
}
