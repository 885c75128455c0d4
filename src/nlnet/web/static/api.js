// The server, as functions. Every request can be stopped, and waits its turn when it is busy.

import { pause } from "/static/page.js";

const RETRIES = 40;
const POLL_MILLISECONDS = 400;

/** An answer that is no result; its message is for people. */
export class ApiError extends Error {
  constructor(message, status, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The models on offer, and the server's limits. */
export async function getModels() {
  const response = await fetch("/api/models").catch(() => null);
  if (!response?.ok) throw new ApiError("The server does not answer. Is it still running?", 0);
  return response.json();
}

/** The denoised file, its preview if one was wanted, and what the server says about it. */
export async function denoise(file, fields, signal, report) {
  const { blob, header } = await patiently("/api/denoise", file, fields, signal, report);
  const number = (name) => Number(header(name) ?? NaN);
  const result = {
    name: fileName(header("Content-Disposition")),
    noise: header("Nlnet-Noise") ?? "",
    kind: header("Nlnet-Noise-Kind") ?? "",
    estimate: number("Nlnet-Noise-Estimate"),
    sigma: number("Nlnet-Sigma"),
    seconds: number("Nlnet-Seconds"),
    channels: number("Nlnet-Channels"),
    model: header("Nlnet-Model"),
    image: header("Nlnet-Image"),
    notes: header("Nlnet-Notes") ?? "",
    blob,
    preview: null,
  };
  if (fields.preview !== "yes") return result;
  const type = header("Content-Type");
  const form = await new Response(blob, { headers: { "Content-Type": type } }).formData();
  const part = form.get("file");
  return {
    ...result,
    name: decodeURIComponent(part.name),
    blob: new Blob([part], { type: part.type }),
    preview: form.get("preview"),
  };
}

/** The image as a PNG file that every browser can show. */
export async function preview(file, fields, signal, report) {
  const { blob, header } = await patiently("/api/preview", file, fields, signal, report);
  return { blob, stretched: header("Nlnet-Stretched") === "yes" };
}

/** Send it, and again while the server is busy and somebody waits for reports of it. */
async function patiently(path, file, fields, signal, report) {
  for (let tries = 0; ; tries++) {
    try {
      return await send(path, file, fields, signal, report);
    } catch (error) {
      if (error.status !== 503 || !error.retryAfter || !report || tries === RETRIES) throw error;
      for (let seconds = error.retryAfter; seconds > 0; seconds--) {
        report({ phase: "busy", seconds });
        // A little apart, or all who were refused together come back together.
        await pause(1000 + 200 * Math.random(), signal);
      }
    }
  }
}

/** One request, with news of the upload, of the place in the queue, and of the work if wanted. */
function send(path, file, fields, signal, report) {
  const job = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const body = new FormData();
  for (const [name, value] of Object.entries({ ...fields, job })) body.set(name, value);
  body.set("file", file, file.name || "pasted.png");
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const sent = new AbortController(); // ends the questions about progress
    const stop = () => request.abort();
    const end = (settle, value) => {
      sent.abort();
      signal.removeEventListener("abort", stop);
      settle(value);
    };
    request.open("POST", path);
    request.responseType = "blob";
    if (report) {
      request.upload.onprogress = ({ loaded, total }) =>
        report({ phase: "upload", share: total ? loaded / total : 0 });
      request.upload.onload = () => follow(job, sent.signal, report);
    }
    request.onload = () => {
      const header = (name) => request.getResponseHeader(name);
      if (request.status === 200) end(resolve, { blob: request.response, header });
      else refusal(request, header).then((error) => end(reject, error));
    };
    request.onerror = () =>
      end(reject, new ApiError("The server does not answer. Is it still running?", 0));
    request.onabort = () => end(reject, new DOMException("stopped", "AbortError"));
    if (signal.aborted) return end(reject, new DOMException("stopped", "AbortError"));
    signal.addEventListener("abort", stop, { once: true });
    request.send(body);
  });
}

async function refusal(request, header) {
  let message = `The server answered with status ${request.status}.`;
  try {
    message = JSON.parse(await request.response.text()).detail ?? message;
  } catch {
    // not one of the server's own answers
  }
  return new ApiError(message, request.status, Number(header("Retry-After")));
}

/** Ask how far the work is until there is an answer to the request itself. */
async function follow(job, signal, report) {
  report({ phase: "work", share: null });
  try {
    for (;;) {
      await pause(POLL_MILLISECONDS, signal);
      const response = await fetch(`/api/jobs/${job}`, { signal });
      const { state, ahead, share } = await response.json();
      if (state === "waiting") report({ phase: "queue", ahead });
      if (state === "running") report({ phase: "work", share });
    }
  } catch {
    // There is an answer, or the request will say what is wrong.
  }
}

function fileName(disposition) {
  const encoded = /filename\*=UTF-8''([^;]+)/.exec(disposition ?? "");
  if (encoded) return decodeURIComponent(encoded[1]);
  return /filename="([^"]*)"/.exec(disposition ?? "")?.[1] ?? "denoised.png";
}
