// Removing noise in JavaScript: a family's parameter block (`nlnet export --every-sigma`), pixels in
// 8 bits, and what the noise is, to pixels without it. One thread; the library is that without
// shared memory.
//
//     const engine = await Engine.load(bytesOfLibrary);
//     const result = engine.remove(block, { data, width, height, channels: 3 }, noise);
//
// Noise is {kind: "white", sigma}, {kind: "poisson", levels: [{gain, offset}]},
// {kind: "curve", levels: [{points: [[x, sigma], ...]}]}, or {kind: "camera", rows, columns,
// strengths: Float32Array(2 * 3 * rows * columns), certainty}. Data is RGBA, as of a canvas, or gray;
// `low` and `high` are between which nearly all of its values are.

const PAGE = 65536;
const SCALES = 3;
const DONE = 2;
const KINDS = { white: 0, poisson: 1, curve: 1, camera: 2 };

export class Engine {
  static async load(bytes) {
    const memory = new WebAssembly.Memory({ initial: 64, maximum: 65535 });
    const { instance } = await WebAssembly.instantiate(bytes, { env: { memory } });
    return new Engine(memory, instance.exports);
  }

  constructor(memory, calls) {
    this.memory = memory;
    this.calls = calls;
    this.free = calls.__heap_base.value;
  }

  // Memory that starts at a cache line; all of it is given back at once.
  take(bytes) {
    const start = Math.ceil(this.free / 64) * 64;
    this.free = start + bytes;
    const missing = this.free - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    return start;
  }

  put(array) {
    const start = this.take(array.byteLength);
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    new Uint8Array(this.memory.buffer).set(bytes, start);
    return start;
  }

  // Call a function twice: for the size of its memory, then with the memory.
  make(name, given, ...result) {
    const size = this.take(8);
    this.check(name, this.calls[name](...given, 0, size, ...result.map(() => 0)));
    const memory = this.take(this.view().getUint32(size, true));
    this.check(name, this.calls[name](...given, memory, size, ...result));
    return { memory, size: this.view().getUint32(size, true) };
  }

  check(name, status) {
    if (status !== 0) throw new Error(`${name}: status ${status}`);
  }

  view() {
    return new DataView(this.memory.buffer);
  }

  // A structure: numbers with where they are in it, and their types.
  structure(bytes, fields) {
    const start = this.take(bytes);
    new Uint8Array(this.memory.buffer).fill(0, start, start + bytes);
    const view = this.view();
    const set = { i: "setInt32", d: "setFloat64" };
    for (const [at, type, value] of fields) {
      if (type === "l") view.setBigInt64(start + at, BigInt(value), true);
      else view[set[type]](start + at, value, true);
    }
    return start;
  }

  noise(noise) {
    const levels = noise.levels ?? [];
    const array = this.take(32 * Math.max(levels.length, 1));
    levels.forEach((level, number) => {
      const points = level.points ?? [];
      const place = points.length ? this.put(new Float64Array(points.flat())) : 0;
      const view = this.view();
      view.setFloat64(array + 32 * number, level.gain ?? 0, true);
      view.setFloat64(array + 32 * number + 8, level.offset ?? 0, true);
      view.setUint32(array + 32 * number + 16, place, true);
      view.setBigInt64(array + 32 * number + 24, BigInt(points.length), true);
    });
    return [
      [0, "i", KINDS[noise.kind]],
      [4, "i", levels.length],
      [8, "d", noise.sigma ?? 0],
      [16, "i", array],
      [20, "i", noise.strengths ? this.put(noise.strengths) : 0],
      [24, "l", noise.rows ?? 0],
      [32, "l", noise.columns ?? 0],
      [40, "d", noise.certainty ?? 1],
    ];
  }

  // What the values fill for the networks, and where that begins.
  fill(noise, low, high) {
    const result = this.take(16);
    this.check("nlnet_fill", this.calls.nlnet_fill(noise, low, high, result, result + 8));
    return [this.view().getFloat64(result, true), this.view().getFloat64(result + 8, true)];
  }

  remove(block, image, noise, strength = [1, 1]) {
    this.free = this.calls.__heap_base.value;
    const { data, width, height, channels, low = 0, high = 255 } = image;
    const step = channels === 1 ? 1 : 4;
    const fields = this.noise(noise);
    const [span, black] = this.fill(this.structure(48, fields), low, high);
    const noisy = this.put(data);
    const denoised = this.put(data); // alpha stays
    const pixels = (at, place) => [
      [at + 4, "i", place],
      [at + 8, "i", 1],
      [at + 12, "i", step * width],
      [at + 16, "i", step],
    ];
    const task = this.structure(200, [
      [0, "l", height],
      [8, "l", width],
      [16, "i", channels],
      ...pixels(20, noisy),
      ...pixels(48, denoised),
      ...fields.map(([at, type, value]) => [80 + at, type, value]),
      [128, "d", strength[0]],
      [136, "d", strength[1]],
      [144, "d", span],
      [152, "d", black],
      [160, "d", 0],
      [168, "d", 255],
      [188, "i", 1],
    ]);
    const scales = this.take(8);
    const sigmas = this.take(8 * SCALES);
    const told = this.calls.nlnet_removal_sigmas(task, scales, sigmas);
    this.check("nlnet_removal_sigmas", told);
    const networks = this.structure(4 * SCALES, []);
    const family = this.put(block);
    for (let scale = 0; scale < this.view().getInt32(scales, true); scale++) {
      const sigma = this.view().getFloat64(sigmas + 8 * scale, true);
      if (sigma === 0) continue;
      const one = this.make("nlnet_family_at", [family, block.byteLength, sigma]);
      this.make("nlnet_network_make", [one.memory, one.size, 0, 0], networks + 4 * scale);
    }
    const job = this.take(8);
    this.make("nlnet_remove", [networks, task], job);
    const handle = this.view().getUint32(job, true);
    while (this.calls.nlnet_work(handle) !== DONE);
    this.check("nlnet_failure", this.calls.nlnet_failure(handle));
    return new Uint8ClampedArray(this.memory.buffer).slice(denoised, denoised + data.length);
  }
}
