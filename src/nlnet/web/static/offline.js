// The page without a network: a service worker keeps its files, and isolates it from other origins
// where the host does not say so, which threads need.

import { unless } from "./page.js";

const TRIED = "nlnet was isolated";
const PATIENCE = 5000; // milliseconds until the page begins without it

/** Let the service worker take over; the page is loaded once more for that if `mayReload()`. */
export async function goOffline(mayReload) {
  if (!("serviceWorker" in navigator)) return;
  const address = new URL("../service-worker.js", import.meta.url);
  try {
    await navigator.serviceWorker.register(address);
    const late = AbortSignal.timeout(PATIENCE);
    const { active } = await unless(late, navigator.serviceWorker.ready);
    active.postMessage("keep");
  } catch {
    return; // private windows, and hosts without encryption, have none
  }
  if (globalThis.crossOriginIsolated || sessionStorage.getItem(TRIED) || !mayReload()) return;
  sessionStorage.setItem(TRIED, "yes");
  location.reload();
  await new Promise(() => {}); // the page goes
}
