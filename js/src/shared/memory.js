// The memory of the engine, which is ours.

const INITIAL_PAGES = 256;
const MOST_PAGES = [65535, 32768, 16384, 8192]; // what a machine grants, of 64 kB each

/** Memory that can grow as far as the machine grants; only if it is shared, several workers use it. */
export function makeMemory(shared) {
  for (const maximum of MOST_PAGES) {
    try {
      return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared });
    } catch (error) {
      if (maximum === MOST_PAGES.at(-1)) throw error;
    }
  }
  return null;
}
