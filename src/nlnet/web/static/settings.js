// The settings of a photo: what the form says, what it shows, and in words beside the controls.

import { offers } from "./fields.js";
import { find } from "./page.js";

const KINDS = { 1: "gray", 3: "color" };
let models = [];

/** Take what the back end offers; `offerModels` shows the models that fit an image. */
export function takeOffer(offer) {
  models = offer.models;
  find("expert").hidden = !models.length; // where one cannot choose among them, nor name white
  const known = { noise: offer.noises, format: offer.outputs };
  for (const [id, values] of Object.entries(known)) {
    for (const option of [...find(id).options]) {
      if (!values.includes(option.value)) option.remove();
    }
  }
}

/** What the form says. */
export function readSettings() {
  return {
    noise: find("noise").value,
    sigma: find("automatic").checked ? "auto" : find("sigma").value,
    grain: find("grain").value / 100,
    chroma: find("chroma").value / 100,
    model: find("model").value,
    quality: find("quality").value,
    white: Number(find("white").value) > 0 ? find("white").value : "auto",
    format: find("format").value,
    jpegQuality: find("jpeg-quality").value,
  };
}

/** Let the form say this, as far as an image of so many channels can have it. */
export function writeSettings(settings, channels) {
  offerModels(channels, settings.model);
  find("noise").value = settings.noise;
  find("automatic").checked = settings.sigma === "auto";
  if (settings.sigma !== "auto") find("sigma").value = settings.sigma;
  find("grain").value = Math.round(100 * settings.grain);
  find("chroma").value = Math.round(100 * settings.chroma);
  find("quality").value = settings.quality;
  find("white").value = settings.white === "auto" ? "" : settings.white;
  find("format").value = settings.format;
  find("jpeg-quality").value = settings.jpegQuality;
}

/** Stands for all that a file depends on; settings that say the same have the same key. */
export function fileKey({ jpegQuality, ...settings }) {
  return JSON.stringify({ ...settings, jpegQuality: settings.format === "jpeg" && jpegQuality });
}

/** Strengths up to 1 blend a result with the image; only what is above has to be computed. */
export function computed(settings) {
  return {
    ...settings,
    grain: Math.max(1, settings.grain),
    chroma: Math.max(1, settings.chroma),
  };
}

/** Stands for all that has to be computed. */
export const workKey = (settings) => fileKey(computed(settings));

/** Offer the models that fit the image, of which the number of channels is known once it ran. */
export function offerModels(channels, chosen = find("model").value) {
  const select = find("model");
  if (select.value === chosen && select.offered === `${channels} of ${models.length}`) return;
  select.offered = `${channels} of ${models.length}`;
  const fitting = models.filter((model) => model.channels === channels);
  const families = new Set(fitting.map((model) => model.family).filter(Boolean));
  const options = [["Automatic", "auto"]];
  for (const family of families) options.push([`${family}, nearest strength`, family]);
  for (const { name } of fitting) options.push([name, name]);
  select.replaceChildren(...options.map((option) => new Option(...option)));
  select.value = fitting.some((model) => offers(model, chosen, channels)) ? chosen : "auto";
  select.disabled = !fitting.length;
  select.title = fitting.length
    ? `Models for ${KINDS[channels]} images`
    : "Known once the image has been read";
  find("chroma-row").hidden = channels === 1;
}

/** Write beside the controls what they are set to. */
export function describeSettings(photo) {
  const poisson = find("noise").value === "poisson";
  const automatic = find("automatic").checked || poisson;
  const estimate = photo?.result?.estimate ?? NaN;
  const measured = Number.isNaN(estimate) ? null : estimate;
  find("automatic").disabled = poisson;
  find("sigma").disabled = poisson;
  if (automatic && measured) find("sigma").value = measured;
  const level = automatic ? measured : Number(find("sigma").value);
  find("sigma-value").textContent =
    level ? `${automatic ? "found" : "by hand"}, ${level.toFixed(automatic ? 1 : 0)}` : "";
  find("sigma").setAttribute("aria-valuetext", `sigma ${level ?? "automatic"}`);
  showShare("grain", "all of it");
  showShare("chroma", "all of them");
  find("quality").disabled = find("model").value !== "auto";
  find("jpeg-quality-value").textContent = find("jpeg-quality").value;
  find("jpeg-quality-row").hidden = find("format").value !== "jpeg";
}

function showShare(id, all) {
  const share = Number(find(id).value);
  const words = { 0: "leave as is", 100: all }[share] ?? `${share} %`;
  find(`${id}-value`).textContent = words;
  find(id).setAttribute("aria-valuetext", words);
}
