// Removing the noise of an image: the engine's removal, asked for an image in its memory.

import { CAMERA, DEPENDENT, Level, Noise, RemovalTask } from "../shared/structures.js";
import { SCALES, UINT8, WHITE } from "../shared/structures.js";
import { stridesOf } from "./estimate.js";
import { run } from "./jobs.js";

const BOX = { low: 0, high: 255 }; // that of 8 bits, which values never leave

/** Remove noise, a record of `estimate`, into the memory at `target`; alpha is not touched. */
export async function remove(session, scope, image, target, taken, noise, options, task) {
  const { engine, crew, turn, threads, models } = session;
  const { width, height, channels, at } = image;
  const record = noiseFor(scope, noise);
  const [span, black] = fill(engine, scope, record, taken.measures);
  const pixels = (data) => ({ type: UINT8, rows: { data, ...stridesOf(image) } });
  const asked = scope.put(RemovalTask, {
    height,
    width,
    channels,
    noisy: pixels(at),
    denoised: pixels(target),
    noise: record,
    luma: options.strength[0],
    chroma: options.strength[1],
    span,
    black,
    ...BOX,
    threads,
  });
  const networks = scope.take(4 * SCALES);
  const handles = [];
  for (const sigma of sigmasOf(engine, scope, asked)) {
    handles.push(sigma > 0 ? await models.network(options.quality, channels, sigma) : 0);
  }
  for (let scale = 0; scale < SCALES; scale++) {
    engine.view.setUint32(networks + 4 * scale, handles[scale] ?? 0, true);
  }
  const job = scope.take(4);
  engine.inMemory(scope, (memory, size) =>
    engine.calls.nlnet_remove(networks, asked, memory, size, job),
  );
  await run(engine, engine.view.getUint32(job, true), crew, turn, task);
}

/** A record as the engine takes it. */
function noiseFor(scope, { kind, sigma, certainty, photons, strengths, rows, columns }) {
  if (kind === "white") return { kind: WHITE, sigma, certainty: 1 };
  if (kind === "camera") {
    return { kind: CAMERA, strengths: scope.copy(strengths), rows, columns, certainty };
  }
  const levels = photons.map(({ gain, read, black }) => ({
    gain,
    offset: read * read - gain * black,
  }));
  return {
    kind: DEPENDENT,
    level_count: levels.length,
    levels: scope.array(Level, levels),
    certainty: 1,
  };
}

/** What the values fill for the networks, and where that begins. */
function fill(engine, scope, record, { low, high }) {
  const at = scope.take(16);
  const noise = scope.put(Noise, record);
  engine.check(engine.calls.nlnet_fill(noise, low, high, at, at + 8));
  return [engine.view.getFloat64(at, true), engine.view.getFloat64(at + 8, true)];
}

/** For which white noise networks are needed, at the full size and at smaller ones. */
function sigmasOf(engine, scope, task) {
  const at = scope.take(8 + 8 * SCALES);
  engine.check(engine.calls.nlnet_removal_sigmas(task, at, at + 8));
  const scales = engine.view.getInt32(at, true);
  return Array.from({ length: scales }, (_, scale) =>
    engine.view.getFloat64(at + 8 + 8 * scale, true),
  );
}
