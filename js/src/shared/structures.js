// The structures and numbers of engine/include/nlnet_engine.h, with their names and their order.

import { struct } from "./layout.js";

export const VERSION = 3; // NLNET_ENGINE_VERSION
export const SCALES = 3; // NLNET_SCALES
export const UINT8 = 0; // of nlnet_type
export const FLOAT = 0; // of nlnet_element
export const BEST = 0; // of nlnet_set

/** nlnet_progress_state */
export const [RAN, IDLE, DONE, CANCELLED] = [0, 1, 2, 3];

/** nlnet_noise_kind */
export const [WHITE, DEPENDENT, CAMERA] = [0, 1, 2];

/** nlnet_found_kind, in words; "none" asks for whichever there is. */
export const KINDS = ["none", "white", "poisson", "camera"];

/** nlnet_status, in words. */
export const STATUSES = [
  "",
  "The model is damaged.",
  "The model is of another version.",
  "The engine was called with an argument that cannot be.",
  "The image has too few pixels.",
  "There is too little memory.",
  "The engine lacks an instruction set.",
  "The image has values that are too large beside its noise.",
];

export const Rows = struct({
  data: "pointer",
  channel_stride: "i32",
  row_stride: "i32",
  column_stride: "i32",
  rows: "pointer",
  context: "pointer",
});

export const Pixels = struct({ type: "i32", rows: Rows });

export const Level = struct({ gain: "f64", offset: "f64", points: "pointer", count: "i64" });

export const Noise = struct({
  kind: "i32",
  level_count: "i32",
  sigma: "f64",
  levels: "pointer",
  strengths: "pointer",
  rows: "i64",
  columns: "i64",
  certainty: "f64",
});

export const RemovalTask = struct({
  height: "i64",
  width: "i64",
  channels: "i32",
  noisy: Pixels,
  denoised: Pixels,
  noise: Noise,
  luma: "f64",
  chroma: "f64",
  span: "f64",
  black: "f64",
  low: "f64",
  high: "f64",
  place: "pointer",
  elsewhere: "pointer",
  context: "pointer",
  threads: "i32",
  tile_rows: "i32",
});

export const Grid = struct({ rows: "i64", columns: "i64", height: "i64", width: "i64" });

export const Planes = struct({
  data: "pointer",
  channels: "i64",
  height: "i64",
  width: "i64",
  channel_stride: "i32",
  row_stride: "i32",
  column_stride: "i32",
});

export const Extremes = struct({
  low: "f64",
  high: "f64",
  low_count: "i64",
  high_count: "i64",
  count: "i64",
});

export const Sample = struct({
  extremes: Extremes,
  type: "i32",
  channels: "i32",
  pages: "i64",
  grid: Grid,
  tiles: "pointer",
});

export const Measures = struct({ low: "f64", high: "f64", step: "f64", mean: "f64" });

export const Photons = struct({ gain: "f64", read: "f64", black: "f64" });

export const FoundNoise = struct({
  kind: "i32",
  looked: "i32",
  sigma: "f64",
  certainty: "f64",
  photons: [Photons, 3],
  strengths: "pointer",
  rows: "i64",
  columns: "i64",
  odds: ["f64", 4],
  slope: "f64",
  foot: "f64",
  variation: "f64",
});

export const EstimateTask = struct({
  sample: Sample,
  measures: Measures,
  kind: "i32",
  set: "i32",
  threads: "i32",
  found: "pointer",
});
