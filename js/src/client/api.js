// What the package offers, for a platform.

import { Team } from "./team.js";

const KINDS = ["auto", "white", "poisson", "camera"];
const QUALITIES = ["fast", "best"];
const MOST_STRENGTH = 2;

/** The functions of the package. */
export function makeApi(platform) {
  let team = null; // started when it is asked for first

  function start(threads) {
    team ??= Team.start(platform, threads);
    team.catch(() => {
      team = null;
    });
    return team;
  }

  async function denoise(imageData, options = {}) {
    const { sigma = null, noise = "auto", strength = 1, quality = "fast" } = options;
    const image = checkImage(imageData, options);
    const asked = {
      strength: checkStrength(strength),
      quality: checkOneOf("quality", quality, QUALITIES),
      ...checkNoise(noise, checkSigma(sigma)),
    };
    const { data } = await (await start()).ask("denoise", image, asked, options);
    return platform.makeImage(data, image.width, image.height);
  }

  async function estimateNoise(imageData, options = {}) {
    const kind = checkOneOf("kind", options.kind ?? "auto", KINDS);
    const asked = { kind: kind === "auto" ? "none" : kind };
    const image = checkImage(imageData, options);
    const { noise } = await (await start()).ask("estimate", image, asked, options);
    return noise;
  }

  async function prepare({ threads } = {}) {
    const { threads: count, reason } = await start(threads);
    return { threads: count, reason };
  }

  async function close() {
    const ended = team;
    team = null;
    (await ended)?.end();
  }

  return { denoise, estimateNoise, prepare, close };
}

function checkImage(image, { transfer = false }) {
  const { data, width, height } = image ?? {};
  if (!(data instanceof Uint8ClampedArray || data instanceof Uint8Array)) {
    throw new TypeError("imageData.data must be a Uint8ClampedArray: 8 bits, red green blue alpha.");
  }
  if (data.length !== 4 * width * height || !data.length) {
    throw new RangeError(`imageData has ${data.length} values, but must have 4 x width x height.`);
  }
  return { data, width, height, transfer };
}

function checkSigma(sigma) {
  if (sigma === null || (typeof sigma === "number" && sigma > 0 && sigma <= 255)) return sigma;
  throw new RangeError(`sigma is ${sigma}, but must be above 0 and at most 255.`);
}

function checkStrength(strength) {
  const pair = Array.isArray(strength) ? strength : [strength, strength];
  const right = (share) => typeof share === "number" && share >= 0 && share <= MOST_STRENGTH;
  if (pair.length === 2 && pair.every(right)) return pair;
  throw new RangeError(`strength is ${strength}, but must be from 0 to 2, or a pair for luma and chroma.`);
}

/** What is asked about noise: a record of what it is, or the kind to look for. */
function checkNoise(noise, sigma) {
  if (typeof noise === "object" && noise !== null) {
    if (sigma !== null) throw new TypeError("Both sigma and a noise record are given.");
    return { record: noise, kind: "none", sigma: null };
  }
  const kind = checkOneOf("noise", noise, KINDS);
  if (sigma === null) return { record: null, kind: kind === "auto" ? "none" : kind, sigma };
  if (kind === "poisson") throw new TypeError("sigma is given for noise that depends on brightness.");
  if (kind === "camera") return { record: null, kind, sigma };
  return { record: { kind: "white", sigma, certainty: 1 }, kind: "white", sigma: null };
}

function checkOneOf(name, value, known) {
  if (known.includes(value)) return value;
  throw new TypeError(`${name} is ${value}, but must be one of ${known.join(", ")}.`);
}
