// Files in one zip file. They are images, and so compressed already: they are stored as they are.

const LIMIT = 2 ** 32 - 1;
const UTF8_NAMES = 0x0800;
const VERSION = 20;
const encoder = new TextEncoder();

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** The checksum of the format, of bytes that may follow others. */
export function crc32(bytes, before = 0) {
  let value = before ^ 0xffffffff;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** A zip file of `{ name, blob }` entries; names that are the same get numbers. */
export async function zip(entries) {
  const parts = [];
  const directory = [];
  const taken = new Set();
  let offset = 0;
  for (const { name, blob } of entries) {
    const title = encoder.encode(unique(name, taken));
    const checksum = await checksumOf(blob);
    if (offset + blob.size > LIMIT) throw new RangeError("A zip file holds 4 GB at most.");
    const facts = [VERSION, UTF8_NAMES, 0, ...now(), checksum, blob.size, blob.size];
    const sizes = [2, 2, 2, 2, 2, 4, 4, 4];
    const local = record(0x04034b50, facts, sizes, [title.length, 0], [2, 2]);
    parts.push(local, title, blob);
    const rest = [title.length, 0, 0, 0, 0, 0, offset];
    directory.push(
      record(0x02014b50, [VERSION, ...facts], [2, ...sizes], rest, [2, 2, 2, 2, 2, 4, 4]),
      title,
    );
    offset += local.length + title.length + blob.size;
  }
  const length = directory.reduce((sum, part) => sum + part.length, 0);
  const count = entries.length;
  const end = [0, 0, count, count, length, offset, 0];
  parts.push(...directory, record(0x06054b50, end, [2, 2, 2, 2, 4, 4, 2], [], []));
  return new Blob(parts, { type: "application/zip" });
}

/** Piece by piece, so that the page need not wait for a large file. */
async function checksumOf(blob) {
  let checksum = 0;
  const reader = blob.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return checksum;
    checksum = crc32(value, checksum);
  }
}

function unique(name, taken) {
  const [, stem, suffix] = /^(.*?)(\.[^.]*)?$/s.exec(name);
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${stem} (${number})${suffix ?? ""}`;
  taken.add(free);
  return free;
}

/** Little-endian numbers of so many bytes each, after the record's signature. */
function record(signature, values, sizes, moreValues, moreSizes) {
  const all = [[signature, 4]];
  [...values, ...moreValues].forEach((value, index) =>
    all.push([value, [...sizes, ...moreSizes][index]]),
  );
  const view = new DataView(new ArrayBuffer(all.reduce((sum, [, size]) => sum + size, 0)));
  let place = 0;
  for (const [value, size] of all) {
    if (size === 2) view.setUint16(place, value, true);
    else view.setUint32(place, value, true);
    place += size;
  }
  return new Uint8Array(view.buffer);
}

/** Time and date as MS-DOS had them. */
function now() {
  const date = new Date();
  return [
    (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1),
    ((date.getFullYear() - 1980) << 9) | ((date.getMonth() + 1) << 5) | date.getDate(),
  ];
}
