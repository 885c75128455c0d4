// What goes wrong in a back end.

/** Its message is for people; `status` and `retryAfter` (seconds) are those of an HTTP server. */
export class Problem extends Error {
  constructor(message, status = 0, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}
