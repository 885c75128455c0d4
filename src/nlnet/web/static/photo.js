// A photo, how far it is on its way from noisy to denoised, and what became of it.

import { computed, fileKey, workKey } from "./settings.js";

export class Photo {
  state = "waiting"; // waiting, working, done, failed or stopped
  news = null; // what is being done while it works
  soon = false; // whether work on it begins in a moment
  error = "";
  before = null; // what to show of it, from `open` of the back end
  result = null; // from `denoise`, with strengths of at least 1
  madeWith = null; // the settings of the result
  found = null; // the result with the noise that was measured last
  channels = 0; // not known before it ran
  saved = ""; // the key of the file that was downloaded
  #file = null; // the result as the settings want it
  #key = ""; // and their key

  constructor(file, settings) {
    this.file = file;
    this.name = file.name || "pasted image";
    this.settings = settings;
  }

  /** Whether the result was made with settings that are not those of now. */
  get stale() {
    return Boolean(this.result) && workKey(this.settings) !== workKey(this.madeWith);
  }

  /** The settings of the file that can be saved now. */
  get saving() {
    return this.stale ? this.madeWith : this.settings;
  }

  /** That file, or null if it has to be blended from the result first. */
  get ready() {
    return this.#key === fileKey(this.saving) ? this.#file : null;
  }

  /** Whether there is a result that would be lost. */
  get unsaved() {
    return Boolean(this.result) && this.saved !== fileKey(this.saving);
  }

  /** Whether nothing is being done about it. */
  get settled() {
    return ["done", "failed", "stopped"].includes(this.state);
  }

  /** Whether nothing will be done about it, either, unless somebody asks for it. */
  get idle() {
    return this.settled && !this.soon;
  }

  /** Set what is wanted; what only blends the result needs no work. */
  wish(settings) {
    this.settings = settings;
    if (!this.result || this.stale) return;
    this.madeWith = settings;
    if (this.settled) this.state = "done"; // whatever came of other ones
  }

  /** Go back to the settings of the result, if other ones came to nothing. */
  settle() {
    if (this.stale && this.settled) this.settings = this.madeWith;
  }

  /** Take what was computed for some settings. */
  take(result, settings) {
    this.result = result;
    this.madeWith = settings;
    this.channels = result.channels;
    if (!Number.isNaN(result.estimate)) this.found = result;
    this.keep(result, computed(settings));
  }

  /** Take a file that was made for some settings. */
  keep(file, settings) {
    this.#file = file;
    this.#key = fileKey(settings);
  }

  markSaved() {
    this.saved = fileKey(this.saving);
  }
}
