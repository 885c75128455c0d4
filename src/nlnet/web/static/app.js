// The page: images come in, are denoised with their settings, and can be looked at and saved.

import { offer } from "./backend.js";
import { receiveFiles } from "./intake.js";
import { Jobs } from "./jobs.js";
import { connectList } from "./list.js";
import { Live } from "./live.js";
import { calm, complain, find, say, setBlob } from "./page.js";
import { connectSaving } from "./saving.js";
import { describeSettings, fileKey, offerModels, readSettings } from "./settings.js";
import { takeOffer, writeSettings } from "./settings.js";
import { Stage } from "./stage.js";
import { Viewer } from "./viewer.js";
import { isDoubtful, notes, sentence } from "./words.js";

const SLIDERS = ["grain", "chroma", "sigma", "jpeg-quality"];
const PATIENCE = 700; // milliseconds without a new setting, and the work begins

const viewer = new Viewer();
const live = new Live(viewer);
const stage = new Stage(viewer, live);
const jobs = new Jobs(changed);
const renderList = connectList(jobs, { select, remove, runAll, stop });
let current = null; // the photo that is shown
let common = readSettings(); // those of photos that are added
let told = "";
let timer = 0;

receiveFiles(open);
connectSaving(jobs, () => current, render);

function open(files) {
  calm();
  const wasBusy = jobs.busy;
  const inStart = find("start").contains(document.activeElement);
  const [first] = jobs.add(files, common);
  if (!wasBusy || !current) select(first);
  else say(files.length === 1 ? `${first.name} waits its turn.` : `${files.length} images wait.`);
  if (inStart) find("view").focus({ preventScroll: true });
  render();
}

/** Show a photo, and the settings that made its result. */
function select(photo) {
  live.stop();
  expect(false);
  current = photo;
  photo?.settle();
  writeSettings(photo?.settings ?? common, photo?.channels ?? 0);
  render();
}

function remove(photo) {
  const place = jobs.photos.indexOf(photo);
  jobs.remove(photo);
  if (photo !== current) return render();
  select(jobs.photos[Math.min(place, jobs.photos.length - 1)] ?? null);
}

/** Something about a photo is new. */
function changed(photo) {
  if (photo.state === "failed") tellFailure(photo);
  render();
  if (jobs.photos.length > 1 && jobs.photos.every(({ settled }) => settled)) say(jobs.tally);
}

/** Say why a photo failed; if nothing came of it, another one is shown. */
function tellFailure(photo) {
  if (photo !== current) return say(`${photo.name}: ${photo.error}`);
  complain(photo.error);
  if (photo.result) return;
  const place = jobs.photos.indexOf(photo);
  const others = [...jobs.photos.slice(place), ...jobs.photos.slice(0, place)];
  const other = others.find(({ state }) => state !== "failed");
  if (other) select(other);
  // Nothing is to be seen of it, so another file may as well be dropped.
  else if (!photo.before && jobs.photos.length === 1) remove(photo);
}

function render() {
  renderList(current);
  find("actions").hidden = !current;
  stage.render(current);
  renderResult();
  tellNews();
}

// The result, and what can be done now

function renderResult() {
  const result = current?.result ?? null;
  const stale = current?.stale ?? false;
  offerModels(current?.channels ?? 0, (current?.settings ?? common).model);
  describeSettings(current);
  for (const id of ["result", "facts", "download"]) find(id).hidden = !result;
  find("stale").hidden = !stale || current.soon;
  find("run").hidden = !current?.idle || (current.state === "done" && !stale);
  find("use-for-all").hidden = !current || jobs.photos.every(hasSameSettings);
  find("after-tag").textContent = stale ? "Denoised, other settings" : "Denoised";
  if (!result) return;
  const file = current.ready ?? result;
  find("found").textContent = sentence(result);
  find("anyway").hidden = !isDoubtful(result) || current.settings.noise === "camera";
  find("notes").textContent = notes(file, current.before?.stretched);
  find("notes").hidden = !find("notes").textContent;
  find("fact-sigma").textContent = result.sigma.toFixed(1);
  find("fact-time").textContent = `${result.seconds.toFixed(2)} s`;
  find("fact-model").textContent = result.model;
  find("fact-image").textContent = result.image;
  const download = find("download");
  if (download.file === file) return;
  download.file = file;
  setBlob(download, file.blob, "href");
  download.download = file.name;
}

const hasSameSettings = (photo) => fileKey(photo.settings) === fileKey(current.settings);

/** Tell eyes and screen readers once when the photo that is shown comes to an end. */
function tellNews() {
  const state = current ? current.state : "";
  const key = `${jobs.photos.indexOf(current)} ${state}`;
  if (key === told) return;
  told = key;
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

/** Work on the photo that is shown, once its visible part is there. */
async function run() {
  expect(true);
  const photo = current;
  await live.done;
  if (!photo?.soon) return; // another one is shown, or the work was stopped
  expect(false);
  jobs.run(photo);
}

/** Say whether work on the photo that is shown begins in a moment, after `wait` milliseconds. */
function expect(soon, wait = null) {
  clearTimeout(timer);
  if (current) current.soon = soon;
  if (wait !== null) timer = setTimeout(run, wait);
}

function runAll() {
  expect(false);
  jobs.runAll();
  render();
}

function stop() {
  expect(false);
  jobs.stop();
  setTimeout(() => {
    render(); // by then it has stopped
    (find("run").hidden ? find("view") : find("run")).focus({ preventScroll: true });
  });
}

find("panel").addEventListener("submit", (event) => event.preventDefault());
find("panel").addEventListener("input", ({ target }) => {
  expect(false);
  if (target.id === "sigma") find("automatic").checked = false;
  wish(readSettings());
  if (!current || target.type === "number" || !jobs.needs(current)) return;
  const sliding = SLIDERS.includes(target.id);
  if (sliding && target.id !== "jpeg-quality") live.show(current);
  expect(true, sliding ? PATIENCE : 0);
  render();
});

/** Take settings for the photo that is shown; those of the only one are also those of the next. */
function wish(settings) {
  if (jobs.photos.length < 2) common = settings;
  current?.wish(settings);
  render();
}

find("white").addEventListener("change", run);
find("anyway").addEventListener("click", () => {
  wish({ ...current.settings, noise: "camera", sigma: "auto" });
  writeSettings(current.settings, current.channels);
  run();
  find("noise").focus({ preventScroll: true });
});
find("use-for-all").addEventListener("click", () => {
  common = current.settings;
  jobs.useForAll(common);
  render();
  say("All photos have these settings now.");
});
find("run").addEventListener("click", () => {
  run();
  find("view").focus({ preventScroll: true });
});
find("cancel").addEventListener("click", stop);

describeSettings(null);
offerModels(0);
try {
  const offered = await offer();
  jobs.limits = offered.limits;
  takeOffer(offered);
  const megabytes = Math.floor(offered.limits.bytes / 2 ** 20);
  const megapixels = Math.floor(offered.limits.pixels / 1e6);
  const formats = offered.formats.join(", ");
  find("accepted").textContent = `${formats}; up to ${megabytes} MB and ${megapixels} megapixels`;
  find("place").textContent = offered.place;
  find("api").hidden = !offered.api;
  if (offered.api) find("api").href = offered.api;
  render();
} catch (error) {
  complain(error.message);
}
