// The server, as functions.

/** An answer that is no result; its message is for people. */
export class ApiError extends Error {
  constructor(message, status, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer. Is it still running?", 0);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const message = body.detail ?? `The server answered with status ${response.status}.`;
  throw new ApiError(message, response.status, Number(response.headers.get("Retry-After")));
}

/** The models on offer, and the server's limits. */
export async function getModels() {
  return (await ask("/api/models")).json();
}

/** The denoised file, and what the server says about it. */
export async function denoise(file, sigma, model, signal) {
  const body = new FormData();
  body.set("file", file, file.name || "pasted.png");
  body.set("sigma", sigma);
  body.set("model", model);
  const response = await ask("/api/denoise", { method: "POST", body, signal });
  const number = (name) => Number(response.headers.get(name) ?? NaN);
  return {
    blob: await response.blob(),
    name: fileName(response.headers.get("Content-Disposition")),
    estimate: number("Nlnet-Noise-Estimate"),
    sigma: number("Nlnet-Sigma"),
    seconds: number("Nlnet-Seconds"),
    model: response.headers.get("Nlnet-Model"),
    image: response.headers.get("Nlnet-Image"),
    notes: response.headers.get("Nlnet-Notes") ?? "",
  };
}

/** The image as a PNG file that every browser can show. */
export async function preview(file, signal) {
  const body = new FormData();
  body.set("file", file, file.name || "pasted.png");
  return (await ask("/api/preview", { method: "POST", body, signal })).blob();
}

function fileName(disposition) {
  const encoded = /filename\*=UTF-8''([^;]+)/.exec(disposition ?? "");
  return encoded ? decodeURIComponent(encoded[1]) : "denoised.png";
}
