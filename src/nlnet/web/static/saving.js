// Results as files: one by one, or all as one zip file; and a question before they are lost.

import { blend } from "./backend.js";
import { complain, find, say } from "./page.js";
import { zip } from "./zip.js";

const SAVING_MILLISECONDS = 60_000; // the browser may still be saving

/** Let the buttons save; `current()` is the photo that is shown, `changed()` shows what is new. */
export function connectSaving(jobs, current, changed) {
  find("download").addEventListener("click", (event) => {
    const photo = current();
    if (photo.ready) {
      photo.markSaved();
      return; // the link does the rest
    }
    event.preventDefault();
    preparing(find("download"), async () => {
      const { name, blob } = await fileOf(photo);
      save(blob, name);
      photo.markSaved();
      changed();
    });
  });
  find("download-all").addEventListener("click", () =>
    preparing(find("download-all"), async () => {
      const photos = jobs.photos.filter((photo) => photo.result);
      const files = [];
      for (const photo of photos) files.push(await fileOf(photo));
      save(await zip(files), "denoised.zip");
      for (const photo of photos) photo.markSaved();
      changed();
    }),
  );
  addEventListener("beforeunload", (event) => {
    if (jobs.photos.some((photo) => photo.unsaved)) event.preventDefault();
  });
}

/** The file of a photo as its settings want it. */
async function fileOf(photo) {
  if (photo.ready) return photo.ready;
  const settings = photo.saving;
  const { signal } = new AbortController();
  const file = await blend(photo, photo.result, settings, signal, () => {});
  photo.keep(file, settings);
  return file;
}

/** Do what takes a while for a button, which says so meanwhile. */
async function preparing(button, work) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  say("The file is being written …");
  try {
    await work();
    say("The file is saved.");
  } catch (error) {
    complain(`The file cannot be made: ${error.message}`);
  } finally {
    button.removeAttribute("aria-busy");
  }
}

function save(blob, name) {
  const link = document.createElement("a");
  const url = URL.createObjectURL(blob);
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), SAVING_MILLISECONDS);
}
