import assert from "node:assert/strict";
import { after, test } from "node:test";

import { close, denoise, estimateNoise, prepare } from "../src/node.js";

after(close);

/** A ramp with noise that is the same every time. */
function noisy(width, height) {
  const data = new Uint8ClampedArray(4 * width * height);
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const gaussian = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  for (let at = 0; at < data.length; at += 4) {
    const column = (at / 4) % width;
    for (let channel = 0; channel < 3; channel++) {
      data[at + channel] = 60 + (120 * column) / width + 20 * gaussian();
    }
    data[at + 3] = (at / 4) % 256;
  }
  return { data, width, height };
}

const roughness = ({ data }) => {
  let sum = 0;
  for (let at = 0; at + 4 < data.length; at += 4) sum += Math.abs(data[at] - data[at + 4]);
  return sum;
};

test("noise is found and removed, and alpha stays", async () => {
  const image = noisy(160, 120);
  const noise = await estimateNoise(image);
  assert.equal(noise.kind, "white");
  assert.ok(Math.abs(noise.sigma - 20) < 1.5);
  const shares = [];
  const result = await denoise(image, { noise, onProgress: (share) => shares.push(share) });
  assert.ok(roughness(result) < roughness(image) / 4);
  assert.equal(shares.at(-1), 1);
  assert.ok(shares.every((share, index) => !index || share >= shares[index - 1]));
  for (let at = 3; at < image.data.length; at += 4) assert.equal(result.data[at], image.data[at]);
});

test("work that is stopped ends at once, and the next one is right", async () => {
  const image = noisy(900, 700);
  const control = new AbortController();
  const work = denoise(image, {
    signal: control.signal,
    onProgress: (share) => share > 0.15 && control.abort(),
  });
  await assert.rejects(work, { name: "AbortError" });
  const began = performance.now();
  await estimateNoise(noisy(64, 64));
  assert.ok(performance.now() - began < 5000);
});

test("what cannot be is refused with a sentence", async () => {
  const image = noisy(40, 40);
  await assert.rejects(denoise({ data: [1, 2], width: 1, height: 1 }), /Uint8ClampedArray/);
  await assert.rejects(denoise({ ...image, width: 41 }), /4 x width x height/);
  await assert.rejects(denoise(image, { sigma: -1 }), /sigma is -1/);
  await assert.rejects(denoise(image, { strength: 3 }), /strength is 3/);
  await assert.rejects(denoise(image, { noise: "pink" }), /one of auto, white/);
  await assert.rejects(denoise(image, { quality: "good" }), /one of fast, best/);
  await assert.rejects(denoise(noisy(5, 5)), /too few pixels/);
});

test("it says how many threads work", async () => {
  const { threads, reason } = await prepare();
  assert.ok(threads >= 1);
  assert.equal(reason, "");
});
