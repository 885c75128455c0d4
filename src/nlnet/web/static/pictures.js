// What the page asks of the worker that decodes the images on show (viewing.js).

import { startWorker } from "./workers.js";

export const askViewing = startWorker(new URL("./viewing.js", import.meta.url));
