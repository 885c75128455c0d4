// C structures in the memory of the engine, as wasm32 lays them out: pointers and sizes have 4 bytes,
// and every field begins at a multiple of its own size.

const NUMBERS = {
  i32: { size: 4, set: (view, at, value) => view.setInt32(at, value, true), get: "getInt32" },
  u32: { size: 4, set: (view, at, value) => view.setUint32(at, value, true), get: "getUint32" },
  i64: {
    size: 8,
    set: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
    get: "getBigInt64",
  },
  f32: { size: 4, set: (view, at, value) => view.setFloat32(at, value, true), get: "getFloat32" },
  f64: { size: 8, set: (view, at, value) => view.setFloat64(at, value, true), get: "getFloat64" },
};
NUMBERS.pointer = NUMBERS.u32;

/** A structure: { field: "i32", "i64", "f64", "pointer", another structure, or [type, count] }. */
export function struct(fields) {
  const places = new Map();
  let [end, alignment] = [0, 1];
  for (const [name, given] of Object.entries(fields)) {
    const [type, count] = Array.isArray(given) ? given : [given, null];
    const size = sizeOf(type);
    const align = type.alignment ?? size;
    const at = roundUp(end, align);
    places.set(name, { type, count, at, size });
    end = at + size * (count ?? 1);
    alignment = Math.max(alignment, align);
  }
  return { places, size: roundUp(end, alignment), alignment };
}

/** Write values over a structure that is at an address; fields that are not given become 0. */
export function write(view, at, structure, values) {
  for (const name of Object.keys(values)) {
    if (!structure.places.has(name)) throw new TypeError(`There is no field ${name}.`);
  }
  for (const [name, place] of structure.places) {
    const given = values[name];
    const all = place.count === null ? [given] : (given ?? []);
    for (let index = 0; index < (place.count ?? 1); index++) {
      writeOne(view, at + place.at + index * place.size, place.type, all[index]);
    }
  }
}

function writeOne(view, at, type, value) {
  if (typeof type === "string") NUMBERS[type].set(view, at, value ?? 0);
  else write(view, at, type, value ?? {});
}

/** The values of a structure that is at an address; integers of 64 bits as plain numbers. */
export function read(view, at, structure) {
  const values = {};
  for (const [name, { type, count, at: offset, size }] of structure.places) {
    const one = (index) => readOne(view, at + offset + index * size, type);
    values[name] = count === null ? one(0) : Array.from({ length: count }, (_, index) => one(index));
  }
  return values;
}

function readOne(view, at, type) {
  if (typeof type !== "string") return read(view, at, type);
  return Number(view[NUMBERS[type].get](at, true));
}

const sizeOf = (type) => (typeof type === "string" ? NUMBERS[type].size : type.size);

export const roundUp = (value, step) => Math.ceil(value / step) * step;
