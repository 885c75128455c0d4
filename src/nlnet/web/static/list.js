// The list of photos: how each is doing, which one is shown, and how all of them are doing.

import { describeNews } from "./jobs.js";
import { find } from "./page.js";
import { drawThumbnail } from "./thumbnails.js";

const WORDS = { waiting: "waits", done: "done", stopped: "stopped" };

/** Show the photos; `actions` has select(photo), remove(photo) and runAll(). */
export function connectList(jobs, actions) {
  const rows = new Map(); // from photo to its elements
  find("run-all").addEventListener("click", actions.runAll);

  function rowOf(photo) {
    if (rows.has(photo)) return rows.get(photo);
    const row = document.createElement("li");
    const open = document.createElement("button");
    const picture = document.createElement("canvas");
    const name = document.createElement("span");
    const state = document.createElement("span");
    const remove = document.createElement("button");
    open.type = remove.type = "button";
    open.className = "file";
    picture.setAttribute("aria-hidden", "true");
    name.className = "name";
    state.className = "fine";
    remove.className = "remove";
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Remove ${photo.name} from the list`);
    name.textContent = photo.name;
    open.append(picture, name, state);
    open.addEventListener("click", () => actions.select(photo));
    remove.addEventListener("click", () => {
      const next = row.nextElementSibling ?? row.previousElementSibling;
      actions.remove(photo);
      (next?.querySelector("button") ?? find("view")).focus();
    });
    row.append(open, remove);
    rows.set(photo, { row, open, state, picture, drawn: null });
    return rows.get(photo);
  }

  /** Draw what the browser can of a file, and else what the back end has made of it. */
  function draw(parts, photo) {
    const source = photo.before?.blob ?? photo.file;
    if (parts.drawn === source || parts.drawn === "done") return;
    parts.drawn = source;
    drawThumbnail(parts.picture, source).then((seen) => {
      if (seen) parts.drawn = "done";
    });
  }

  return function render(current) {
    const { photos } = jobs;
    find("files").hidden = photos.length < 2;
    for (const [photo, { row }] of rows) {
      if (photos.includes(photo)) continue;
      row.remove();
      rows.delete(photo);
    }
    for (const photo of photos) {
      const parts = rowOf(photo);
      if (!parts.row.isConnected) find("file-list").append(parts.row);
      if (photos.length > 1) draw(parts, photo);
      if (parts.open.getAttribute("aria-current") !== `${photo === current}`) {
        parts.open.setAttribute("aria-current", photo === current);
        if (photo === current) parts.row.scrollIntoView({ block: "nearest" });
      }
      const words = stateOf(photo);
      if (parts.state.textContent !== words) parts.state.textContent = words;
      parts.state.classList.toggle("bad", photo.state === "failed");
    }
    find("tally").textContent = jobs.tally;
    find("run-all").hidden = jobs.busy || jobs.undone.length < 2;
    find("download-all").hidden = photos.filter((photo) => photo.result).length < 2;
  };
}

function stateOf(photo) {
  if (photo.state === "working") return photo.news ? describeNews(photo.news).text : "begins";
  if (photo.state === "failed") return photo.error;
  if (photo.stale && photo.idle) return "done, with other settings";
  return WORDS[photo.state];
}
