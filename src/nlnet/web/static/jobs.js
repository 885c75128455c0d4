// Files on their way from noisy to denoised: one at a time, the others wait.

import { ApiError, denoise, preview } from "/static/api.js";
import { measure, unless } from "/static/page.js";
import { fieldsFor, keyOf, readSettings } from "/static/settings.js";

/** A file, how far it is, and what became of it. */
export class Item {
  state = "waiting"; // waiting, working, done, failed or stopped
  news = null; // what is being done while it works
  error = "";
  before = null; // what to show of it: { blob, width, height, native, stretched, white }
  result = null; // from `denoise`
  key = ""; // the settings of the result
  found = null; // the noise that was measured
  channels = 0; // not known before it ran

  constructor(file) {
    this.file = file;
    this.name = file.name || "pasted image";
  }
}

export class Jobs {
  items = [];
  limits = null;
  #changed;
  #running = null; // the item at work, and what stops it
  #next = null; // the item that is to run before the others

  /** `changed(item)` is called whenever something about an item is new. */
  constructor(changed) {
    this.#changed = changed;
  }

  get busy() {
    return this.#running !== null;
  }

  add(files) {
    const added = files.map((file) => new Item(file));
    this.items.push(...added);
    this.#go();
    return added;
  }

  /** Run an item, again if it has run, with the settings as they are by then. */
  run(item) {
    this.#next = item;
    if (this.#running?.item === item) this.#running.control.abort();
    else item.state = "waiting";
    this.#changed(item);
    this.#go();
  }

  runAll() {
    const key = keyOf(readSettings());
    for (const item of this.items) {
      if (item.state !== "working" && item.key !== key) item.state = "waiting";
    }
    this.#go();
  }

  /** Stop the work, and that of all who wait. */
  stop() {
    this.#next = null;
    for (const item of this.items) {
      if (item.state === "waiting") item.state = "stopped";
    }
    this.#running?.control.abort();
  }

  remove(item) {
    this.items.splice(this.items.indexOf(item), 1);
    if (this.#next === item) this.#next = null;
    if (this.#running?.item === item) this.#running.control.abort();
  }

  async #go() {
    if (this.#running) return;
    const item = this.#next ?? this.items.find(({ state }) => state === "waiting");
    if (!item) return;
    this.#next = null;
    const control = new AbortController();
    this.#running = { item, control };
    item.state = "working";
    item.error = "";
    try {
      await this.#work(item, control.signal);
      item.state = "done";
    } catch (error) {
      item.state = error.name === "AbortError" ? "stopped" : "failed";
      if (this.#next === item) item.state = "waiting";
      item.error = item.state === "failed" ? error.message : "";
      if (item.state === "failed" && !(error instanceof ApiError)) console.error(error);
    } finally {
      item.news = null;
      this.#running = null;
      if (this.items.includes(item)) this.#changed(item);
      this.#go();
    }
  }

  async #work(item, signal) {
    const report = (news) => {
      item.news = news;
      this.#changed(item);
    };
    report({ phase: "read" });
    this.#checkSize(item.file);
    const settings = readSettings();
    if (!item.before || (!item.before.native && item.before.white !== settings.white)) {
      item.before = await this.#read(item.file, settings.white, signal, report);
    }
    report({ phase: "upload", share: 0 });
    const fields = fieldsFor(item, settings);
    const result = await denoise(item.file, fields, signal, report);
    item.result = result;
    item.key = keyOf(settings);
    item.channels = result.channels;
    if (!Number.isNaN(result.estimate)) item.found = result;
  }

  /** What to show of a file: itself, or what the server makes of it. */
  async #read(file, white, signal, report) {
    const size = await unless(signal, measure(file));
    if (size) return { ...size, blob: file, native: true, stretched: false, white };
    const shown = await preview(file, { data_range: white }, signal, report);
    const seen = await unless(signal, measure(shown.blob));
    if (!seen) throw new ApiError("The browser cannot show this image.", 0);
    return { ...seen, ...shown, native: false, white };
  }

  #checkSize(file) {
    if (!this.limits || file.size <= this.limits.upload_bytes) return;
    const most = Math.floor(this.limits.upload_bytes / 2 ** 20);
    throw new ApiError(`“${file.name}” is larger than ${most} MB, the most that is taken.`, 413);
  }
}

/** What an item at work is doing, in words, and how much of it is done if that is known. */
export function describeNews({ phase, share, ahead, seconds }) {
  const percent = share === undefined || share === null ? "" : ` ${Math.floor(100 * share)} %`;
  switch (phase) {
    case "upload":
      return { text: `Uploading${percent}`, share };
    case "queue":
      return { text: ahead === 1 ? "Next in line" : `${ahead} images are before yours` };
    case "busy":
      return { text: `The server is busy; again in ${seconds} s` };
    case "work":
      return { text: `Denoising${percent || " …"}`, share: share ?? undefined };
    default:
      return { text: "Reading …" };
  }
}
