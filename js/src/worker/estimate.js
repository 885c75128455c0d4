// What the noise of an image is: the engine's estimate, asked for an image in its memory.

import { Extremes, EstimateTask, FoundNoise, Grid, KINDS } from "../shared/structures.js";
import { BEST, Measures, Planes, Sample, UINT8 } from "../shared/structures.js";
import { run } from "./jobs.js";

/** Red, green and blue (or gray) of RGBA pixels, for the engine; alpha is left out. */
export const stridesOf = (image) => ({
  channel_stride: 1,
  row_stride: 4 * image.width,
  column_stride: 4,
});

/** A sample of an image, { at, width, height, channels }, and what its values fill. */
export function takeSample(engine, scope, image) {
  const { at, width, height, channels } = image;
  const planesAt = (row, column, high, wide) => ({
    data: at + 4 * (row * width + column),
    channels,
    height: high,
    width: wide,
    ...stridesOf(image),
  });
  const extremes = scope.put(Extremes);
  const whole = scope.put(Planes, planesAt(0, 0, height, width));
  engine.check(engine.calls.nlnet_find_extremes(whole, UINT8, extremes));
  const gridAt = scope.put(Grid);
  engine.check(engine.calls.nlnet_sample_grid(BigInt(height), BigInt(width), 1n, gridAt));
  const grid = scope.read(gridAt, Grid);
  const starts = (count, side, tile) =>
    Array.from({ length: count }, (_, number) =>
      Number(engine.calls.nlnet_tile_start(...[number, count, side, tile].map(BigInt))),
    );
  const tiles = starts(grid.rows, height, grid.height).flatMap((row) =>
    starts(grid.columns, width, grid.width).map((column) =>
      planesAt(row, column, grid.height, grid.width),
    ),
  );
  const sample = {
    extremes: scope.read(extremes, Extremes),
    type: UINT8,
    channels,
    pages: 1,
    grid,
    tiles: scope.array(Planes, tiles),
  };
  const measures = scope.put(Measures);
  const given = scope.put(Sample, sample);
  engine.inMemory(scope, (memory, size) =>
    engine.calls.nlnet_measure_sample(given, memory, size, measures),
  );
  return { sample, measures: scope.read(measures, Measures) };
}

/** The noise of an image, as a record; `kind` insists on one, "none" on none. */
export async function estimate(session, scope, image, taken, kind, task) {
  const { engine, crew, turn, threads } = session;
  if (!(taken.measures.high > taken.measures.low)) return { kind: "none", sigma: 0, certainty: 1 };
  const found = scope.put(FoundNoise);
  const eye = ["white", "poisson"].includes(kind) ? 0 : (await session.models.eye()).handle;
  const asked = scope.put(EstimateTask, {
    ...taken,
    kind: KINDS.indexOf(kind),
    set: BEST,
    threads,
    found,
  });
  const job = scope.take(4);
  engine.inMemory(scope, (memory, size) =>
    engine.calls.nlnet_estimate_noise(eye, asked, memory, size, job),
  );
  await run(engine, engine.view.getUint32(job, true), crew, turn, task);
  return asRecord(engine, scope.read(found, FoundNoise), image.channels, taken.measures.mean);
}

function asRecord(engine, found, channels, mean) {
  const { sigma, certainty, rows, columns } = found;
  const kind = KINDS[found.kind];
  const record = { kind, sigma, certainty };
  if (kind === "poisson") {
    record.photons = found.photons.slice(0, channels);
    const variances = record.photons.map(({ gain, read, black }) => gain * (mean - black) + read ** 2);
    record.sigma = Math.sqrt(Math.max(0, ...variances)); // about, to be told
  }
  if (kind === "camera") {
    const strengths = engine.floats(found.strengths, 6 * rows * columns).slice();
    Object.assign(record, { strengths, rows, columns });
  }
  return record;
}
