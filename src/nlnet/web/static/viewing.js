// A worker that decodes the images on show, so that the page never waits for that: it blends them, cuts
// parts out, and makes thumbnails.

import { answerWith } from "./workers.js";

const blobs = {}; // "before" and "after"
const decoded = {}; // promises of them as bitmaps, once they are needed
let seen = { key: "" }; // the visible pixels of both, and where they were then

answerWith({ show, blend, cut, thumbnail });

/** Take other images, { before, after } or one of them. */
async function show(images) {
  seen = { key: "" };
  for (const [name, blob] of Object.entries(images)) {
    const old = await decoded[name]?.catch(() => null);
    old?.close();
    delete decoded[name];
    blobs[name] = blob;
  }
  return [null];
}

const bitmapOf = (name) => (decoded[name] ??= createImageBitmap(blobs[name]));

/** Both images, as the view shows them, with shares of the change from the one to the other. */
async function blend({ box, width, height, smooth, shares }) {
  const key = JSON.stringify([box, width, height, smooth]);
  if (seen.key !== key) seen = { key, pair: await readBoth(box, width, height, smooth) };
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(mix(...seen.pair, ...shares), 0, 0);
  const bitmap = canvas.transferToImageBitmap();
  return [bitmap, [bitmap]];
}

async function readBoth(box, width, height, smooth) {
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.imageSmoothingEnabled = smooth;
  const pair = [];
  for (const name of ["before", "after"]) {
    context.clearRect(0, 0, width, height);
    context.drawImage(await bitmapOf(name), ...box);
    pair.push(context.getImageData(0, 0, width, height));
  }
  return pair;
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

/** A part of the noisy image as a PNG file, at a size that is a factor of its own. */
async function cut({ x, y, width, height, factor }) {
  const canvas = new OffscreenCanvas(Math.round(factor * width), Math.round(factor * height));
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  const image = await bitmapOf("before");
  context.drawImage(image, x, y, width, height, 0, 0, canvas.width, canvas.height);
  return [await canvas.convertToBlob({ type: "image/png" })];
}

/** A file as a small bitmap, turned as its orientation says, so many pixels high. */
async function thumbnail({ blob, side }) {
  const bitmap = await createImageBitmap(blob, { resizeHeight: side, resizeQuality: "medium" });
  return [bitmap, [bitmap]];
}
