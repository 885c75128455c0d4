// A worker that decodes and encodes files for the engine, so that the page never waits for that.

import { bare, readContainer, withKept } from "./containers.js";

const PAYS = 2; // as files/rewriting.py has it
const GOOD = 95;
const PIECE = 1024; // pixels along a side that are encoded to find out

self.onmessage = async ({ data: { number, act, given } }) => {
  try {
    const [answer, transferred] = await { decode, encode }[act](given);
    self.postMessage({ number, answer }, transferred);
  } catch (error) {
    self.postMessage({ number, error: error.message });
  }
};

/** Values as they are in the file: neither turned nor converted to other colors. */
async function decode({ file }) {
  const bytes = bare(new Uint8Array(await file.arrayBuffer()));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: file.type }), {
    colorSpaceConversion: "none",
    premultiplyAlpha: "none",
  });
  const pixels = readBitmap(bitmap);
  return [{ ...pixels, channels: isGray(pixels.data) ? 1 : 3 }, [pixels.data.buffer]];
}

function isGray(data) {
  for (let at = 0; at < data.length; at += 4) {
    if (data[at] !== data[at + 1] || data[at] !== data[at + 2]) return false;
  }
  return true;
}

function readBitmap(bitmap) {
  const { width, height } = bitmap;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  return { data, width, height };
}

/**
 * A file of pixels: { file, pixels, type, quality }. A JPEG whose quality is not given is encoded as
 * it was, or better; if encoding it again would still lose more than was removed, it is null.
 */
async function encode({ file, pixels, type, quality }) {
  const source = readContainer(new Uint8Array(await file.arrayBuffer()));
  const same = source.type === type;
  const image = new ImageData(pixels.data, pixels.width, pixels.height);
  let chosen = quality;
  if (type === "image/jpeg" && quality === null) {
    chosen = same ? await payingQuality(file, image, source.quality ?? GOOD) : GOOD;
    if (chosen === null) return [null, []];
  }
  const blob = await write(image, type, chosen);
  const encoded = new Uint8Array(await blob.arrayBuffer());
  const whole = same ? withKept(encoded, source) : encoded;
  return [{ blob: new Blob([whole], { type }), deep: source.deep, lost: !same && source.kept.length > 0 }, []];
}

function write(image, type, quality) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas.convertToBlob({ type, quality: (quality ?? 100) / 100 });
}

async function payingQuality(file, image, own) {
  const { data: before } = cut((await decode({ file }))[0]);
  const piece = cut(image);
  const removed = meanSquare(before, piece.data);
  for (const quality of new Set([own, Math.max(own, (own + GOOD) >> 1), Math.max(own, GOOD), 100])) {
    const again = await createImageBitmap(await write(piece, "image/jpeg", quality));
    if (removed > PAYS * meanSquare(readBitmap(again).data, piece.data)) return quality;
  }
  return null;
}

/** The middle of an image. */
function cut({ data, width, height }) {
  const [wide, high] = [Math.min(PIECE, width), Math.min(PIECE, height)];
  const [left, top] = [(width - wide) >> 5 << 4, (height - high) >> 5 << 4];
  const piece = new ImageData(wide, high);
  for (let row = 0; row < high; row++) {
    const start = 4 * ((top + row) * width + left);
    piece.data.set(data.subarray(start, start + 4 * wide), 4 * row * wide);
  }
  return piece;
}

function meanSquare(one, other) {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += (one[at] - other[at]) ** 2;
  return sum / one.length;
}
