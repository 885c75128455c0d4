// What is written on and below the image: the names of its two sides, and how large it is shown.

import { find } from "./page.js";

export const PIXELS = 8; // zoom at which one looks at pixels

const GAP = 8; // pixels from the corner

/** Put the tags into the corners of the visible image; `x` is where the boundary is. */
export function placeTags({ left, top, right }, x) {
  const [before, after] = [find("before-tag"), find("after-tag")];
  Object.assign(before.style, { left: `${left + GAP}px`, top: `${top + GAP}px` });
  const start = right - GAP - after.offsetWidth;
  Object.assign(after.style, { left: `${start}px`, top: `${top + GAP}px` });
  // A tag that the boundary has reached would name the wrong side.
  before.style.opacity = after.hidden || x > left + GAP + before.offsetWidth ? 1 : 0;
  after.style.opacity = x < start ? 1 : 0;
}

/** Show the zoom, in screen pixels per image pixel; nothing can be zoomed where there is no image. */
export function drawTools(level, fitted, empty) {
  find("zoom-value").textContent = empty ? "–" : `${Math.round(100 * level)}%`;
  const pressed = { fit: fitted, real: level === 1, pixels: level === PIXELS };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const { zoom } = button.dataset;
    button.disabled = empty;
    if (zoom in pressed) button.setAttribute("aria-pressed", pressed[zoom] && !empty);
  }
}
