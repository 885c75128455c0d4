// Mouse, pen and fingers on the viewer: one slides or moves, two pinch, the wheel zooms.

const DECISIVE = 8; // pixels after which it is clear where a finger is going

/** Let pointers on `view` drive the viewer; on `handle` they always slide. */
export function followPointers(view, handle, viewer) {
  const down = new Map(); // where each pointer was last
  let start = null; // where the first finger was put down, until it is clear where it goes
  let sliding = false;

  view.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("button")) return;
    down.set(event.pointerId, event);
    view.setPointerCapture(event.pointerId);
    viewer.takeHold();
    sliding = !handle.hidden && (handle.contains(event.target) || viewer.fitted);
    start = event.pointerType === "touch" && viewer.fitted ? event : null;
    if (sliding && !handle.contains(event.target) && event.pointerType === "mouse") {
      viewer.slideToX(event.clientX);
    }
  });

  view.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    if (!last) return;
    if (down.size === 2) pinch(last, event);
    else if (sliding && isSideways(event)) viewer.slideToX(event.clientX);
    else if (!sliding) viewer.pan(event.clientX - last.clientX, event.clientY - last.clientY);
    down.set(event.pointerId, event);
  });

  for (const end of ["pointerup", "pointercancel"]) {
    view.addEventListener(end, (event) => {
      down.delete(event.pointerId);
      sliding = false;
      start = null;
    });
  }

  view.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      viewer.zoomBy(2 ** (-event.deltaY / 300), event.clientX, event.clientY);
    },
    { passive: false },
  );

  view.addEventListener("dblclick", (event) => {
    if (handle.contains(event.target) || event.target.closest("button")) return;
    viewer.toggleZoom(event.clientX, event.clientY);
  });

  /** A finger that goes up or down scrolls the page, and leaves the boundary where it is. */
  function isSideways(event) {
    if (!start) return true;
    const across = Math.abs(event.clientX - start.clientX);
    const along = Math.abs(event.clientY - start.clientY);
    if (Math.max(across, along) < DECISIVE) return false;
    if (along > across) sliding = false;
    start = null;
    return sliding;
  }

  function pinch(last, now) {
    const other = [...down.values()].find((event) => event.pointerId !== now.pointerId);
    const spread = (event) =>
      Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY);
    sliding = false;
    start = null;
    viewer.zoomBy(
      spread(now) / Math.max(spread(last), 1),
      (now.clientX + other.clientX) / 2,
      (now.clientY + other.clientY) / 2,
    );
    viewer.pan((now.clientX - last.clientX) / 2, (now.clientY - last.clientY) / 2);
  }
}
