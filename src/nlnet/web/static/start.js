// The example that the start shows: a photo, and the noise that is added to it.

import { find } from "./page.js";

const SIGMA = 25;
const drawn = draw();

/** The example as a PNG file, with white Gaussian noise. */
export async function noisyExample() {
  await drawn;
  const canvas = find("sample-noisy");
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  return new File([blob], "noisy-example.png", { type: "image/png" });
}

async function draw() {
  const photo = new Image();
  photo.src = new URL("./example.jpg", import.meta.url).href;
  await photo.decode();
  const canvas = find("sample-noisy");
  canvas.width = photo.naturalWidth;
  canvas.height = photo.naturalHeight;
  const context = canvas.getContext("2d");
  context.drawImage(photo, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  const { data } = pixels; // red, green, blue and alpha, by turns; values are clipped
  for (let index = 0; index < data.length; index++) {
    if (index % 4 !== 3) data[index] += SIGMA * gaussian();
  }
  context.putImageData(pixels, 0, 0);
}

function gaussian() {
  // Box and Muller; 1 - random() is never 0.
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}
