// The engine: a WebAssembly module in memory of ours, its calls, and what they take and give.

import { Heap } from "./heap.js";
import { read, write } from "./layout.js";
import { BEST, FLOAT, STATUSES, VERSION } from "./structures.js";

const STACK_BYTES = 1 << 18; // for each further thread; the first has one of the module's

/** The engine says no; the message is for people. */
export class EngineError extends Error {
  constructor(status) {
    super(STATUSES[status] ?? `The engine answered with ${status}.`);
    this.name = "EngineError";
    this.status = status;
  }
}

export class Engine {
  #memory;

  /** Make it: the first to use a memory has no stack to give; others get the address of one. */
  static async start(module, memory, stack = null) {
    const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
    if (stack !== null) exports.__stack_pointer.value = stack;
    return new Engine(exports, memory, stack === null);
  }

  constructor(exports, memory, first) {
    this.calls = exports;
    this.#memory = memory;
    const version = exports.nlnet_engine_version();
    if (version !== VERSION) throw new Error(`The engine has version ${version}, not ${VERSION}.`);
    this.heap = first ? new Heap(memory, exports.__heap_base.value) : null;
  }

  get view() {
    return new DataView(this.#memory.buffer);
  }

  /** Bytes from an address on, until the memory grows. */
  bytes(at, length) {
    return new Uint8Array(this.#memory.buffer, at, length);
  }

  floats(at, length) {
    return new Float32Array(this.#memory.buffer, at, length);
  }

  /** The end of a new stack, from which it grows down. */
  newStack() {
    return this.heap.take(STACK_BYTES) + STACK_BYTES;
  }

  /** Run `work(scope)`; what it takes from the scope is given back at its end. */
  async within(work) {
    const scope = new Scope(this);
    try {
      return await work(scope);
    } finally {
      scope.end();
    }
  }

  check(status) {
    if (status !== 0) throw new EngineError(status);
  }

  /**
   * Call a function that asks for memory: `call(memory, size)`, both addresses, first with memory 0.
   * Returns where the memory is, taken from a scope, and its size.
   */
  inMemory(scope, call) {
    const counted = scope.take(4);
    this.check(call(0, counted));
    const size = this.view.getUint32(counted, true);
    const at = scope.take(size);
    this.check(call(at, counted));
    return { at, size };
  }

  /** Make the network of a family, a block with values at several sigmas, for white noise. */
  async makeAt(family, sigma) {
    const block = await this.within((scope) => {
      const at = scope.copy(family);
      const made = this.inMemory(scope, (memory, size) =>
        this.calls.nlnet_family_at(at, family.length, sigma, memory, size),
      );
      return this.bytes(made.at, made.size).slice();
    });
    return this.make(block);
  }

  /** Make a network (or an eye) of a block of parameters, which is copied; it stays. */
  async make(block, eye = false) {
    return this.within(async (scope) => {
      const at = scope.copy(block);
      const [size, made] = [scope.take(4), scope.take(4)];
      const call = (memory) =>
        eye
          ? this.calls.nlnet_eye_make(at, block.length, BEST, memory, size, made)
          : this.calls.nlnet_network_make(at, block.length, FLOAT, BEST, memory, size, made);
      this.check(call(0));
      const memory = this.heap.take(this.view.getUint32(size, true));
      try {
        this.check(call(memory));
      } catch (error) {
        this.heap.give(memory);
        throw error;
      }
      return { handle: this.view.getUint32(made, true), memory };
    });
  }
}

/** Memory that is given back together. */
export class Scope {
  #engine;
  #taken = [];

  constructor(engine) {
    this.#engine = engine;
  }

  take(bytes) {
    const at = this.#engine.heap.take(bytes);
    this.#taken.push(at);
    return at;
  }

  /** Copy a typed array into the memory. */
  copy(array) {
    const at = this.take(array.byteLength);
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    this.#engine.bytes(at, bytes.length).set(bytes);
    return at;
  }

  /** A structure with these values. */
  put(structure, values = {}) {
    const at = this.take(structure.size);
    write(this.#engine.view, at, structure, values);
    return at;
  }

  /** Structures, one after the other. */
  array(structure, all) {
    const at = this.take(structure.size * all.length);
    all.forEach((values, index) =>
      write(this.#engine.view, at + index * structure.size, structure, values),
    );
    return at;
  }

  read(at, structure) {
    return read(this.#engine.view, at, structure);
  }

  end() {
    for (const at of this.#taken.splice(0)) this.#engine.heap.give(at);
  }
}
