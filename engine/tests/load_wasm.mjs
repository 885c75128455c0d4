// Load the engine as a page does, with memory of the caller's, shared or not: node load_wasm.mjs LIBRARY
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const module = await WebAssembly.compile(await readFile(process.argv[2]));
const wanted = WebAssembly.Module.imports(module);
assert.deepEqual(wanted, [{ module: "env", name: "memory", kind: "memory" }]);

const shared = process.argv[2].includes("shared");
const memory = new WebAssembly.Memory({ initial: 64, maximum: 65535, shared });
const engine = (await WebAssembly.instantiate(module, { env: { memory } })).exports;

const SIMD128 = 5;
assert.equal(engine.nlnet_best_set(), SIMD128);
const bytes = new Uint8Array(memory.buffer);
const at = engine.nlnet_set_name(SIMD128);
assert.equal(String.fromCharCode(...bytes.slice(at, bytes.indexOf(0, at))), "SIMD128");

// A block of zeros is refused, read from the caller's memory.
const NLNET_BAD_BLOCK = 1;
const start = engine.__heap_base.value;
assert.equal(engine.nlnet_network_make(start, 1000, 0, 0, 0, start + 1000, 0), NLNET_BAD_BLOCK);
console.log(`runs in memory that is ${shared ? "" : "not "}shared`);
