// The stage: the photo that is shown, what is being done about it, or why that failed.

import { describeNews } from "./jobs.js";
import { complain, find } from "./page.js";

const CONTRAST = 60; // of what was removed, for noise of strength 1

export class Stage {
  #viewer;
  #live;
  #before = null;
  #after = null;

  constructor(viewer, live) {
    this.#viewer = viewer;
    this.#live = live;
  }

  render(photo) {
    const failed = photo?.state === "failed";
    find("start").hidden = Boolean(photo);
    find("viewer").hidden = !photo || (failed && !photo.before);
    find("failure").hidden = !failed;
    if (failed) {
      find("failure-name").textContent = photo.name;
      find("failure-reason").textContent = photo.error;
    }
    this.#renderPicture(photo);
    this.#renderBusy(photo && !photo.settled ? photo : null);
  }

  #renderPicture(photo) {
    const before = photo?.before ?? null;
    if (before !== this.#before) {
      this.#before = before;
      if (before) this.#viewer.showBefore(before.blob, before.width, before.height, before.stretched);
      else this.#viewer.clear();
      this.#after = null;
    }
    const after = before ? (photo.ready ?? photo.result) : null;
    if (after && !photo.ready) this.#viewer.blend(photo.saving.grain, photo.saving.chroma);
    else this.#viewer.blend(1, 1);
    if (after === this.#after) return;
    this.#after = after;
    this.#live.stop();
    this.#viewer.showRemovedWith(CONTRAST / (after?.sigma || 1));
    if (!after) return this.#viewer.hideAfter();
    this.#viewer.showAfter(after.preview ?? after.blob).then((seen) => {
      if (!seen && this.#after === after) {
        complain("The browser cannot show the result, but it is there: download it.");
      }
    });
  }

  #renderBusy(photo) {
    find("busy").hidden = !photo;
    if (!photo) return;
    const { text, share } = photo.news
      ? describeNews(photo.news)
      : { text: "Waits for the images before it" };
    find("busy-text").textContent = text;
    if (share === undefined || share === null) find("busy-bar").removeAttribute("value");
    else find("busy-bar").value = share;
  }
}
