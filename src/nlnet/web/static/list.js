// The list of files: how each is doing, which one is shown, and all results as one zip file.

import { describeNews } from "/static/jobs.js";
import { complain, find } from "/static/page.js";
import { keyOf, readSettings } from "/static/settings.js";
import { zip } from "/static/zip.js";

const WORDS = { waiting: "waits", done: "done", stopped: "stopped" };

/** Show the files; `actions` has select(item), remove(item) and runAll(). */
export function connectList(jobs, actions) {
  const rows = new Map(); // from item to its elements
  find("run-all").addEventListener("click", actions.runAll);
  find("download-all").addEventListener("click", () => downloadAll(jobs.items));

  function rowOf(item) {
    if (rows.has(item)) return rows.get(item);
    const row = document.createElement("li");
    const open = document.createElement("button");
    const name = document.createElement("span");
    const state = document.createElement("span");
    const remove = document.createElement("button");
    open.type = remove.type = "button";
    open.className = "file";
    name.className = "name";
    state.className = "fine";
    remove.className = "remove";
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Remove ${item.name} from the list`);
    name.textContent = item.name;
    open.append(name, state);
    open.addEventListener("click", () => actions.select(item));
    remove.addEventListener("click", () => {
      const next = row.nextElementSibling ?? row.previousElementSibling;
      actions.remove(item);
      (next?.querySelector("button") ?? find("view")).focus();
    });
    row.append(open, remove);
    rows.set(item, { row, open, state });
    return rows.get(item);
  }

  return function render(current) {
    const { items } = jobs;
    const key = keyOf(readSettings());
    find("files").hidden = items.length < 2;
    for (const [item, { row }] of rows) {
      if (items.includes(item)) continue;
      row.remove();
      rows.delete(item);
    }
    for (const item of items) {
      const { row, open, state } = rowOf(item);
      if (!row.isConnected) find("file-list").append(row);
      open.setAttribute("aria-current", item === current);
      const words = stateOf(item, key);
      if (state.textContent !== words) state.textContent = words;
      state.classList.toggle("bad", item.state === "failed");
    }
    const redo = items.filter((item) => item.state !== "working" && item.key !== key);
    find("run-all").hidden = jobs.busy || redo.length < 2;
    find("download-all").hidden = items.filter((item) => item.result).length < 2;
  };
}

function stateOf(item, key) {
  if (item.state === "working") return item.news ? describeNews(item.news).text : "begins";
  if (item.state === "failed") return item.error;
  if (item.state === "done" && item.key !== key) return "done, with other settings";
  return WORDS[item.state];
}

async function downloadAll(items) {
  const button = find("download-all");
  button.disabled = true;
  try {
    const entries = items.filter((item) => item.result).map((item) => item.result);
    const link = document.createElement("a");
    const url = URL.createObjectURL(await zip(entries));
    link.href = url;
    link.download = "denoised.zip";
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may still be saving
  } catch (error) {
    complain(`The zip file cannot be made: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}
