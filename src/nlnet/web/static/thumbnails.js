// Small pictures of the photos in the list, made one after the other.

import { askViewing } from "./pictures.js";

const SIDE = 96; // pixels; shown at half of it

let last = Promise.resolve();

/** Draw a photo on a canvas, cut to a square; tell whether the browser can. */
export function drawThumbnail(canvas, blob) {
  const drawn = last.then(() => draw(canvas, blob)).then(
    () => true,
    () => false,
  );
  last = drawn;
  return drawn;
}

async function draw(canvas, blob) {
  const small = await askViewing("thumbnail", { blob, side: SIDE });
  const narrow = small.width < SIDE;
  const scale = narrow ? SIDE / small.width : 1;
  Object.assign(canvas, { width: SIDE, height: SIDE });
  const [width, height] = [scale * small.width, scale * small.height];
  canvas
    .getContext("2d")
    .drawImage(small, (SIDE - width) / 2, (SIDE - height) / 2, width, height);
  small.close();
}
