import assert from "node:assert/strict";
import { test } from "node:test";

import { Heap } from "../src/shared/heap.js";
import { read, struct, write } from "../src/shared/layout.js";

test("fields begin at multiples of their size, and structures end so", () => {
  const inner = struct({ a: "i32", b: "f64" });
  assert.equal(inner.size, 16);
  const outer = struct({ first: "i32", inner, last: ["i32", 3] });
  assert.equal(outer.places.get("inner").at, 8);
  assert.equal(outer.places.get("last").at, 24);
  assert.equal(outer.size, 40);
});

test("what is written is read", () => {
  const pair = struct({ number: "i64", share: "f64", marks: ["u32", 2] });
  const view = new DataView(new ArrayBuffer(64));
  write(view, 8, pair, { number: -5, share: 0.25, marks: [1, 2] });
  assert.deepEqual(read(view, 8, pair), { number: -5, share: 0.25, marks: [1, 2] });
  assert.throws(() => write(view, 8, pair, { numbre: 1 }), /no field numbre/);
});

test("memory that is given back is used again, and grows where it has to", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 8 });
  const heap = new Heap(memory, 1000);
  const [one, other] = [heap.take(100), heap.take(100)];
  assert.equal(one % 64, 0);
  heap.give(one);
  assert.equal(heap.take(64), one);
  heap.give(one);
  heap.give(other);
  assert.equal(heap.used, 0);
  const large = heap.take(100_000);
  assert.equal(large, one);
  assert.equal(memory.buffer.byteLength, 2 * 65536);
  assert.throws(() => heap.take(1_000_000), /too little memory/);
});
