// Addresses of views: #/t/<table>/state?scores=0,8000,3000&earned=0,2,0

/** What an address asks for: {view, table, query: URLSearchParams}. */
export function read(hash) {
  const [path, query = ""] = split(hash.replace(/^#/, ""), "?");
  const asked = new URLSearchParams(query);
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return { view: "unknown", table: null, query: asked }; // a % that is no letter
  }
  if (parts[0] === "t" && parts.length >= 3) {
    return { view: parts.at(-1), table: parts.slice(1, -1).join("/"), query: asked };
  }
  if (parts[0] === "compare") return { view: "compare", table: asked.get("first"), query: asked };
  return { view: parts.length ? "unknown" : "tables", table: null, query: asked };
}

function split(text, at) {
  const place = text.indexOf(at);
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}

/** The address of a view of a table. */
export function of(table, view, query = "") {
  const asked = typeof query === "string" ? query : plain(query);
  const path = view === "compare" ? "#/compare" : `#/t/${table.split("/").map(encodeURIComponent).join("/")}/${view}`;
  return asked ? `${path}?${asked}` : path;
}

/** A query as people can read it: commas stay commas. */
export function plain(query) {
  const pairs = query instanceof URLSearchParams ? [...query] : Object.entries(query);
  return pairs
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${encode(name)}=${encode(String(value))}`)
    .join("&");
}

function encode(text) {
  return encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%20", "+").replaceAll("%7E", "~").replaceAll("%2F", "/");
}

/** The fields of a state, given as a mapping or as an address' query. */
export function fields(state) {
  if (!state) return {};
  if (typeof state === "string") return Object.fromEntries(new URLSearchParams(state.replaceAll(" ", "&")));
  return Object.fromEntries(Object.entries(state).map(([name, value]) => [name, String(value)]));
}

/** Go to an address; `path`: where one came from. The page is drawn by `app`. */
export function go(to, path = [], replace = false) {
  history[replace ? "replaceState" : "pushState"]({ path }, "", to);
  dispatchEvent(new CustomEvent("moved"));
}
