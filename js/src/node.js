// The package, in Node.

import { makeApi } from "./client/api.js";
import * as platform from "./client/platform-node.js";

export const { denoise, estimateNoise, prepare, close } = makeApi(platform);
