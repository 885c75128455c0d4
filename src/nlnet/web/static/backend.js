// What does the work behind the page. This line names it: here the server that serves the page. The
// page without a server has the engine in its place (scripts/site.py); nothing else differs.

export * from "./server.js";

/**
 * A back end exports these functions. Work can be stopped by a signal; `report` is called with news
 * of it, { phase, share, ahead, seconds }, which `describeNews` puts into words.
 *
 * offer() -> { models, noises, outputs, formats, limits: { bytes, pixels }, place, api }
 *     What can be asked for: models as { name, family, channels }, kinds of noise, formats to save
 *     as, formats that are read. `place` says where images are worked on; `api` is the address of
 *     the page for programmers, or null.
 * open(file, settings, signal, report) -> { blob, width, height, native, stretched, white }
 *     What to show of a file. `native` tells whether `blob` is the file itself.
 * denoise(photo, settings, signal, report) -> result
 *     The photo, { file, before, found, channels }, without its noise: { name, blob, preview }, a
 *     file to save and what to show of it if browsers cannot show that, and what was found and done:
 *     { noise, kind, certainty, estimate, sigma, seconds, channels, model, image, notes }.
 * blend(photo, result, settings, signal, report) -> result
 *     The same for settings that differ from those of a result by strengths of at most 1 only.
 * part(photo, pixels, factor, settings, signal) -> Blob
 *     A part of the photo, given as a PNG file at `factor` of its size, as the settings would have it.
 *
 * What goes wrong is a Problem, whose message is for people.
 */
