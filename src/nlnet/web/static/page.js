// The page's elements, its messages, and the URLs it makes.

export const find = (id) => document.getElementById(id);

/** A message that stays in view until it is dismissed, or the next thing is tried. */
export function complain(text) {
  find("message-text").textContent = text;
  find("message").hidden = false;
  say("");
}

export function calm() {
  find("message").hidden = true;
}

/** Tell screen readers, and nobody else. */
export function say(text) {
  find("status").textContent = text;
}

/** Let an element show a blob, or nothing; the URL of what it showed before is released. */
export function setBlob(element, blob, attribute = "src") {
  const old = element.getAttribute(attribute);
  if (blob) element.setAttribute(attribute, URL.createObjectURL(blob));
  else element.removeAttribute(attribute);
  if (old?.startsWith("blob:")) URL.revokeObjectURL(old);
}

/** The size of an image that the browser can decode, or null. */
export async function measure(blob) {
  const image = new Image();
  setBlob(image, blob);
  try {
    await image.decode();
    return { width: image.naturalWidth, height: image.naturalHeight };
  } catch {
    return null;
  } finally {
    setBlob(image, null);
  }
}

/** What a promise gives, unless the signal says stop first. */
export function unless(signal, promise) {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new DOMException("stopped", "AbortError"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Wait, but not longer than until the signal says stop. */
export const pause = (milliseconds, signal) =>
  unless(signal, new Promise((resolve) => setTimeout(resolve, milliseconds)));

find("dismiss").addEventListener("click", calm);
