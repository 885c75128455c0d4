// JPEG and PNG files, as far as the browser does not let one choose: what is written besides pixels.

const START = 0xd8;
const [APP0, ADOBE, APP15, COMMENT] = [0xe0, 0xee, 0xef, 0xfe];
const [TABLES, SCAN] = [0xdb, 0xda];
const PNG_HEAD = 8;
// Chunks that say how pixels are to be shown, or by whom and when they were taken.
const KEPT = ["iCCP", "sRGB", "gAMA", "cHRM", "cICP", "eXIf", "pHYs", "tEXt", "zTXt", "iTXt", "tIME"];
// The table of luminance that qualities are steps of, in the order of the file.
const ANNEX_K = [
  16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29,
  40, 58, 51, 61, 60, 57, 51, 56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98,
  103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
];

/** What a file says besides its pixels: { type, kept, quality, deep }. */
export function readContainer(bytes) {
  if (bytes[0] === 0xff && bytes[1] === START) return readJpeg(bytes);
  if (String.fromCharCode(...bytes.subarray(1, 4)) === "PNG") return readPng(bytes);
  return { type: "", kept: [], quality: null, deep: false };
}

/** The same file without all that, so that a browser neither turns its pixels nor converts them. */
export function bare(bytes) {
  const jpeg = bytes[0] === 0xff && bytes[1] === START;
  const png = String.fromCharCode(...bytes.subarray(1, 4)) === "PNG";
  if (!jpeg && !png) return bytes;
  const all = jpeg ? [...segments(bytes)] : [...chunks(bytes)];
  const gone = all.filter((part) => (jpeg ? isTold(part.marker) : KEPT.includes(part.name)));
  const pieces = [];
  let at = 0;
  for (const { start, end } of gone) {
    pieces.push(bytes.subarray(at, start));
    at = end;
  }
  return joined([...pieces, bytes.subarray(at)]);
}

/** Whether a segment tells something about the picture; Adobe's says how colors are encoded. */
const isTold = (marker) =>
  (marker > APP0 && marker <= APP15 && marker !== ADOBE) || marker === COMMENT;

/** The same picture with what the file that it comes from says. */
export function withKept(encoded, { type, kept }) {
  if (!kept.length) return encoded;
  return type === "image/jpeg" ? intoJpeg(encoded, kept) : intoPng(encoded, kept);
}

function* segments(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 2; at + 4 <= bytes.length && bytes[at] === 0xff; ) {
    const marker = bytes[at + 1];
    if (marker === SCAN) return;
    const end = at + 2 + view.getUint16(at + 2);
    yield { marker, start: at, end, content: bytes.subarray(at + 4, end) };
    at = end;
  }
}

function readJpeg(bytes) {
  const kept = [];
  let quality = null;
  for (const { marker, start, end, content } of segments(bytes)) {
    if (isTold(marker)) kept.push(bytes.slice(start, end));
    if (marker === TABLES && quality === null && content[0] === 0) quality = qualityOf(content);
  }
  return { type: "image/jpeg", kept, quality, deep: false };
}

/** The quality whose table of luminance is the nearest. */
function qualityOf(content) {
  const scale = ANNEX_K.reduce((sum, value, index) => sum + content[index + 1] / value, 0) / 0.64;
  return Math.round(Math.min(100, Math.max(1, scale < 100 ? 100 - scale / 2 : 5000 / scale)));
}

function intoJpeg(encoded, kept) {
  const own = [...segments(encoded)].filter(({ marker }) => marker > APP0 && marker <= APP15);
  const end = own.length ? own.at(-1).end : 2;
  const jfif = [...segments(encoded)].find(({ marker }) => marker === APP0);
  const start = jfif ? encoded.subarray(0, jfif.end) : encoded.subarray(0, 2);
  const rest = encoded.subarray(Math.max(end, start.length));
  return joined([start, ...kept, rest]);
}

function* chunks(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = PNG_HEAD; at + 12 <= bytes.length; ) {
    const end = at + 12 + view.getUint32(at);
    const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    yield { name, start: at, end, content: bytes.subarray(at + 8, end - 4) };
    at = end;
  }
}

function readPng(bytes) {
  const all = [...chunks(bytes)];
  const kept = all.filter(({ name }) => KEPT.includes(name));
  const head = all.find(({ name }) => name === "IHDR");
  return {
    type: "image/png",
    kept: kept.map(({ start, end }) => bytes.slice(start, end)),
    quality: null,
    deep: head?.content[8] === 16,
  };
}

/** Right after the head, where all of them may be; what the browser says of colors goes. */
function intoPng(encoded, kept) {
  const all = [...chunks(encoded)].filter(({ name }) => !KEPT.includes(name));
  const [head, ...rest] = all.map(({ start, end }) => encoded.subarray(start, end));
  return joined([encoded.subarray(0, PNG_HEAD), head, ...kept, ...rest]);
}

function joined(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
