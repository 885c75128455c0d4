// Two images of one size, one over the other, with a boundary to drag; zoom and pan.

import { Blending } from "./blending.js";
import { MOVES, slideTarget, ZOOMS } from "./keys.js";
import { connectLooks } from "./looks.js";
import { find, setBlob } from "./page.js";
import { followPointers } from "./pointers.js";
import { glide } from "./glide.js";
import { drawTools, PIXELS, placeTags } from "./tags.js";

const [LARGEST_FIT, LARGEST] = [8, 32]; // a thumbnail need not fill the screen
const PIXELATED_FROM = 2.5;

const clamp = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));

export class Viewer {
  #view = find("view");
  #before = find("before");
  #after = find("after");
  #handle = find("handle");
  #size = { width: 1, height: 1 }; // of the image, in its pixels
  #scale = 1; // CSS pixels an image pixel
  #x = 0; // where the image's corner is in the view
  #y = 0;
  #fitted = true;
  #part = { x: 0, y: 0, width: 1, height: 1 }; // what was computed first, in image pixels
  #blending = new Blending();
  #split = 50; // percent of the visible image that shows the noisy one

  constructor() {
    new ResizeObserver(() => this.#resized()).observe(this.#view);
    followPointers(this.#view, this.#handle, this);
    connectLooks(this.#view);
    this.#handle.addEventListener("keydown", (event) => this.slideByKey(event));
    this.#view.addEventListener("keydown", (event) => this.moveByKey(event));
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => this.zoom(button.dataset.zoom));
    }
  }

  /** Screen pixels per image pixel. */
  get level() {
    return this.#scale * devicePixelRatio;
  }

  /** Whether the whole image is in view. */
  get fitted() {
    return this.#fitted;
  }

  /** Show a noisy image and no result: all of it, or the place that was seen of one of its size. */
  showBefore(blob, width, height, stretched) {
    const like = width === this.#size.width && height === this.#size.height;
    setBlob(this.#before, blob);
    this.#blending.renew({ before: blob });
    this.#view.classList.remove("empty");
    find("before-tag").textContent = stretched ? "Noisy, contrast stretched" : "Noisy";
    this.#size = { width, height };
    this.#view.style.setProperty("--ratio", height / width);
    this.hideAfter();
    if (!like) this.zoom("fit");
  }

  /** Show a result beside the noisy image; zoom and boundary stay. Tell whether it can be shown. */
  async showAfter(blob) {
    const first = find("after-layer").hidden;
    setBlob(this.#after, blob);
    this.#blending.renew({ after: blob });
    const { src } = this.#after;
    const seen = (await this.#after.decode().catch(() => false)) !== false;
    if (this.#after.src !== src) return true; // there is another one by now
    this.hidePart();
    this.#setAfterHidden(!seen);
    if (first && seen) this.#stopGlide = glide(this.#handle, 100, 50, (place) => this.slideTo(place));
    this.#draw();
    return seen;
  }

  /** Show a part of a result over the old one. */
  async showPart(blob, area) {
    const image = find("quick");
    setBlob(image, blob);
    await image.decode().catch(() => {});
    this.#part = area;
    image.hidden = false;
    this.#setAfterHidden(false);
    this.#draw();
  }

  hidePart() {
    setBlob(find("quick"), null);
    find("quick").hidden = true;
  }

  /** Show the result with strengths up to 1. */
  blend(grain, chroma) {
    this.#blending.blend(grain, chroma);
  }

  /** Choose how much stronger than it is the removed noise is shown. */
  showRemovedWith(contrast) {
    this.#view.style.setProperty("--contrast", clamp(contrast, 2, 16));
  }

  hideAfter() {
    setBlob(this.#after, null);
    this.hidePart();
    this.#setAfterHidden(true);
    this.#draw();
  }

  clear() {
    setBlob(this.#before, null);
    this.#view.classList.add("empty");
    this.hideAfter();
  }

  /** The part of the image in view, and so many pixels around it, in whole pixels of the image. */
  visiblePart(margin) {
    const { left, top, right, bottom } = this.#visible();
    const cut = (start, end, origin, all) => {
      const low = Math.max(0, Math.floor((start - origin) / this.#scale) - margin);
      const high = Math.min(all, Math.ceil((end - origin) / this.#scale) + margin);
      return [low, high - low];
    };
    const [x, width] = cut(left, right, this.#x, this.#size.width);
    const [y, height] = cut(top, bottom, this.#y, this.#size.height);
    return { x, y, width, height };
  }

  /** Move the boundary to a percentage of the visible image. */
  slideTo(percent) {
    this.#split = clamp(percent, 0, 100);
    this.#draw();
  }

  /** Move the boundary to a place in the window. */
  slideToX(clientX) {
    const { left, right } = this.#visible();
    const x = clientX - this.#view.getBoundingClientRect().left;
    this.slideTo((100 * (x - left)) / (right - left));
  }

  pan(dx, dy) {
    this.#x += dx;
    this.#y += dy;
    this.#draw();
  }

  /** Zoom by a word, as the buttons say it. */
  zoom(what) {
    const { level } = this;
    if (what === "fit") this.#fit();
    if (what === "real") this.#zoomTo(1);
    if (what === "pixels") this.#zoomTo(PIXELS);
    if (what === "in") this.#zoomTo(2 ** Math.floor(Math.log2(level * 1.001) + 1));
    if (what === "out") this.#zoomTo(2 ** Math.ceil(Math.log2(level / 1.001) - 1));
  }

  /** Zoom by a factor, keeping the image's point at a place in the window where it is. */
  zoomBy(factor, clientX, clientY) {
    const box = this.#view.getBoundingClientRect();
    this.#scaleAbout(this.#scale * factor, clientX - box.left, clientY - box.top);
  }

  /** From all of the image to its pixels at a place in the window, and back. */
  toggleZoom(clientX, clientY) {
    if (!this.#fitted) this.zoom("fit");
    else this.zoomBy(PIXELS / devicePixelRatio / this.#scale, clientX, clientY);
  }

  #zoomTo(level) {
    const { clientWidth, clientHeight } = this.#view;
    this.#scaleAbout(level / devicePixelRatio, clientWidth / 2, clientHeight / 2);
  }

  #scaleAbout(wanted, x, y) {
    const scale = clamp(wanted, this.#smallest(), LARGEST / devicePixelRatio);
    const factor = scale / this.#scale;
    this.#x = x - factor * (x - this.#x);
    this.#y = y - factor * (y - this.#y);
    this.#scale = scale;
    this.#fitted = scale === this.#fitScale();
    this.#draw();
  }

  #fit() {
    this.#scale = this.#fitScale();
    this.#fitted = true;
    this.#draw();
  }

  #fitScale() {
    const { clientWidth, clientHeight } = this.#view;
    const whole = Math.min(clientWidth / this.#size.width, clientHeight / this.#size.height);
    return Math.min(whole, LARGEST_FIT) || 1;
  }

  #smallest() {
    return Math.min(this.#fitScale(), 1 / devicePixelRatio);
  }

  #resized() {
    if (this.#fitted) this.#fit();
    else this.#draw();
  }

  /** The part of the image that is in view, in the view's pixels. */
  #visible() {
    const { clientWidth, clientHeight } = this.#view;
    return {
      left: Math.max(0, this.#x),
      top: Math.max(0, this.#y),
      right: Math.min(clientWidth, this.#x + this.#scale * this.#size.width),
      bottom: Math.min(clientHeight, this.#y + this.#scale * this.#size.height),
    };
  }

  #draw() {
    this.#x = this.#held(this.#x, this.#view.clientWidth, this.#size.width);
    this.#y = this.#held(this.#y, this.#view.clientHeight, this.#size.height);
    const whole = { x: 0, y: 0, ...this.#size };
    const box = this.#place(this.#before, whole);
    this.#place(this.#after, whole);
    this.#place(find("quick"), this.#part);
    this.#view.style.setProperty("--scale", this.#scale);
    const { level } = this;
    const smooth = level < PIXELATED_FROM;
    this.#view.classList.toggle("zoomed", !this.#fitted);
    this.#view.classList.toggle("pixelated", !smooth);
    drawTools(level, this.#fitted, this.#view.classList.contains("empty"));
    this.#drawBoundary();
    this.#blending.follow({ ...box, scale: this.#scale, smooth });
  }

  /** Put a part of the image where it belongs: from a whole pixel of the screen to another. */
  #place(image, { x, y, width, height }) {
    const snap = (at) => Math.round(at * devicePixelRatio) / devicePixelRatio;
    const across = (at) => snap(this.#x + this.#scale * at);
    const along = (at) => snap(this.#y + this.#scale * at);
    const box = { x: across(x), y: along(y) };
    box.width = across(x + width) - box.x;
    box.height = along(y + height) - box.y;
    Object.assign(image.style, { width: `${width}px`, height: `${height}px` });
    const [wide, high] = [box.width / width, box.height / height];
    image.style.transform = `translate(${box.x}px, ${box.y}px) scale(${wide}, ${high})`;
    return box;
  }

  /** Keep the image in the view: centred if it is smaller, without gaps if it is larger. */
  #held(offset, space, pixels) {
    const length = this.#scale * pixels;
    return length <= space ? (space - length) / 2 : clamp(offset, space - length, 0);
  }

  #drawBoundary() {
    const { left, top, right, bottom } = this.#visible();
    const x = left + (this.#split / 100) * (right - left);
    const { clientWidth } = this.#view;
    // Each side shows one image only, or the other would be seen through transparent pixels.
    find("after-layer").style.clipPath = `inset(0 0 0 ${x}px)`;
    find("before-layer").style.clipPath = find("after-layer").hidden
      ? "none"
      : `inset(0 ${clientWidth - x}px 0 0)`;
    Object.assign(find("line").style, {
      left: `${x}px`,
      top: `${top}px`,
      height: `${bottom - top}px`,
    });
    Object.assign(this.#handle.style, { left: `${x}px`, top: `${(top + bottom) / 2}px` });
    const share = Math.round(this.#split);
    this.#handle.setAttribute("aria-valuenow", share);
    this.#handle.setAttribute("aria-valuetext", `${share}% noisy, ${100 - share}% denoised`);
    placeTags({ left, top, right }, x);
  }

  #setAfterHidden(hidden) {
    for (const id of ["after-layer", "after-tag", "line", "handle"]) find(id).hidden = hidden;
    for (const id of ["hold", "removed"]) find(id).disabled = hidden;
  }

  #stopGlide = () => {};

  /** End what moves by itself: someone has taken hold of the boundary. */
  takeHold() {
    this.#stopGlide();
  }

  slideByKey(event) {
    const target = slideTarget(event, this.#split);
    if (target === undefined) return;
    event.preventDefault();
    event.stopPropagation(); // the arrows would also move the image
    this.takeHold();
    this.slideTo(Math.round(target));
  }

  moveByKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in MOVES && !this.#fitted) this.pan(...MOVES[event.key]);
    else if (event.key in ZOOMS) this.zoom(ZOOMS[event.key]);
    else return;
    event.preventDefault();
  }
}
