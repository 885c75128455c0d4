// What the client needs of a browser.

const file = (name) => new URL(`../../engine/${name}.wasm`, import.meta.url);

/** The engine, compiled while it is loaded where the host says what it is. */
export async function compile(name) {
  const answer = await fetch(file(name));
  if (!answer.ok) throw new Error(`The engine cannot be loaded (${answer.status}).`);
  if (answer.headers.get("Content-Type") === "application/wasm") {
    return WebAssembly.compileStreaming(answer);
  }
  return WebAssembly.compile(await answer.arrayBuffer());
}

/** Start a worker, which is to call `receive` with its messages and `fail` with its errors. */
export function start(role, receive, fail) {
  const worker = new Worker(new URL("../worker/browser.js", import.meta.url), {
    type: "module",
    name: role,
  });
  worker.onmessage = ({ data }) => receive(data);
  worker.onerror = (event) => fail(new Error(event.message || "A worker cannot be started."));
  return {
    post: (message, transferred = []) => worker.postMessage(message, transferred),
    end: () => worker.terminate(),
  };
}

/** Why memory cannot be shared between workers, or "". */
export function obstacle() {
  if (typeof SharedArrayBuffer === "undefined" || !globalThis.crossOriginIsolated) {
    return "the page is not isolated from other origins";
  }
  return "";
}

export const cores = () => navigator.hardwareConcurrency || 1;

export const makeImage = (data, width, height) => new ImageData(data, width, height);
