// Settings as fields of a request to the server.

const SHOWN_BY_BROWSERS = ["jpeg", "png", "webp"];

/** Whether a choice of models, by its name or its family, means a model for such images. */
export const offers = (model, name, channels) =>
  model.channels === channels && [model.name, model.family].includes(name);

/** The fields of a request for a photo; `models` are those on offer. */
export function fieldsFor(photo, settings, models) {
  const { grain, chroma, format } = settings;
  const native = format === "same" ? photo.before.native : SHOWN_BY_BROWSERS.includes(format);
  const fits = models.some((model) => offers(model, settings.model, photo.channels));
  return {
    ...noiseFor(photo, settings),
    strength: grain === chroma || photo.channels === 1 ? `${grain}` : `${grain},${chroma}`,
    ...(fits ? { model: settings.model } : { quality: settings.quality }),
    data_range: settings.white,
    format,
    ...(format === "jpeg" ? { jpeg_quality: settings.jpegQuality } : {}),
    preview: native ? "no" : "yes",
  };
}

/** A strength by hand keeps the kind of noise that was found, unless that has no single one. */
export function noiseFor(photo, { noise, sigma }) {
  if (noise === "poisson") return { noise, sigma: "auto" };
  const found = photo.found?.kind === "camera" ? "camera" : "auto";
  return { noise: noise === "auto" && sigma !== "auto" ? found : noise, sigma };
}

/** The same for a part of a photo, at `factor` of its size: as far as the noise of all is known. */
export function noiseOfPart({ found }, { noise, sigma }, factor) {
  if (sigma !== "auto") return { noise, sigma: sigma * factor }; // as averages of pixels have it
  const known = found && noise !== "poisson" && found.kind !== "poisson" && found.sigma > 0;
  if (!known || factor !== 1) return { noise, sigma };
  const camera = found.kind === "camera" && noise === "auto";
  return { noise: camera ? "camera" : noise, sigma: found.sigma };
}
