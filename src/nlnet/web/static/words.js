// What is said about a result.

const SURE = 0.9; // from there on, all of the noise is removed

/** What the noise was, and what was done about it. */
export function sentence({ noise, model, estimate }) {
  if (model === "none") {
    return "No noise was found, so the image stays as it is. If you see some, choose its kind, or:";
  }
  return Number.isNaN(estimate) ? `Removed: ${noise}` : `Found: ${noise}`;
}

/** Whether there may be noise that was left, for it may be something else. */
export const isDoubtful = ({ kind, model, certainty }) =>
  model === "none" || (kind === "camera" && certainty < SURE);

/** What was converted, and how the image is shown. */
export function notes({ notes: told }, stretched) {
  const shown = stretched ? "shown with more contrast than it has" : "";
  const all = [told, shown].filter(Boolean).join("; ");
  return all && `Note: ${all}.`;
}
