// The page: an image comes in, is denoised with the settings, and can be looked at and saved.

import { ApiError, denoise, getModels, preview } from "/static/api.js";
import { noisyExample } from "/static/example.js";
import { Viewer } from "/static/viewer.js";

const RETRIES = 20;

const find = (id) => document.getElementById(id);
const viewer = new Viewer();
let limits = null;
let picture = null; // the file that is worked on, and whether the browser can show its kind
let running = null; // what ends the work under way

// Images come in by drop, paste, choice, or as an example.

async function open(file) {
  stop();
  say("");
  if (limits && file.size > limits.upload_bytes) {
    const most = Math.floor(limits.upload_bytes / 2 ** 20);
    complain(`“${file.name}” is larger than ${most} MB, the most that is taken.`);
    return;
  }
  const work = begin("Reading");
  try {
    const shown = await show(file, work.signal);
    picture = { file, native: shown.native };
    find("start").hidden = true;
    find("purpose").hidden = true;
    find("viewer").hidden = false;
    find("actions").hidden = false;
    find("message").hidden = true;
    clearResult();
    viewer.showBefore(shown.url, shown.width, shown.height);
    await run();
  } catch (error) {
    report(error, work);
  }
}

/** A URL that an image element can show, and the image's size. */
async function show(blob, signal, native = true) {
  const url = URL.createObjectURL(native ? blob : await preview(blob, signal));
  const image = new Image();
  image.src = url;
  try {
    await image.decode();
  } catch {
    URL.revokeObjectURL(url);
    if (native) return show(blob, signal, false); // the server may know the format
    throw new ApiError("The browser cannot show this image.", 0);
  }
  return { url, native, width: image.naturalWidth, height: image.naturalHeight };
}

// Denoising, whenever the image or a setting changes

async function run() {
  if (!picture) return;
  const work = begin("Denoising");
  find("message").hidden = true;
  const sigma = find("automatic").checked ? "auto" : find("sigma").value;
  try {
    const result = await patiently(() =>
      denoise(picture.file, sigma, find("model").value, work.signal),
    );
    const shown = await show(result.blob, work.signal, picture.native);
    if (work.signal.aborted) return;
    finish(work);
    present(result, shown.url);
  } catch (error) {
    report(error, work);
  }
}

/** Try again while the server is busy, as often and as late as it says. */
async function patiently(attempt) {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (error.status !== 503 || !error.retryAfter || tries === RETRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.retryAfter));
    }
  }
}

function present(result, url) {
  const old = find("after").src;
  viewer.showAfter(url);
  if (old) URL.revokeObjectURL(old);
  const download = find("download");
  if (download.href) URL.revokeObjectURL(download.href);
  download.href = URL.createObjectURL(result.blob);
  download.download = result.name;
  download.hidden = false;
  const measured = measurement(result);
  find("fact-noise").textContent = measured;
  find("fact-sigma").textContent = `sigma ${result.sigma.toFixed(1)}`;
  find("by-hand").hidden = find("automatic").checked;
  find("fact-time").textContent = `${result.seconds.toFixed(2)} s`;
  find("fact-model").textContent = result.model;
  find("fact-image").textContent = result.image;
  find("fact-notes").textContent = result.notes;
  find("noted").hidden = !result.notes;
  find("result").hidden = false;
  if (find("automatic").checked) {
    find("sigma").value = result.sigma;
    find("sigma-value").textContent = result.sigma ? `${result.sigma.toFixed(1)}, measured` : "none";
  }
  say(`Done in ${result.seconds.toFixed(2)} seconds; noise measured: ${measured}.`);
}

function measurement({ estimate, model }) {
  if (Number.isNaN(estimate)) return "image too small";
  if (model === "none") return "none, so it stays as it is";
  return `sigma ${estimate.toFixed(1)}`;
}

function clearResult() {
  viewer.hideAfter();
  find("result").hidden = true;
  find("download").hidden = true;
}

// The state of the work, for eyes and for screen readers

function begin(text) {
  stop();
  const work = new AbortController();
  const start = performance.now();
  const tick = () => {
    const seconds = Math.floor((performance.now() - start) / 1000);
    find("busy-text").textContent = seconds < 2 ? `${text} …` : `${text} … ${seconds} s`;
  };
  tick();
  work.timer = setInterval(tick, 500);
  find("busy").hidden = false;
  say(`${text} …`);
  running = work;
  return work;
}

function finish(work) {
  clearInterval(work.timer);
  if (running !== work) return;
  running = null;
  find("busy").hidden = true;
}

function stop() {
  if (!running) return;
  running.abort();
  finish(running);
}

function report(error, work) {
  if (error.name === "AbortError") return;
  finish(work);
  complain(error.message);
  if (!(error instanceof ApiError)) throw error;
}

function complain(message) {
  find("message-text").textContent = message;
  find("message").hidden = false;
  say("");
}

function say(text) {
  find("status").textContent = text;
}

// Settings

function showSigma() {
  const automatic = find("automatic").checked;
  find("sigma").disabled = automatic;
  find("sigma-value").textContent = automatic ? "automatic" : find("sigma").value;
}

function offerModels(models) {
  const groups = { 1: "For gray images", 3: "For color images" };
  for (const [channels, label] of Object.entries(groups)) {
    const group = document.createElement("optgroup");
    group.label = label;
    const offered = models.filter((model) => model.channels === Number(channels));
    for (const family of new Set(offered.map((model) => model.family).filter(Boolean))) {
      group.append(new Option(`${family}, nearest sigma`, family));
    }
    for (const { name } of offered) group.append(new Option(name, name));
    if (offered.length) find("model").append(group);
  }
}

find("panel").addEventListener("submit", (event) => event.preventDefault());
find("sigma").addEventListener("input", showSigma);
find("sigma").addEventListener("change", run);
find("model").addEventListener("change", run);
find("automatic").addEventListener("change", () => {
  showSigma();
  run();
});
find("dismiss").addEventListener("click", () => {
  find("message").hidden = true;
});
find("cancel").addEventListener("click", () => {
  stop();
  say("Cancelled.");
  find("view").focus();
});

for (const button of document.querySelectorAll("[data-choose]")) {
  button.addEventListener("click", () => find("file").click());
}
find("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) open(file);
  event.target.value = ""; // so that the same file can be chosen again
});
find("example").addEventListener("click", async () => open(await noisyExample()));

document.addEventListener("paste", (event) => {
  const [file] = event.clipboardData.files;
  if (file) open(file);
  else complain("The clipboard holds no image.");
});

let depth = 0; // of elements under the drag, each of which reports its own coming and going
const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
document.addEventListener("dragenter", (event) => {
  if (carriesFiles(event)) find("veil").hidden = ++depth === 0;
});
document.addEventListener("dragleave", (event) => {
  if (carriesFiles(event)) find("veil").hidden = --depth <= 0;
});
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  depth = 0;
  find("veil").hidden = true;
  const [file] = event.dataTransfer.files;
  if (file) open(file);
  else complain("What was dropped is no file.");
});

try {
  const offer = await getModels();
  limits = offer.limits;
  offerModels(offer.models);
  const megabytes = Math.floor(limits.upload_bytes / 2 ** 20);
  const megapixels = Math.floor(limits.pixels / 1e6);
  const formats = limits.formats.join(", ");
  find("accepted").textContent = `${formats}; up to ${megabytes} MB and ${megapixels} megapixels`;
} catch (error) {
  complain(error.message);
}
