// A worker that helps with jobs, in memory that is shared.

import { Engine } from "../shared/engine.js";
import { help } from "./jobs.js";

export class Helper {
  #post;
  #engine = null;
  #turn = null;

  constructor(post) {
    this.#post = post;
  }

  async receive({ type, module, memory, stack, turn, job }) {
    if (type === "start") {
      this.#engine = await Engine.start(module, memory, stack);
      this.#turn = turn;
      this.#post({ type: "started" });
    } else {
      help(this.#engine, job, this.#turn);
      this.#post({ type: "left" });
    }
  }
}
