// Photos on their way from noisy to denoised: one at a time, the others wait.

import { denoise, open } from "./backend.js";
import { Photo } from "./photo.js";
import { Problem } from "./problem.js";
import { computed, workKey } from "./settings.js";

export class Jobs {
  photos = [];
  limits = null;
  #changed;
  #running = null; // the photo at work, the key of its settings, and what stops it
  #next = null; // the photo that is to run before the others

  /** `changed(photo)` is called whenever something about a photo is new. */
  constructor(changed) {
    this.#changed = changed;
  }

  get busy() {
    return this.#running !== null;
  }

  /** Photos that a run of all would work on. */
  get undone() {
    return this.photos.filter((photo) => photo.idle && (photo.state !== "done" || photo.stale));
  }

  /** How many photos are done and have failed, in words. */
  get tally() {
    const count = (state) => this.photos.filter((photo) => photo.state === state).length;
    const rest = { failed: count("failed"), stopped: count("stopped") };
    const words = Object.entries(rest).flatMap(([state, n]) => (n ? [`${n} ${state}`] : []));
    return [`${count("done")} of ${this.photos.length} done`, ...words].join(", ");
  }

  /** Whether something has to be computed for the settings of a photo, and is not being so. */
  needs(photo) {
    if (this.#running?.photo === photo) return this.#running.key !== workKey(photo.settings);
    return photo.settled && (!photo.result || photo.stale);
  }

  add(files, settings) {
    const added = files.map((file) => new Photo(file, settings));
    this.photos.push(...added);
    this.#go();
    return added;
  }

  /** Run a photo, again if it has run, with its settings as they are by then. */
  run(photo) {
    this.#next = photo;
    if (this.#running?.photo === photo) this.#running.control.abort();
    else photo.state = "waiting";
    this.#changed(photo);
    this.#go();
  }

  /** Run all that have failed or were stopped. */
  runAll() {
    for (const photo of this.undone) photo.state = "waiting";
    this.#go();
  }

  /** Give all photos these settings, and compute what they need. */
  useForAll(settings) {
    for (const photo of this.photos) {
      photo.wish(settings);
      if (photo.stale && photo.settled) photo.state = "waiting";
    }
    if (this.#running && this.#running.key !== workKey(settings)) this.run(this.#running.photo);
    else this.#go();
  }

  /** Stop the work, and that of all who wait. */
  stop() {
    this.#next = null;
    for (const photo of this.photos) {
      if (photo.state === "waiting") photo.state = "stopped";
    }
    this.#running?.control.abort();
  }

  remove(photo) {
    this.photos.splice(this.photos.indexOf(photo), 1);
    if (this.#next === photo) this.#next = null;
    if (this.#running?.photo === photo) this.#running.control.abort();
  }

  async #go() {
    if (this.#running) return;
    const photo = this.#next ?? this.photos.find(({ state }) => state === "waiting");
    if (!photo) return;
    this.#next = null;
    const control = new AbortController();
    this.#running = { photo, control, key: workKey(photo.settings) };
    photo.state = "working";
    photo.error = "";
    try {
      await this.#work(photo, control.signal);
      photo.state = "done";
    } catch (error) {
      photo.state = error.name === "AbortError" ? "stopped" : "failed";
      if (this.#next === photo) photo.state = "waiting";
      photo.error = photo.state === "failed" ? error.message : "";
      if (photo.state === "failed" && !(error instanceof Problem)) console.error(error);
    } finally {
      photo.news = null;
      this.#running = null;
      if (this.photos.includes(photo)) this.#changed(photo);
      this.#go();
    }
  }

  async #work(photo, signal) {
    const report = (news) => {
      photo.news = news;
      this.#changed(photo);
    };
    report({ phase: "read" });
    const { file, settings } = photo;
    this.#check(photo, file.size, "bytes", 2 ** 20, "MB");
    const { before } = photo;
    if (!before || (!before.native && before.white !== settings.white)) {
      photo.before = await open(file, settings, signal, report);
    }
    const { width, height } = photo.before;
    this.#check(photo, width * height, "pixels", 1e6, "megapixels");
    photo.take(await denoise(photo, computed(settings), signal, report), settings);
  }

  /** Refuse what is more than the back end takes, in words for people. */
  #check(photo, size, name, unit, word) {
    const most = this.limits?.[name];
    if (most === undefined || size <= most) return;
    const limit = Math.floor(most / unit);
    throw new Problem(`“${photo.name}” is larger than ${limit} ${word}, the most that is taken.`);
  }
}

/** What a photo at work is doing, in words, and how much of it is done if that is known. */
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
