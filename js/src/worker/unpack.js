// Model files as parameter blocks of the engine, to the bit; scripts/browser_models.py packs them.

/** The block in a file, { raw, half, single } streams of which its parts are taken in turn. */
export async function unpack(compressed) {
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const file = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(file.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(file.subarray(4, 4 + length)));
  let at = 4 + length;
  const next = (bytes) => file.subarray(at, (at += bytes));
  const raw = next(head.raw);
  const half = Float32Array.from(new Uint16Array(interleaved(next(head.half), 2)), fromHalf);
  const single = new Float32Array(interleaved(next(head.single), 4));
  return join(head.parts, { raw, half, single });
}

function join(parts, streams) {
  const places = { raw: 0, half: 0, single: 0 };
  const pieces = parts.map(([stream, rows, columns, odd]) => {
    const count = stream === "raw" ? rows : rows * (odd ? columns >> 1 : columns);
    const values = streams[stream].subarray(places[stream], (places[stream] += count));
    if (stream === "raw") return values;
    const array = odd ? mirrored(values, rows, columns) : values;
    return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  });
  const block = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    block.set(piece, at);
    at += piece.length;
  }
  return block;
}

/** The bytes of values, of which all first ones come first, then all second ones. */
function interleaved(planes, size) {
  const count = planes.length / size;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane++) {
    for (let index = 0; index < count; index++) {
      bytes[index * size + plane] = planes[plane * count + index];
    }
  }
  return bytes.buffer;
}

/** Rows of which the first half is given: the second is its negative, backwards. */
function mirrored(half, rows, columns) {
  const width = columns >> 1;
  const whole = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < width; column++) {
      const value = half[row * width + column];
      whole[row * columns + column] = value;
      whole[(row + 1) * columns - 1 - column] = -value;
    }
  }
  return whole;
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
