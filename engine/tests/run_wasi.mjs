// Run a program of the engine's that was built for wasm32-wasi: node run_wasi.mjs PROGRAM [ARGUMENT...]
import { readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { WASI } from "node:wasi";

// Node 20 crashes in fast calls of WASI's functions when garbage is collected meanwhile.
setFlagsFromString("--no-turbo-fast-api-calls");

const [program, ...rest] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [program, ...rest], env: {}, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
