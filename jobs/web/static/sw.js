// The service worker of a site: keeps the page, and the files of blocks that the page asks it to
// keep, and answers from them. VERSION and FILES stand before this (`jobs.web.site`).
const OWN = `luckbase ${registration.scope} `;
const opened = () => caches.open(OWN + VERSION);

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(opened().then((cache) => cache.addAll(FILES.map((name) => new Request(name, { cache: "no-cache" })))));
});

addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith(OWN) && name !== OWN + VERSION) await caches.delete(name);
    await clients.claim();
  })());
});

addEventListener("message", (event) => {
  event.waitUntil((async () => {
    const cache = await opened();
    try {
      for (const name of event.data) if (!(await cache.match(name))) await cache.add(name);
      event.source.postMessage({ said: "All of it is kept here, for use without a connection." });
    } catch {
      event.source.postMessage({ said: "" }); // no room, or no connection: the page works with one
    }
  })());
});

addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(registration.scope)) event.respondWith(answer(event.request));
});

async function answer(request) {
  const kept = await (await opened()).match(request.mode === "navigate" ? "./" : request.url);
  if (!kept) return fetch(request);
  const range = /bytes=(\d+)-(\d+)/.exec(request.headers.get("Range"));
  if (!range) return kept;
  const whole = await kept.arrayBuffer();
  return new Response(whole.slice(Number(range[1]), Number(range[2]) + 1), { status: 206 });
}
