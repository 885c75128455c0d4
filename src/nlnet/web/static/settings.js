// The settings: what the form says, as fields of a request, and in words beside the controls.

import { find } from "/static/page.js";

const SHOWN_BY_BROWSERS = ["jpeg", "png", "webp"];
const KINDS = { 1: "gray", 3: "color" };
let models = [];

/** Take what the server offers; `offerModels` shows the models that fit an image. */
export function takeOffer(offer) {
  models = offer.models;
  for (const option of [...find("noise").options]) {
    if (!offer.noises.includes(option.value)) option.remove();
  }
}

/** What is set, whatever the image. */
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
    jpegQuality: find("format").value === "jpeg" ? find("jpeg-quality").value : null,
  };
}

export const keyOf = (settings) => JSON.stringify(settings);

/** The settings as fields of a request for this image. */
export function fieldsFor(item, settings) {
  const { grain, chroma, format } = settings;
  const native = format === "same" ? item.before.native : SHOWN_BY_BROWSERS.includes(format);
  const fits = models.some((model) => offers(model, settings.model, item.channels));
  return {
    ...noiseFor(item, settings),
    strength: grain === chroma || item.channels === 1 ? `${grain}` : `${grain},${chroma}`,
    ...(fits ? { model: settings.model } : { quality: settings.quality }),
    data_range: settings.white,
    format,
    ...(settings.jpegQuality === null ? {} : { jpeg_quality: settings.jpegQuality }),
    preview: native ? "no" : "yes",
  };
}

/** A strength by hand keeps the kind of noise that was found, unless that has no single one. */
function noiseFor(item, { noise, sigma }) {
  if (noise === "poisson") return { noise, sigma: "auto" };
  const found = item.found?.kind === "camera" ? "camera" : "auto";
  return { noise: noise === "auto" && sigma !== "auto" ? found : noise, sigma };
}

function offers(model, name, channels) {
  return model.channels === channels && [model.name, model.family].includes(name);
}

/** Offer the models that fit the image, of which the number of channels is known once it ran. */
export function offerModels(channels) {
  const select = find("model");
  const chosen = select.value;
  select.replaceChildren(new Option("Automatic", "auto"));
  const fitting = models.filter((model) => model.channels === channels);
  for (const family of new Set(fitting.map((model) => model.family).filter(Boolean))) {
    select.append(new Option(`${family}, nearest strength`, family));
  }
  for (const { name } of fitting) select.append(new Option(name, name));
  select.value = fitting.some((model) => offers(model, chosen, channels)) ? chosen : "auto";
  select.disabled = !fitting.length;
  select.title = fitting.length
    ? `Models for ${KINDS[channels]} images`
    : "Known once the image has been read";
  find("chroma-row").hidden = channels === 1;
}

/** Write beside the controls what they are set to. */
export function showSettings(item) {
  const poisson = find("noise").value === "poisson";
  const automatic = find("automatic").checked || poisson;
  const measured = item?.result && !Number.isNaN(item.result.estimate) ? item.result.estimate : null;
  find("automatic").disabled = poisson;
  find("sigma").disabled = poisson;
  if (automatic && measured) find("sigma").value = measured;
  const level = automatic ? measured : Number(find("sigma").value);
  find("sigma-value").textContent =
    (automatic ? "automatic" : "by hand") + (level ? `, ${level.toFixed(automatic ? 1 : 0)}` : "");
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
