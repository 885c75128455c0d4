// A boundary that draws itself in, to show that there is one.

const MILLISECONDS = 450;

/**
 * Call `slide` with places from one to another, ever slower; the function returned ends that. Until
 * the end, the element that moves has `data-gliding`.
 */
export function glide(element, from, to, slide) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    slide(to);
    return () => {};
  }
  const start = performance.now();
  const step = (now) => {
    const share = Math.min(Math.max((now - start) / MILLISECONDS, 0), 1);
    slide(to + (from - to) * (1 - share) ** 3);
    if (share < 1) frame = requestAnimationFrame(step);
    else delete element.dataset.gliding;
  };
  element.dataset.gliding = "";
  let frame = requestAnimationFrame(step);
  return () => {
    cancelAnimationFrame(frame);
    delete element.dataset.gliding;
  };
}
