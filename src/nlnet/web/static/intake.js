// The ways in: files chosen, dropped and pasted, and the example.

import { complain, find } from "./page.js";
import { noisyExample } from "./start.js";

/** Call `open` with the files whenever somebody brings some. */
export function receiveFiles(open) {
  for (const button of document.querySelectorAll("[data-choose]")) {
    button.addEventListener("click", () => find("file").click());
  }
  find("file").addEventListener("change", (event) => {
    const files = [...event.target.files];
    event.target.value = ""; // so that the same file can be chosen again
    if (files.length) open(files);
  });
  find("example").addEventListener("click", async () => open([await noisyExample()]));

  document.addEventListener("paste", (event) => {
    if (event.target.closest?.("input[type=number]")) return;
    const files = [...event.clipboardData.files];
    if (files.length) open(files);
    else complain("The clipboard holds no image.");
  });

  let depth = 0; // of elements under the drag, each of which reports its own coming and going
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => {
    if (carriesFiles(event)) find("veil").hidden = ++depth === 0;
  });
  document.addEventListener("dragleave", (event) => {
    if (carriesFiles(event)) find("veil").hidden = --depth <= 0;
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    find("veil").hidden = true;
    const files = [...event.dataTransfer.files];
    if (files.length) open(files);
    else complain("What was dropped is no file.");
  });
}
