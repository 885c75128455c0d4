// The page: images come in, are denoised with the settings, and can be looked at and saved.

import { getModels } from "/static/api.js";
import { receiveFiles } from "/static/intake.js";
import { describeNews, Jobs } from "/static/jobs.js";
import { connectList } from "/static/list.js";
import { calm, complain, find, say, setBlob } from "/static/page.js";
import { Quick } from "/static/quick.js";
import { keyOf, offerModels, readSettings, showSettings, takeOffer } from "/static/settings.js";
import { Viewer } from "/static/viewer.js";

const SLIDERS = ["grain", "chroma", "sigma", "jpeg-quality"];
const CONTRAST = 60; // of what was removed, for noise of strength 1
const PATIENCE = 700; // milliseconds without a new setting, and the work begins

const viewer = new Viewer();
const quick = new Quick(viewer);
const jobs = new Jobs(changed);
const renderList = connectList(jobs, { select, remove, runAll });
let current = null; // the item that is shown
let shownBefore = null;
let shownResult = null;
let shownState = "";
let timer = 0;

receiveFiles(open);

function open(files) {
  calm();
  const wasBusy = jobs.busy;
  const inStart = find("start").contains(document.activeElement);
  const [first] = jobs.add(files);
  if (!wasBusy || !current) select(first);
  else say(files.length === 1 ? `${first.name} waits its turn.` : `${files.length} images wait.`);
  if (inStart) find("view").focus({ preventScroll: true });
  render();
}

function select(item) {
  quick.stop();
  current = item;
  render();
}

function remove(item) {
  const place = jobs.items.indexOf(item);
  jobs.remove(item);
  if (item === current) current = jobs.items[Math.min(place, jobs.items.length - 1)] ?? null;
  render();
}

/** Something about an item is new. */
function changed(item) {
  const failed = item.state === "failed";
  if (failed && item !== current) say(`${item.name}: ${item.error}`);
  if (failed && !item.before && jobs.items.length === 1) {
    remove(item); // nothing is to be seen of it, so another file may as well be dropped
    complain(item.error);
  } else render();
}

function render() {
  renderList(current);
  for (const id of ["viewer", "actions"]) find(id).hidden = !current;
  find("start").hidden = Boolean(current);
  renderPicture();
  renderBusy();
  renderResult();
  tellNews();
}

// The picture

function renderPicture() {
  const before = current?.before ?? null;
  if (before !== shownBefore) {
    shownBefore = before;
    if (before) viewer.showBefore(before.blob, before.width, before.height, before.stretched);
    else viewer.clear();
    shownResult = null;
  }
  const result = before ? current.result : null;
  if (result === shownResult) return;
  shownResult = result;
  quick.stop();
  viewer.showRemovedWith(CONTRAST / (result?.sigma || 1));
  if (!result) viewer.hideAfter();
  else {
    viewer.showAfter(result.preview ?? result.blob).then((seen) => {
      if (!seen && shownResult === result) {
        complain("The browser cannot show the result, but it is there: download it.");
      }
    });
  }
}

function renderBusy() {
  const item = current?.state === "working" || current?.state === "waiting" ? current : null;
  find("busy").hidden = !item;
  if (!item) return;
  const { text, share } = item.news
    ? describeNews(item.news)
    : { text: "Waits for the images before it" };
  find("busy-text").textContent = text;
  if (share === undefined || share === null) find("busy-bar").removeAttribute("value");
  else find("busy-bar").value = share;
}

// The result, and what can be done now

function renderResult() {
  const result = current?.result ?? null;
  const settled = ["done", "failed", "stopped"].includes(current?.state);
  offerModels(current?.channels ?? 0);
  showSettings(current);
  const stale = Boolean(result) && current.key !== keyOf(readSettings());
  for (const id of ["result", "facts", "download"]) find(id).hidden = !result;
  find("stale").hidden = !stale;
  find("run").hidden = !settled || (current.state === "done" && !stale);
  find("after-tag").textContent = stale ? "Denoised, other settings" : "Denoised";
  if (!result) return;
  find("found").textContent = sentence(result);
  find("notes").textContent = notes(result);
  find("notes").hidden = !notes(result);
  find("fact-sigma").textContent = result.sigma.toFixed(1);
  find("fact-time").textContent = `${result.seconds.toFixed(2)} s`;
  find("fact-model").textContent = result.model;
  find("fact-image").textContent = result.image;
  const download = find("download");
  if (download.result === result) return;
  download.result = result;
  setBlob(download, result.blob, "href");
  download.download = result.name;
}

function sentence({ noise, model, estimate }) {
  if (model === "none") {
    return "No noise was found, so the image stays as it is. If you see some, choose its kind or set its strength.";
  }
  return Number.isNaN(estimate) ? `Removed: ${noise}` : `Found: ${noise}`;
}

function notes({ notes: told }) {
  const shown = current.before?.stretched ? "shown with more contrast than it has" : "";
  const all = [told, shown].filter(Boolean).join("; ");
  return all && `Note: ${all}.`;
}

/** Tell eyes and screen readers once when the image that is shown comes to an end. */
function tellNews() {
  const state = current ? current.state : "";
  const key = `${jobs.items.indexOf(current)} ${state} ${current?.error}`;
  if (key === shownState) return;
  shownState = key;
  if (state === "failed") complain(current.error);
  if (state === "working") {
    calm();
    say("Denoising …");
  }
  if (state === "done") {
    say(`Done in ${current.result.seconds.toFixed(2)} seconds. ${sentence(current.result)}`);
  }
  if (state === "stopped") say("Stopped. Run again starts it once more.");
}

// Settings

function run() {
  clearTimeout(timer);
  if (current) jobs.run(current);
}

function runAll() {
  clearTimeout(timer);
  jobs.runAll();
  render();
}

find("panel").addEventListener("submit", (event) => event.preventDefault());
find("panel").addEventListener("input", ({ target }) => {
  clearTimeout(timer);
  if (target.id === "sigma") find("automatic").checked = false;
  render();
  if (!current || target.type === "number") return;
  const sliding = SLIDERS.includes(target.id);
  if (sliding && target.id !== "jpeg-quality") quick.show(current);
  timer = setTimeout(run, sliding ? PATIENCE : 0);
});
find("white").addEventListener("change", run);
find("run").addEventListener("click", () => {
  run();
  find("view").focus({ preventScroll: true });
});
find("cancel").addEventListener("click", () => {
  clearTimeout(timer);
  jobs.stop();
  setTimeout(() => {
    render(); // by then it has stopped
    (find("run").hidden ? find("view") : find("run")).focus({ preventScroll: true });
  });
});

showSettings(null);
offerModels(0);
try {
  const offer = await getModels();
  jobs.limits = offer.limits;
  takeOffer(offer);
  const megabytes = Math.floor(offer.limits.upload_bytes / 2 ** 20);
  const megapixels = Math.floor(offer.limits.pixels / 1e6);
  const formats = offer.limits.formats.join(", ");
  find("accepted").textContent = `${formats}; up to ${megabytes} MB and ${megapixels} megapixels`;
  render();
} catch (error) {
  complain(error.message);
}
