// What JPEG and PNG files say besides pixels: color profile, EXIF and XMP, which both formats can hold.

import { chunk, chunks, joined, SEGMENT_MOST, segment, segments } from "./containers.js";

const [APP1, APP2, APP13, ADOBE, APP15, COMMENT] = [0xe1, 0xe2, 0xed, 0xee, 0xef, 0xfe];
const EXIF = "Exif\0\0";
const XMP = "http://ns.adobe.com/xap/1.0/\0";
const MORE_XMP = "http://ns.adobe.com/xmp/extension/\0";
const PROFILE = "ICC_PROFILE\0";
const FURTHER = "MPF\0"; // where images that follow the first one begin
const PNG_XMP = "XML:com.adobe.xmp\0";
// Chunks that say how pixels are to be shown, or by whom and when they were taken.
const COLORS = ["iCCP", "sRGB", "gAMA", "cHRM", "cICP"];
const KEPT = [...COLORS, "eXIf", "pHYs", "tEXt", "zTXt", "iTXt", "tIME"];

/**
 * What a file says: { profile, exif, xmp } as bytes or null, `own` for parts that only its own format
 * has, and `notes` on what is left out.
 */
export async function readMetadata(type, bytes) {
  if (type === "image/jpeg") return ofJpeg([...segments(bytes)]);
  if (type === "image/png") return ofPng([...chunks(bytes)]);
  const notes = ["its metadata is not kept, and colors are converted to sRGB if they are others"];
  return { profile: null, exif: null, xmp: null, own: [], notes };
}

/** An encoded file with what a file of type `from` said: { whole, notes }. */
export async function withMetadata(encoded, type, said, from) {
  const same = type === from;
  const notes = [...said.notes];
  let { profile, own } = said;
  if (!isRgb(profile)) {
    profile = null;
    own = own.filter((part) => !isColor(part));
    notes.push("its colors are converted to sRGB");
  }
  const special = own.filter((part) => !isColor(part) && part.name !== "pHYs");
  if (!same && special.length) notes.push("metadata that only its own format has is not kept");
  const parts = { ...said, profile, own: same ? own.map(({ whole }) => whole) : [] };
  const into = type === "image/jpeg" ? intoJpeg : intoPng;
  return { whole: await into(encoded, parts), notes };
}

/** Whether a part is about the picture rather than its encoding: browsers would act on it. */
export const isTold = ({ marker, name }) =>
  name
    ? KEPT.includes(name)
    : marker === COMMENT || (marker >= APP1 && marker <= APP15 && marker !== ADOBE);

/** Whether a part says what colors mean. */
export const isColor = (part) =>
  part.name ? COLORS.includes(part.name) : part.marker === APP2 && begins(part, PROFILE);

/** Whether values are red, green and blue, as far as a profile says. */
export const isRgb = (profile) => profile === null || text(profile.subarray(16, 20)) === "RGB ";

const text = (bytes) => String.fromCharCode(...bytes);
const bytesOf = (letters) => Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
const begins = ({ content }, start) => text(content.subarray(0, start.length)) === start;
const after = ({ content }, start) => content.slice(start.length);

function ofJpeg(all) {
  const of = (marker, start) => all.filter((each) => each.marker === marker && begins(each, start));
  const first = (found, start) => (found.length ? after(found[0], start) : null);
  // Each piece is preceded by its number and how many there are.
  const pieces = of(APP2, PROFILE).map((each) => after(each, PROFILE));
  pieces.sort((one, other) => one[0] - other[0]);
  const further = of(APP2, FURTHER).length > 0;
  return {
    profile: pieces.length ? joined(pieces.map((piece) => piece.subarray(2))) : null,
    exif: first(of(APP1, EXIF), EXIF),
    xmp: first(of(APP1, XMP), XMP),
    own: [...of(APP1, MORE_XMP), ...of(APP13, "Photoshop 3.0\0"), ...of(COMMENT, "")],
    notes: further ? ["its further images (previews or a gain map) are left out"] : [],
  };
}

async function ofPng(all) {
  const find = (name, start = "") => all.find((each) => each.name === name && begins(each, start));
  const own = all.filter(isTold);
  const [profile, exif] = [find("iCCP"), find("eXIf")];
  const xmp = find("iTXt", `${PNG_XMP}\0\0`); // neither compressed nor translated
  return {
    profile: profile ? await unpacked(profile.content) : null,
    exif: exif?.content ?? null,
    xmp: xmp ? xmp.content.subarray(PNG_XMP.length + 4) : null,
    own: own.filter((part) => ![profile, exif, xmp].includes(part)),
    notes: [],
  };
}

function intoJpeg(encoded, { profile, exif, xmp, own }) {
  const told = [];
  if (exif) told.push([APP1, joined([bytesOf(EXIF), exif])]);
  if (xmp) told.push([APP1, joined([bytesOf(XMP), xmp])]);
  const most = SEGMENT_MOST - PROFILE.length - 2;
  const count = Math.ceil((profile?.length ?? 0) / most);
  for (let number = 1; number <= count; number++) {
    const piece = profile.subarray((number - 1) * most, number * most);
    told.push([APP2, joined([bytesOf(PROFILE), Uint8Array.of(number, count), piece])]);
  }
  const fitting = told.filter(([, content]) => content.length <= SEGMENT_MOST);
  const made = fitting.map(([marker, content]) => segment(marker, content));
  const written = [...segments(encoded)];
  const end = written.at(-1).start + written.at(-1).whole.length;
  const [head, ...rest] = written.filter((part) => !isTold(part)).map(({ whole }) => whole);
  return joined([encoded.subarray(0, 2), head, ...made, ...own, ...rest, encoded.subarray(end)]);
}

async function intoPng(encoded, { profile, exif, xmp, own }) {
  const told = [...own];
  if (profile) {
    const packed = await through(new CompressionStream("deflate"), profile);
    told.push(chunk("iCCP", joined([bytesOf("ICC profile\0\0"), packed])));
  }
  if (exif) told.push(chunk("eXIf", exif));
  if (xmp) told.push(chunk("iTXt", joined([bytesOf(`${PNG_XMP}\0\0\0\0`), xmp])));
  const written = [...chunks(encoded)].filter((part) => !isTold(part));
  const [head, ...rest] = written.map(({ whole }) => whole);
  return joined([encoded.subarray(0, 8), head, ...told, ...rest]);
}

/** The profile in a chunk: a name, how it is compressed, and that. */
async function unpacked(content) {
  const packed = content.subarray(content.indexOf(0) + 2);
  return through(new DecompressionStream("deflate"), packed).catch(() => null);
}

async function through(stream, bytes) {
  const answer = new Response(new Blob([bytes]).stream().pipeThrough(stream));
  return new Uint8Array(await answer.arrayBuffer());
}
