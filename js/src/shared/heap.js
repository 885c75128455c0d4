// Memory for the engine, which allocates none itself: blocks above its own data, each given back when
// nobody needs it any more.

import { roundUp } from "./layout.js";

const ALIGNMENT = 64;
const PAGE = 65536;

export class Heap {
  #memory;
  #free = []; // [start, end) of what nobody uses, in order
  #used = new Map(); // from the start of a block to its end

  constructor(memory, start) {
    this.#memory = memory;
    this.#free.push([roundUp(start, ALIGNMENT), memory.buffer.byteLength]);
  }

  /** Take so many bytes, aligned to 64; the memory grows if it has to. */
  take(bytes) {
    const size = roundUp(Math.max(bytes, 1), ALIGNMENT);
    let index = this.#free.findIndex(([start, end]) => end - start >= size);
    if (index < 0) {
      this.#grow(size);
      index = this.#free.length - 1;
    }
    const [start, end] = this.#free[index];
    if (end - start === size) this.#free.splice(index, 1);
    else this.#free[index][0] = start + size;
    this.#used.set(start, start + size);
    return start;
  }

  give(start) {
    const end = this.#used.get(start);
    this.#used.delete(start);
    this.#free.push([start, end]);
    this.#free.sort((one, other) => one[0] - other[0]);
    this.#free = this.#free.reduce((merged, part) => {
      const last = merged.at(-1);
      if (last && last[1] === part[0]) last[1] = part[1];
      else merged.push(part);
      return merged;
    }, []);
  }

  /** Bytes that are in use, for tests. */
  get used() {
    return [...this.#used].reduce((sum, [start, end]) => sum + end - start, 0);
  }

  #grow(size) {
    const end = this.#memory.buffer.byteLength;
    const last = this.#free.at(-1);
    const there = last && last[1] === end ? end - last[0] : 0;
    const pages = Math.ceil((size - there) / PAGE);
    try {
      this.#memory.grow(pages);
    } catch {
      throw new RangeError("There is too little memory for an image of this size.");
    }
    if (there) last[1] += pages * PAGE;
    else this.#free.push([end, end + pages * PAGE]);
  }
}
