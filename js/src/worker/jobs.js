// Jobs of the engine, and the workers that share them: all call `nlnet_work` until a job is done.

import { CANCELLED, DONE, IDLE, RAN } from "../shared/structures.js";

const SLICE = 25; // milliseconds of work after which messages are looked at
const PATIENCE = 5; // milliseconds to wait for a task of others, at most

/** Let other messages in, without the pause of a timer. */
function breathe() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/**
 * Work on a job, with the helpers, until it is done.
 *
 * `crew` calls helpers to a job and waits for them to leave it; `turn` is shared memory on which those
 * wait who have nothing to do, or null where there is one thread. `task` has `cancelled`, which a
 * message may set, and report(share).
 */
export async function run(engine, job, crew, turn, task) {
  const { nlnet_work, nlnet_progress, nlnet_cancel } = engine.calls;
  crew.call(job);
  for (;;) {
    const state = workFor(SLICE, () => nlnet_work(job), turn);
    if (state === DONE || state === CANCELLED) break;
    task.report(nlnet_progress(job));
    await breathe();
    if (task.cancelled) nlnet_cancel(job);
  }
  await crew.leave();
  if (engine.calls.nlnet_was_cancelled(job)) {
    engine.check(engine.calls.nlnet_failure(job));
    throw new DOMException("The work was stopped.", "AbortError");
  }
  task.report(1);
}

/** Help with a job until there is nothing more to do. */
export function help(engine, job, turn) {
  let state = RAN;
  while (state === RAN || state === IDLE) {
    state = workFor(Infinity, () => engine.calls.nlnet_work(job), turn);
  }
}

function workFor(milliseconds, work, turn) {
  const end = performance.now() + milliseconds;
  let state = RAN;
  do {
    const seen = turn ? Atomics.load(turn, 0) : 0;
    state = work();
    if (!turn) continue;
    if (state === IDLE) Atomics.wait(turn, 0, seen, PATIENCE);
    else {
      Atomics.add(turn, 0, 1);
      Atomics.notify(turn, 0);
    }
  } while ((state === RAN || state === IDLE) && performance.now() < end);
  return state;
}
