// Questions to the server. What fails is a `Refused`, with the server's sentence.

export class Refused extends Error {
  constructor(sentence, status, field) {
    super(sentence);
    this.status = status;
    this.field = field ?? null;
  }
}

async function ask(path, more) {
  let response;
  try {
    response = await fetch(path, more);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is luckbase serve still running?", 0);
  }
  let said;
  try {
    said = await response.json();
  } catch {
    throw new Refused(`The server's answer (${response.status}) cannot be read.`, response.status);
  }
  if (!response.ok) throw new Refused(said.error ?? `The server says ${response.status}.`, response.status, said.field);
  return said;
}

const known = new Map();

const FRESH = 10_000;
let listed = null;

/** The tables there are; as they were some seconds ago. */
export function tables() {
  if (!listed || Date.now() - listed.at > FRESH) {
    const asked = ask("/api/tables").then((said) => said.tables);
    listed = { at: Date.now(), asked };
    asked.catch(() => { listed = null; });
  }
  return listed.asked;
}

/** What there is to know of a table; asked for once. */
export function table(id) {
  if (!known.has(id)) {
    const asked = ask(`/api/tables/${path(id)}`);
    asked.catch(() => known.delete(id));
    known.set(id, asked);
  }
  return known.get(id);
}

/** The answer to a state. Where the query says nothing of the drawing it comes without what is the same in all of the table, which is added here. */
export async function state(id, query, signal) {
  const drawn = new URLSearchParams(query).has("drawing");
  const [about, said] = await Promise.all([
    drawn ? null : table(id), view(id, "state", drawn ? query : [query, "drawing=state"].filter(Boolean).join("&"), signal),
  ]);
  if (drawn) return said;
  return { ...said, drawing: said.drawing?.replace("</desc>", () => `</desc>${about.backdrop}`) ?? null };
}

/** The answer of a view of a table. */
function view(id, what, query, signal) {
  return ask(`/api/tables/${path(id)}/${what}${query ? `?${query}` : ""}`, { signal });
}

export const mainline = (id, query) => view(id, "mainline", query);
export const grid = (id, query, signal) => view(id, "grid", query, signal);
export const chart = (id, name, query, signal) => view(id, `chart/${encodeURIComponent(name)}`, query, signal);
export const columns = (id) => view(id, "columns");
export const filter = (id, query, signal) => view(id, "filter", query, signal);
export const train = (id, query) => view(id, "train", query);
export const play = (id, query) => view(id, "play", query);
export const compare = (query) => ask(`/api/compare?${query}`);

function path(id) {
  return id.split("/").map(encodeURIComponent).join("/");
}
