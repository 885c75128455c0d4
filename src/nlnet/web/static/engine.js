// The engine in this browser as the back end of the page (backend.js): nothing leaves the device.

import { denoise as remove, prepare } from "../nlnet/src/browser.js";
import { noiseFor, noiseOfPart } from "./fields.js";
import { goOffline } from "./offline.js";
import { find, measure, unless } from "./page.js";
import { Problem } from "./problem.js";
import { startWorker } from "./workers.js";

const TYPES = { jpeg: "image/jpeg", png: "image/png" };
const SUFFIXES = { "image/jpeg": ".jpg", "image/png": ".png" };
const MOST_BYTES = 200 * 2 ** 20;
const MOST_PIXELS = 50e6;
const WORDS = {
  none: "no noise worth removing",
  white: "white noise",
  poisson: "photon noise",
  camera: "camera noise, correlated",
};
const ask = startWorker(new URL("./codec.js", import.meta.url));

/** What can be asked for; as `backend.js` says. */
export async function offer() {
  await goOffline(() => !find("start").hidden);
  const { threads, reason } = await prepare();
  const how = threads > 1 ? `on ${threads} threads` : "on one thread";
  const why = reason ? `, because ${reason}` : "";
  return {
    models: [],
    noises: ["auto", "white", "poisson", "camera"],
    outputs: ["same", "jpeg", "png"],
    formats: ["PNG", "JPEG", "WebP", "AVIF", "GIF", "BMP", "HEIC where the browser can"],
    limits: { bytes: MOST_BYTES, pixels: MOST_PIXELS },
    place: `Images never leave this device: the work is done in this browser, ${how}${why}.`,
    api: null,
  };
}

export async function open(file, { white }, signal) {
  const size = await unless(signal, measure(file));
  if (size) return { ...size, blob: file, native: true, stretched: false, white };
  throw new Problem(
    "This browser cannot read the file. Raw files, TIFF, HEIC and scientific formats need the " +
      "nlnet command, or its server.",
  );
}

export async function denoise(photo, settings, signal, report) {
  const began = performance.now();
  const { noise, sigma } = noiseFor(photo, settings);
  const given = sigma === "auto" ? null : Number(sigma);
  const pixels = await unless(signal, ask("decode", { file: photo.file }));
  const { channels } = pixels;
  let found = known(photo, noise, given);
  const { data, width, height } = await remove(pixels, {
    noise: found ?? noise,
    sigma: given,
    strength: [settings.grain, settings.chroma],
    quality: settings.quality,
    signal,
    onProgress: (share) => report?.({ phase: "work", share }),
    onNoise: (record) => {
      found = record;
    },
    transfer: true,
  });
  const seconds = (performance.now() - began) / 1000;
  const denoised = { data, width, height }; // an ImageData would be copied on its way to the codec
  const saved = await unless(signal, encoded(photo.file, denoised, settings, found));
  const about = found.kind === "none" ? "" : `, about ${Number(found.sigma.toPrecision(2))}`;
  return {
    ...saved,
    preview: null,
    record: { found, noise },
    noise: `${WORDS[found.kind]}${about}`,
    kind: found.kind,
    certainty: found.certainty,
    estimate: given === null ? found.sigma : NaN,
    sigma: found.kind === "none" ? 0 : found.sigma,
    seconds,
    channels,
    model: found.kind === "none" ? "none" : modelOf(channels, settings.quality),
    image: describe(photo, channels),
  };
}

/** What was found is known, so only the network runs once more; the file is written from that. */
export function blend(photo, result, settings, signal, report) {
  return denoise(photo, settings, signal, report);
}

export async function part(photo, file, factor, settings, signal) {
  const { noise, sigma } = noiseOfPart(photo, noiseFor(photo, settings), factor);
  const pixels = await ask("decode", { file });
  const { data, width, height } = await remove(pixels, {
    noise,
    ...(sigma === "auto" ? {} : { sigma: Number(sigma) }),
    strength: [settings.grain, settings.chroma],
    quality: settings.quality,
    signal,
    transfer: true,
  });
  const given = { file, pixels: { data, width, height }, type: "image/png", quality: null };
  return (await ask("encode", given, [data.buffer])).blob;
}

/** The noise of a photo, if it was found before and neither strength nor another kind is given. */
function known(photo, noise, sigma) {
  const last = photo.found?.record;
  return sigma === null && last?.noise === noise ? last.found : null;
}

/** The file to save, and what there is to say about it. */
async function encoded(file, pixels, { format, jpegQuality, sigma }, { kind }) {
  const own = SUFFIXES[file.type] ? file.type : "image/png";
  const type = format === "same" ? own : TYPES[format];
  const stem = file.name.replace(/\.[^.]*$/, "") || "image";
  const name = `${stem}-denoised`;
  const asIs = { name: name + (/\.[^.]*$/.exec(file.name)?.[0] ?? ""), blob: file };
  if (kind === "none" && format === "same") return { ...asIs, notes: "" };
  const quality = format === "jpeg" ? Number(jpegQuality) : null;
  const given = { file, pixels, type, quality, insists: sigma !== "auto" };
  const written = await ask("encode", given, [pixels.data.buffer]);
  if (!written) {
    const why = "its noise is weaker than what encoding it again would lose, so it stays as it is";
    return { ...asIs, notes: why };
  }
  const { blob, notes } = written;
  if (format === "same" && type !== file.type) notes.push("it is saved as PNG");
  return { name: name + SUFFIXES[type], blob, notes: notes.join("; ") };
}

const modelOf = (channels, quality) =>
  `${channels === 1 ? "gray" : "color"}${quality === "best" ? "-plus" : ""}`;

function describe({ before, file }, channels) {
  const kind = file.type.replace("image/", "").toUpperCase();
  return `${before.width} x ${before.height}, ${channels === 1 ? "gray" : "color"} ${kind}`;
}
