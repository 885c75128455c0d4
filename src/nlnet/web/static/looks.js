// Two more ways to look: the original while something is held, and what was removed.

import { find } from "./page.js";

/** Let the buttons, and keys on the view, change what is shown. */
export function connectLooks(view) {
  const hold = find("hold");
  const removed = find("removed");

  const showOriginal = (shown) => {
    if (hold.disabled && shown) return;
    view.classList.toggle("original", shown);
    hold.setAttribute("aria-pressed", shown);
    find("before-tag").classList.toggle("alone", shown);
  };
  const toggleRemoved = () => {
    if (removed.disabled) return;
    const shown = view.classList.toggle("removed");
    removed.setAttribute("aria-pressed", shown);
  };

  hold.addEventListener("pointerdown", (event) => {
    hold.setPointerCapture(event.pointerId);
    showOriginal(true);
  });
  for (const end of ["pointerup", "pointercancel", "blur"]) {
    hold.addEventListener(end, () => showOriginal(false));
  }
  hold.addEventListener("contextmenu", (event) => event.preventDefault()); // of a long touch
  onKey(hold, [" ", "Enter"], showOriginal);
  onKey(view, ["o", "O"], showOriginal);
  view.addEventListener("blur", () => showOriginal(false));
  removed.addEventListener("click", toggleRemoved);
  view.addEventListener("keydown", (event) => {
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.repeat);
    if (plain && ["r", "R"].includes(event.key)) toggleRemoved();
  });
}

/** Call `act` with true while one of the keys is down on an element, and with false after that. */
function onKey(element, keys, act) {
  element.addEventListener("keydown", (event) => {
    if (!keys.includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(true);
  });
  element.addEventListener("keyup", (event) => {
    if (keys.includes(event.key)) act(false);
  });
}
