// The server as the back end of the page (backend.js). Every request can be stopped, and waits its turn when it is busy.

import { fieldsFor, noiseOfPart } from "./fields.js";
import { measure, pause, unless } from "./page.js";
import { Problem } from "./problem.js";

const SILENT = "The server does not answer. Is it still running?";
const RETRIES = 40;
const POLL_MILLISECONDS = 400;

let models = []; // on offer

/** What can be asked for; as `backend.js` says. */
export async function offer() {
  const response = await fetch("api/models").catch(() => null);
  if (!response?.ok) throw new Problem(SILENT);
  const { noises, limits, ...more } = await response.json();
  models = more.models;
  return {
    models,
    noises,
    outputs: ["same", "jpeg", "png", "tiff", "webp"],
    formats: limits.formats,
    limits: { bytes: limits.upload_bytes, pixels: limits.pixels },
    place: "Images are worked on in the memory of this server, and never stored.",
    api: "docs",
  };
}

/** What to show of a file: itself, or what the server makes of it. */
export async function open(file, { white }, signal, report) {
  const size = await unless(signal, measure(file));
  if (size) return { ...size, blob: file, native: true, stretched: false, white };
  const sent = await patiently("api/preview", file, { data_range: white }, signal, report);
  const seen = await unless(signal, measure(sent.blob));
  if (!seen) throw new Problem("The browser cannot show this image.");
  const stretched = sent.header("Nlnet-Stretched") === "yes";
  return { ...seen, blob: sent.blob, native: false, stretched, white };
}

/** The denoised file, its preview if browsers need one, and what the server says about it. */
export function denoise(photo, settings, signal, report) {
  report?.({ phase: "upload", share: 0 });
  return ask(photo.file, fieldsFor(photo, settings, models), signal, report);
}

/** The server does not keep anything, so it denoises once more; the result is the same to the bit. */
export function blend(photo, result, settings, signal, report) {
  return denoise(photo, settings, signal, report);
}

/** The noise is that of the whole image, as far as it is known; the part comes back as PNG. */
export async function part(photo, pixels, factor, settings, signal) {
  const fields = fieldsFor(photo, settings, models);
  const noise = noiseOfPart(photo, fields, factor);
  const whole = { ...fields, ...noise, data_range: "auto", format: "png", preview: "no" };
  delete whole.jpeg_quality;
  return (await ask(pixels, whole, signal, null)).blob;
}

async function ask(file, fields, signal, report) {
  const { blob, header } = await patiently("api/denoise", file, fields, signal, report);
  const number = (name) => Number(header(name) ?? NaN);
  const result = {
    name: fileName(header("Content-Disposition")),
    noise: header("Nlnet-Noise") ?? "",
    kind: header("Nlnet-Noise-Kind") ?? "",
    certainty: number("Nlnet-Certainty"),
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
  const whole = form.get("file");
  return {
    ...result,
    name: decodeURIComponent(whole.name),
    blob: new Blob([whole], { type: whole.type }),
    preview: form.get("preview"),
  };
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
    request.onerror = () => end(reject, new Problem(SILENT));
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
  return new Problem(message, request.status, Number(header("Retry-After")));
}

/** Ask how far the work is until there is an answer to the request itself. */
async function follow(job, signal, report) {
  report({ phase: "work", share: null });
  try {
    for (;;) {
      await pause(POLL_MILLISECONDS, signal);
      const response = await fetch(`api/jobs/${job}`, { signal });
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
