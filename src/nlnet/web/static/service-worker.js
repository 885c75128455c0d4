// Keeps the files of the page for times without a network, and says that it is isolated. The script
// that builds the site puts the names of the files here; another version has another cache.

const VERSION = "VERSION";
const FILES = ["FILES"];
const ISOLATED = {
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(takeOver()));
self.addEventListener("message", (event) => event.waitUntil(keep()));
self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(self.registration.scope)) {
    event.respondWith(answer(event.request));
  }
});

async function takeOver() {
  for (const name of await caches.keys()) {
    if (name.startsWith("nlnet ") && name !== `nlnet ${VERSION}`) await caches.delete(name);
  }
  await self.clients.claim();
}

/** Keep what the page needs for its first photo, once it is shown. */
async function keep() {
  const cache = await caches.open(`nlnet ${VERSION}`);
  for (const file of FILES) {
    const address = new URL(file, self.registration.scope);
    if (!(await cache.match(address))) await cache.add(address);
  }
}

/** What is kept comes first; whatever else is asked for is kept, too. */
async function answer(request) {
  const cache = await caches.open(`nlnet ${VERSION}`);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept) return isolated(kept);
  const fresh = await fetch(request);
  if (fresh.ok && fresh.type === "basic") await cache.put(request, fresh.clone());
  return isolated(fresh);
}

function isolated(response) {
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATED)) headers.set(name, value);
  const { status, statusText, body } = response;
  return new Response(body, { status, statusText, headers });
}
