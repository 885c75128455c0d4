// Remove noise as a page does: node remove_wasm.mjs LIBRARY FAMILY CASE.json PIXELS RESULT
import { readFile, writeFile } from "node:fs/promises";
import { Engine } from "../examples/remove.mjs";

const [library, family, description, pixels, result] = process.argv.slice(2);
const engine = await Engine.load(await readFile(library));
const { noise, strength, ...about } = JSON.parse(await readFile(description, "utf8"));
if (noise.strengths) noise.strengths = new Float32Array(noise.strengths);
const image = { data: new Uint8Array(await readFile(pixels)), ...about };
const block = new Uint8Array(await readFile(family));
await writeFile(result, engine.remove(block, image, noise, strength));
