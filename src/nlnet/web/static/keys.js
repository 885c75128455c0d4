// What keys do in the viewer.

/** Pixels that the image moves by. */
export const MOVES = {
  ArrowLeft: [60, 0],
  ArrowRight: [-60, 0],
  ArrowUp: [0, 60],
  ArrowDown: [0, -60],
};

export const ZOOMS = { "+": "in", "=": "in", "-": "out", 0: "fit", 1: "real" };

/** Where a key takes the boundary, in percent; undefined if nowhere. */
export function slideTarget({ key, shiftKey }, place) {
  const step = shiftKey ? 10 : 1;
  return {
    ArrowLeft: place - step,
    ArrowDown: place - step,
    ArrowRight: place + step,
    ArrowUp: place + step,
    PageDown: place - 10,
    PageUp: place + 10,
    Home: 0,
    End: 100,
  }[key];
}
