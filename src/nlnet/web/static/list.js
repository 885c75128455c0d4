// The list of photos: how each is doing, which one is shown, and how all of them are doing.

import { describeNews } from "./jobs.js";
import { find } from "./page.js";
import { drawThumbnail } from "./thumbnails.js";

const WORDS = { waiting: "waits", done: "done", stopped: "stopped" };

const STEPS = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };
const PAGES = { PageUp: -1, PageDown: 1 };

/** Show the photos; `actions` has select(photo), remove(photo), runAll() and stop(). */
export function connectList(jobs, actions) {
  const rows = new Map(); // from photo to its elements
  const list = find("file-list");
  let shown = null;
  find("run-all").addEventListener("click", actions.runAll);
  find("stop-all").addEventListener("click", actions.stop);
  list.addEventListener("keydown", (event) => {
    if (event.key === "Delete") rows.get(shown).remove.click();
    if (!(event.key in STEPS)) return;
    event.preventDefault(); // the list would scroll
    step(STEPS[event.key]);
    rows.get(shown).open.focus({ preventScroll: true });
  });
  find("view").addEventListener("keydown", ({ key }) => {
    if (key in PAGES) step(PAGES[key]);
  });

  /** Show another photo, so many places on. */
  function step(by) {
    const last = jobs.photos.length - 1;
    const place = Math.min(Math.max(jobs.photos.indexOf(shown) + by, 0), last);
    if (jobs.photos[place] !== shown) actions.select(jobs.photos[place]);
  }

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
    open.setAttribute("aria-keyshortcuts", "ArrowUp ArrowDown Home End Delete");
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
      (jobs.photos.length > 1 ? next.querySelector("button") : find("view")).focus();
    });
    row.append(open, remove);
    rows.set(photo, { row, open, remove, state, picture, drawn: null });
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

  /** Scroll the list, and not the page, to the photo that is shown. */
  function reveal({ offsetTop, offsetHeight }) {
    const low = offsetTop + offsetHeight - list.clientHeight;
    list.scrollTop = Math.max(low, Math.min(list.scrollTop, offsetTop));
  }

  return function render(current) {
    const { photos } = jobs;
    shown = current;
    find("files").hidden = photos.length < 2;
    for (const [photo, { row }] of rows) {
      if (photos.includes(photo)) continue;
      row.remove();
      rows.delete(photo);
    }
    for (const photo of photos) {
      const parts = rowOf(photo);
      if (!parts.row.isConnected) list.append(parts.row);
      if (photos.length > 1) draw(parts, photo);
      if (parts.open.getAttribute("aria-current") !== `${photo === current}`) {
        parts.open.setAttribute("aria-current", photo === current);
        parts.open.tabIndex = parts.remove.tabIndex = photo === current ? 0 : -1;
        if (photo === current) reveal(parts.row);
      }
      const words = stateOf(photo);
      if (parts.state.textContent !== words) parts.state.textContent = words;
      parts.state.classList.toggle("bad", photo.state === "failed");
    }
    find("tally").textContent = jobs.tally;
    const undone = jobs.undone.length;
    find("run-all").hidden = jobs.busy || undone < 2;
    find("run-all").textContent = `Run ${undone} again`;
    find("stop-all").hidden = !jobs.busy;
    find("download-all").hidden = photos.filter((photo) => photo.result).length < 2;
  };
}

function stateOf(photo) {
  if (photo.state === "working") return photo.news ? describeNews(photo.news).text : "begins";
  if (photo.state === "failed") return photo.error;
  if (photo.stale && photo.idle) return "done, with other settings";
  return WORDS[photo.state];
}
