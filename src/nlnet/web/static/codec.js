// A worker that decodes and encodes files for the engine, so that the page never waits for that.

import { depthOf, qualityOf, typeOf, without } from "./containers.js";
import { isColor, isRgb, isTold, readMetadata, withMetadata } from "./metadata.js";
import { answerWith } from "./workers.js";

const PAYS = 2; // as files/one_file.py has it
const GOOD = 95;
const PIECE = 1024; // pixels along a side that are encoded to find out
const BLOCK = 16; // pixels of the blocks that a JPEG with halved chroma is made of

answerWith({ decode, encode });

async function decode({ file }) {
  const pixels = await pixelsOf(new Uint8Array(await file.arrayBuffer()), file.type);
  return [{ ...pixels, channels: isGray(pixels.data) ? 1 : 3 }, [pixels.data.buffer]];
}

/**
 * Values of JPEG and PNG as they are in the file: neither turned nor converted to other colors. Of
 * other formats, and of profiles that are not for red, green and blue, as sRGB.
 */
async function pixelsOf(bytes, type) {
  const known = typeOf(bytes);
  const raw = known !== "" && isRgb((await readMetadata(known, bytes)).profile);
  const bare = without(bytes, (part) => isTold(part) && (raw || !isColor(part)));
  return readBitmap(
    await createImageBitmap(new Blob([bare], { type }), {
      colorSpaceConversion: raw ? "none" : "default",
      premultiplyAlpha: "none",
    }),
  );
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
 * it was, or better. If encoding it again would still lose more than was removed, it is null, unless
 * somebody insists.
 */
async function encode({ file, pixels, type, quality, insists }) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const from = typeOf(bytes);
  const image = new ImageData(pixels.data, pixels.width, pixels.height);
  let chosen = quality;
  if (type === "image/jpeg" && quality === null) {
    const own = qualityOf(bytes);
    chosen = own === null ? GOOD : await payingQuality(bytes, image, own, insists);
    if (chosen === null) return [null];
  }
  const blob = await write(image, type, chosen);
  const said = await readMetadata(from, bytes);
  const encoded = new Uint8Array(await blob.arrayBuffer());
  const { whole, notes } = await withMetadata(encoded, type, said, from);
  const depth = depthOf(bytes);
  if (depth > 8) notes.push(`its ${depth} bits become 8; the nlnet command and its server keep them`);
  return [{ blob: new Blob([whole], { type }), notes }];
}

function write(image, type, quality) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas.convertToBlob({ type, quality: (quality ?? 100) / 100 });
}

async function payingQuality(bytes, image, own, insists) {
  const { data: before } = cut(await pixelsOf(bytes, "image/jpeg"));
  const piece = cut(image);
  const removed = meanSquare(before, piece.data);
  for (const quality of new Set([own, Math.max(own, (own + GOOD) >> 1), Math.max(own, GOOD), 100])) {
    const again = await createImageBitmap(await write(piece, "image/jpeg", quality));
    if (removed > PAYS * meanSquare(readBitmap(again).data, piece.data)) return quality;
  }
  return insists ? Math.max(own, GOOD) : null;
}

/** The middle of an image. */
function cut({ data, width, height }) {
  const start = (length) => Math.floor(Math.max(0, length - PIECE) / 2 / BLOCK) * BLOCK;
  const [left, top] = [start(width), start(height)];
  const piece = new ImageData(Math.min(PIECE, width), Math.min(PIECE, height));
  for (let row = 0; row < piece.height; row++) {
    const at = 4 * ((top + row) * width + left);
    piece.data.set(data.subarray(at, at + 4 * piece.width), 4 * row * piece.width);
  }
  return piece;
}

/** Alpha, which is not touched, counts for nothing. */
function meanSquare(one, other) {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += (one[at] - other[at]) ** 2;
  return sum / (0.75 * one.length);
}
