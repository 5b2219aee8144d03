// The explorer: a state drawn, what every action and every outcome is worth, a click goes there.
import * as address from "./address.js";
import { answerParts, headline } from "./answer.js";
import * as api from "./api.js";
import { drawing, fill, h, nothing } from "./dom.js";
import { StateForm } from "./fields.js";

const WIDE = matchMedia("(min-width: 60rem)");
const CRUMBS = 9;

let screen = null;
let asking = null;

export function leave() {
  asking?.abort();
  screen = null;
}

export async function show(main, asked) {
  if (!asked.same || !screen?.root.isConnected) {
    screen = build(asked.data);
    fill(main, screen.root);
  }
  const here = screen;
  const query = stateQuery(asked, here.table);
  asking?.abort();
  asking = new AbortController();
  let answer;
  try {
    answer = await api.state(asked.table, query, asking.signal);
  } catch (error) {
    if (!(error instanceof api.Refused) || !asked.current()) throw error;
    return refuse(here, asked, error);
  }
  if (!asked.current()) return "";
  const own = asked.query.has("random") ? answer.query : query;
  const path = asked.path.length ? asked.path : [{ query: own, label: opening(here.table, own) }];
  // A random state and the first one get an address of their own, and every one its path.
  history.replaceState({ path }, "", own === query && asked.query.size ? location.hash : address.of(asked.table, "state", own));
  here.form.put(address.fields(answer.state));
  draw(here, answer);
  fill(here.path, crumbs(asked.table, path));
  // A click on what is there while another state is on its way is of neither: it is dropped.
  const goTo = (to, way) => asked.current() && address.go(address.of(asked.table, "state", to), way);
  fill(here.answer, answerParts(here.table, answer, {
    chosen: asked.query.get("then"),
    choose: (action) => goTo(`${query}&then=${encodeURIComponent(action)}`, path),
    step: (to, label) => goTo(to, [...path, { query: to, label }]),
    href: (to) => address.of(asked.table, "state", to),
    mainline: () => api.mainline(asked.table, query),
  }));
  return headline(here.table, answer);
}

/** What is asked of the server: the address without what only the page reads. */
function stateQuery(asked, table) {
  const query = new URLSearchParams(asked.query);
  query.delete("then");
  if (![...query].length && table.start) return address.plain(address.fields(table.start));
  if (![...query].length && table.examples?.length) return address.plain(address.fields(table.examples[0].state));
  return address.plain(query);
}

function opening(table, query) {
  const same = (state) => address.plain(address.fields(state)) === query;
  const example = table.examples?.find((each) => same(each.state));
  if (example) return example.label;
  return table.start && same(table.start) ? "the start" : "first state";
}

function build(table) {
  const form = new StateForm(table, (query) => edited(table, form, query));
  const shown = h("div.board");
  const answer = h("section.answer", { "aria-label": "What it is worth" });
  const path = h("nav.path", { "aria-label": "Where you came from" });
  const change = h("details.change", { open: WIDE.matches }, h("summary", null, "Change the state"), form.element, elsewhere(table));
  const root = h("div.view", null, path,
    h("div.explorer", null,
      h("section.state", { "aria-label": "The state" }, shown, change), answer));
  shown.addEventListener("click", (event) => {
    const part = event.target.closest("[data-field]");
    if (!part) return;
    change.open = true;
    form.focus(part.dataset.field, part.dataset.value);
  });
  return { root, table, form, shown, answer, path };
}

/** A state as somebody typed it: gone to if there is such a state, else the sentence stands there. */
async function edited(table, form, query) {
  form.button.setAttribute("aria-busy", "true");
  try {
    const answer = await api.state(table.id, query);
    const path = history.state?.path ?? [];
    address.go(address.of(table.id, "state", query), [...path, { query: answer.query ?? query, label: "edited" }]);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    form.refuse(error);
  } finally {
    form.button.removeAttribute("aria-busy");
  }
}

function refuse(here, asked, error) {
  here.form.put(Object.fromEntries(asked.query));
  fill(here.shown);
  fill(here.path);
  fill(here.answer, nothing("No such state", error.message, h("p", null, "Change the state, or go to ", h("a", { href: address.of(asked.table, "state") }, "one that there is"), ".")));
  here.form.refuse(error);
  return "No such state";
}

function draw(here, answer) {
  fill(here.shown, drawing(answer.drawing, answer.text ?? "the state"));
  here.shown.hidden = !answer.drawing;
}

/** Where else one can go: the start, examples, any state. */
function elsewhere(table) {
  const to = (query) => address.of(table.id, "state", query);
  const examples = table.examples ?? [];
  const any = h("button", { type: "button", onclick: () => address.go(to(`random=${Math.floor(Math.random() * 2 ** 31)}`)) }, "A random state");
  return h("div.elsewhere", null,
    h("div.bar", null, table.start ? h("a.button", { href: to(address.plain(address.fields(table.start))) }, "The start") : null, any),
    examples.length ? h("details", null, h("summary", null, "Examples"),
      h("ul.links", null, examples.map((example) => h("li", null, h("a", { href: to(address.plain(address.fields(example.state))) }, example.label))))) : null);
}

/** The path: a link for each state on it, the last one is here. */
function crumbs(table, path) {
  if (path.length < 2) return null;
  const from = Math.max(0, path.length - CRUMBS);
  const items = path.map((crumb, i) => {
    if (i && i < from + 1) return null;
    if (i === path.length - 1) return h("li", null, h("span", { "aria-current": "page" }, crumb.label));
    return h("li", null, h("a", {
      href: address.of(table, "state", crumb.query),
      onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        address.go(address.of(table, "state", crumb.query), path.slice(0, i + 1));
      },
    }, crumb.label));
  });
  if (from > 0) items.splice(1, 0, h("li", null, h("span", { title: `${from} steps` }, "…")));
  return h("ol", null, items);
}

