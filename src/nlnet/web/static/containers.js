// JPEG and PNG files as lists of segments and chunks.

import { crc32 } from "./zip.js";

const SCAN = 0xda;
const TABLES = 0xdb;
const PNG_HEAD = 8;
const HEAD = 4096; // bytes, in which AVIF and HEIC say how they are coded
const STEPS_AT_50 = 3688; // the sum of steps of luma at quality 50, in the tables that encoders scale

/** The most that a JPEG's segment holds. */
export const SEGMENT_MOST = 65533;

/** What a file is, by its content. */
export function typeOf(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xd8) return "image/jpeg";
  return String.fromCharCode(...bytes.subarray(1, 4)) === "PNG" ? "image/png" : "";
}

const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** The segments of a JPEG before its first scan: { marker, start, whole, content }. */
export function* segments(bytes) {
  for (let at = 2; at + 4 <= bytes.length && bytes[at] === 0xff; ) {
    const marker = bytes[at + 1];
    if (marker === SCAN) return;
    const end = at + 2 + viewOf(bytes).getUint16(at + 2);
    yield { marker, start: at, whole: bytes.subarray(at, end), content: bytes.subarray(at + 4, end) };
    at = end;
  }
}

/** The chunks of a PNG: { name, start, whole, content }. */
export function* chunks(bytes) {
  for (let at = PNG_HEAD; at + 12 <= bytes.length; ) {
    const end = at + 12 + viewOf(bytes).getUint32(at);
    const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    yield { name, start: at, whole: bytes.subarray(at, end), content: bytes.subarray(at + 8, end - 4) };
    at = end;
  }
}

export const segment = (marker, content) =>
  joined([Uint8Array.of(0xff, marker, (content.length + 2) >> 8, content.length + 2), content]);

export function chunk(name, content) {
  const whole = new Uint8Array(content.length + 12);
  viewOf(whole).setUint32(0, content.length);
  whole.set([...name].map((letter) => letter.charCodeAt(0)), 4);
  whole.set(content, 8);
  viewOf(whole).setUint32(content.length + 8, crc32(whole.subarray(4, content.length + 8)));
  return whole;
}

/** A file without the parts of which `isGone(part)` is true. */
export function without(bytes, isGone) {
  const parts = { "image/jpeg": segments, "image/png": chunks }[typeOf(bytes)]?.(bytes) ?? [];
  const pieces = [];
  let at = 0;
  for (const part of parts) {
    if (!isGone(part)) continue;
    pieces.push(bytes.subarray(at, part.start));
    at = part.start + part.whole.length;
  }
  return joined([...pieces, bytes.subarray(at)]);
}

/** The bits per value of a PNG, or of an AVIF or HEIC by what its decoder is told; else 8. */
export function depthOf(bytes) {
  if (typeOf(bytes) === "image/png") return chunks(bytes).next().value?.content[8];
  const head = String.fromCharCode(...bytes.subarray(0, HEAD));
  const [avif, heic] = [head.indexOf("av1C"), head.indexOf("hvcC")];
  if (avif >= 0) return [8, 8, 10, 12][(bytes[avif + 6] >> 5) & 3];
  return heic >= 0 ? 8 + (bytes[heic + 21] & 7) : 8;
}

/** The quality of a JPEG by its first table, as encoders count it, or null. */
export function qualityOf(bytes) {
  if (typeOf(bytes) !== "image/jpeg") return null;
  const steps = [...segments(bytes)].find(({ marker }) => marker === TABLES)?.content;
  if (!steps || steps[0] !== 0) return null; // of one byte each
  const scale = (100 * steps.subarray(1, 65).reduce((sum, step) => sum + step, 0)) / STEPS_AT_50;
  return Math.round(Math.min(100, Math.max(1, scale < 100 ? 100 - scale / 2 : 5000 / scale)));
}

export function joined(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
