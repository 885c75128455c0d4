/** Red, green, blue and alpha of 8 bits, as of `context.getImageData()`; in Node a plain object. */
export interface Image {
  readonly data: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

export type NoiseKind = "none" | "white" | "poisson" | "camera";

/** What the noise of an image is, if white is 255. `denoise` takes it as `noise`. */
export interface Noise {
  readonly kind: NoiseKind;
  /** Standard deviation, on average over the image. */
  readonly sigma: number;
  /** How sure it is that there is noise, or none if that is the kind, from 0 to 1. */
  readonly certainty: number;
  /** Of photon noise, for every channel: the variance is gain * (x - black) + read ** 2. */
  readonly photons?: readonly { gain: number; read: number; black: number }[];
  /**
   * Of camera noise: standard deviations of luma and chroma, each at the full size and after
   * averaging squares of 2x2 and 4x4 pixels, as maps over the image, (2, 3, rows, columns).
   */
  readonly strengths?: Float32Array;
  readonly rows?: number;
  readonly columns?: number;
}

export interface Options {
  /** Stops the work. */
  signal?: AbortSignal;
  /** Called with the share of the work that is done, from 0 to 1. */
  onProgress?: (share: number) => void;
  /** Give the pixels away instead of copying them: `data` is empty afterwards. */
  transfer?: boolean;
}

export interface DenoiseOptions extends Options {
  /** Standard deviation of the noise, above 0 and up to 255; by default it is estimated. */
  sigma?: number | null;
  /** The kind of noise, or what `estimateNoise` found; "auto" by default. */
  noise?: "auto" | "white" | "poisson" | "camera" | Noise;
  /** How much to remove, from 0 to 2, where 1 is what was found; or a pair for luma and chroma. */
  strength?: number | readonly [luma: number, chroma: number];
  /** "best" takes longer, and loads a larger model. */
  quality?: "fast" | "best";
  /** Called with the noise once it is known. */
  onNoise?: (noise: Noise) => void;
}

export interface EstimateOptions extends Options {
  /** Insist on this kind of noise, and find only how strong it is. */
  kind?: "auto" | "white" | "poisson" | "camera";
}

/** Remove the noise of an image; alpha stays as it is. In browsers the result is an ImageData. */
export function denoise(
  imageData: Image,
  options?: DenoiseOptions,
): Promise<{ readonly data: Uint8ClampedArray; readonly width: number; readonly height: number }>;

/** Find out what the noise of an image is. */
export function estimateNoise(imageData: Image, options?: EstimateOptions): Promise<Noise>;

/**
 * Start the workers, and tell how many threads there are; `reason` says why there is only one where
 * memory cannot be shared. Without this, they are started when they are needed.
 */
export function prepare(options?: { threads?: number }): Promise<{ threads: number; reason: string }>;

/** End the workers; what is asked for later starts new ones. */
export function close(): Promise<void>;
