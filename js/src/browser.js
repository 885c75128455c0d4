// The package, in a browser.

import { makeApi } from "./client/api.js";
import * as platform from "./client/platform-browser.js";

export const { denoise, estimateNoise, prepare, close } = makeApi(platform);
