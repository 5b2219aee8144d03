// The explorer: a state drawn, what every action and every outcome is worth, a click goes there.
import * as address from "./address.js";
import { answerParts, headline, verdictParts } from "./answer.js";
import * as api from "./api.js";
import { drawing, fill, h, nothing } from "./dom.js";
import { defaultOf, StateForm } from "./fields.js";
import { Payoffs } from "./format.js";
import { keys } from "./keys.js";

const WIDE = matchMedia("(min-width: 60rem)");
const CRUMBS = 9, STATES = 8;
const BURST = 1500;
const [SMALL, READABLE] = [8, 14]; // pixels of letters

let screen = null;
let asking = null;
const lastStates = new Map();

export function leave() {
  asking?.abort();
  keys(null);
  screen = null;
}

export async function show(main, asked) {
  if (!asked.same || !screen?.root.isConnected) screen = build(asked.data);
  const here = screen;
  const query = stateQuery(asked, here.table);
  asking?.abort();
  asking = new AbortController();
  let found;
  try {
    found = here.ready?.query === query ? here.ready : await whole(here.table, query, asking.signal);
  } catch (error) {
    if (!(error instanceof api.Refused) || !asked.current()) throw error;
    if (!here.root.isConnected) fill(main, here.root);
    return refuse(here, asked, error);
  }
  if (!asked.current()) return "";
  if (!here.root.isConnected) fill(main, here.root);
  const { answer } = found;
  here.ready = null;
  const own = asked.query.has("random") ? answer.query : found.query;
  const path = asked.path.length ? asked.path : [{ query: own, label: opening(here.table, own) }];
  // A random state, the first one and one that was completed get an address of their own, and every one its path.
  history.replaceState({ path }, "", own === query && asked.query.size ? location.hash : address.of(asked.table, "state", own));
  here.form.put(address.fields(answer.state));
  draw(here, answer);
  fill(here.path, crumbs(asked.table, path));
  remember(here, asked.table, answer, own);
  here.undo.disabled = path.length < 2;
  // A click on what is there while another state is on its way is of neither: it is dropped.
  const goTo = (to, way) => asked.current() && address.go(address.of(asked.table, "state", to), way);
  const choose = (action) => goTo(`${own}&then=${encodeURIComponent(action)}`, path);
  const step = (to, label) => goTo(to, [...path, { query: to, label }]);
  const key = here.root.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  fill(here.verdict, verdictParts(here.table, answer, notSaid(here.table, found)));
  fill(here.answer, answerParts(here.table, answer, {
    chosen: asked.query.get("then"), choose, step,
    href: (to) => address.of(asked.table, "state", to),
    mainline: () => api.mainline(asked.table, own),
  }));
  if (key) here.answer.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  fill(here.brief, `${headline(here.table, answer)} · `, h("span.n", null, answer.value.map((value) => new Payoffs(here.table).text(value)).join(" / ")));
  keys({
    ...Object.fromEntries((answer.actions ?? []).slice(0, 9).map((action, i) => [String(i + 1), [
      action.action, () => (action.next ? step(action.next.query, action.action) : choose(action.action))]])),
    u: ["the state before", () => here.undo.click()],
    r: ["a random state", () => here.random.click()],
    e: ["go to the fields", () => { here.change.open = true; here.form.focus(here.table.fields[0].name); }],
  });
  return headline(here.table, answer);
}

/** What is asked of the server: the address without what only the page reads. */
function stateQuery(asked, table) {
  const query = new URLSearchParams(asked.query);
  query.delete("then");
  return [...query].length ? address.plain(query) : address.plain(begin(table));
}

/** Where a table begins, its fields as text. */
function begin(table) {
  return address.fields(table.start ?? table.examples?.[0]?.state);
}

/** The answer to a state; half a one is completed from where the table begins: what must be said and
 * is not, and all that is not said where the game would be over with what is usual.
 * -> {query, answer, said: the names of the fields that were, from: what completes them}. */
async function whole(table, query, signal) {
  const said = new Set(new URLSearchParams(query).keys());
  const more = table.fields.filter((field) => !said.has(field.name) && !field.blank);
  const start = begin(table);
  const sound = [...said].every((name) => table.fields.some((field) => field.name === name));
  const ask = async (from) => {
    const whole = from === "start" ? address.plain({ ...start, ...address.fields(query) }) : query;
    return { query: whole, answer: await api.state(table.id, whole, signal), said, from };
  };
  if (!sound || !more.length) return ask("default");
  if (more.some((field) => field.default === null)) return ask("start");
  const found = await ask("default");
  const other = more.some((field) => (start[field.name] ?? defaultOf(field, table)) !== defaultOf(field, table));
  return found.answer.over && other ? ask("start") : found;
}

/** What is said of the fields that the address left out: loudly where they are not the usual, or
 * make the game over; null where there are none. */
function notSaid(table, { answer, said, from }) {
  const state = address.fields(answer.state);
  const left = table.fields.filter((field) => !field.blank && !said.has(field.name) && field.name in state);
  if (!left.length || left.length === table.fields.length || said.has("random")) return null;
  const names = left.map((field) => `${field.name} ${state[field.name]}`).join(", ");
  const loud = from === "start" || answer.over;
  return h(loud ? "p.note" : "p.about", null, from === "start" ? `Not in the address, so as where this table begins: ${names}.` : `Not in the address, so the usual: ${names}.`);
}

function opening(table, query) {
  const same = (state) => address.plain(address.fields(state)) === query;
  const example = table.examples?.find((each) => same(each.state));
  if (example) return example.label;
  return table.start && same(table.start) ? "the start" : "first state";
}

function build(table) {
  const here = { table, ready: null };
  here.form = new StateForm(table, (query, field, sure) => edited(here, query, field, sure));
  here.shown = h("div.board");
  here.verdict = h("section.verdict", { "aria-label": "The answer" });
  here.answer = h("section.answer", { "aria-label": "What it is worth" });
  here.path = h("nav.path", { "aria-label": "Where you came from" });
  here.undo = h("button", { type: "button", disabled: true, onclick: undo }, "Undo");
  here.random = h("button", { type: "button", onclick: () => address.go(address.of(table.id, "state", `random=${Math.floor(Math.random() * 2 ** 31)}`)) }, "A random state");
  here.last = h("details", { hidden: true }, h("summary", null, "The last states"));
  here.brief = h("p.brief", { "aria-hidden": true });
  here.change = h("details.change", { open: WIDE.matches }, h("summary", null, "Change the state"), here.brief, here.form.element, elsewhere(table, here));
  here.root = h("div.view", null, here.path,
    h("div.explorer", null, here.verdict, h("section.state", { "aria-label": "The state" }, here.shown, here.change), here.answer));
  here.shown.addEventListener("click", (event) => {
    const part = event.target.closest("[data-field]");
    if (!part) return;
    here.change.open = true;
    here.form.focus(part.dataset.field, part.dataset.value);
  });
  return here;
}

function undo() {
  const path = history.state?.path ?? [];
  const { table } = address.read(location.hash);
  if (path.length > 1) address.go(address.of(table, "state", path.at(-2).query), path.slice(0, -1));
}

/** A state as somebody changed it: gone to if there is such a state, else the sentence stands there.
 * Quick changes of one field are one step of the path. */
async function edited(here, query, field, sure) {
  const mine = here.edit = { field, at: Date.now() };
  try {
    const answer = await api.state(here.table.id, query);
    if (here.edit !== mine || screen !== here) return;
    const path = history.state?.path ?? [];
    const again = here.settled?.field === field && mine.at - here.settled.at < BURST && path.length > 1;
    here.settled = mine;
    here.ready = { query, answer, said: new Set(here.table.fields.map((each) => each.name)), from: "default" };
    const crumb = { query, label: field ? `${field} ${new URLSearchParams(query).get(field) ?? "–"}` : "changed" };
    address.go(address.of(here.table.id, "state", query), [...(again ? path.slice(0, -1) : path), crumb], again);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (here.edit === mine) here.form.refuse(error, sure);
  }
}

function refuse(here, asked, error) {
  here.form.put(Object.fromEntries(asked.query));
  fill(here.shown);
  fill(here.path);
  fill(here.answer);
  fill(here.verdict, nothing("No such state", error.message, h("p", null, "Change the state, or go to ", h("a", { href: address.of(asked.table, "state") }, "one that there is"), ".")));
  here.form.refuse(error);
  return "No such state";
}

/** The state as it looks; where its letters are small, a button makes them large enough to read. */
function draw(here, answer) {
  const picture = drawing(answer.drawing, answer.text ?? "the state");
  here.shown.hidden = !picture;
  if (!picture) return;
  const before = here.shown.querySelector(".zoomed");
  const svg = picture.firstElementChild;
  const zoom = h("button.zoom", { type: "button", "aria-pressed": "false", onclick: () => set(zoom.ariaPressed !== "true") }, "Zoom in");
  const set = (large) => {
    picture.classList.toggle("zoomed", large);
    zoom.ariaPressed = String(large);
    zoom.textContent = large ? "Zoom out" : "Zoom in";
    if (large) Object.entries({ tabindex: "0", role: "region", "aria-label": "The state, enlarged" }).forEach((each) => picture.setAttribute(...each));
    else ["tabindex", "role", "aria-label"].forEach((name) => picture.removeAttribute(name));
  };
  fill(here.shown, picture, zoom);
  const [letters, { width }] = [Math.min(...[...svg.querySelectorAll("text")].map((text) => Number(text.getAttribute("font-size")))), svg.viewBox.baseVal];
  svg.style.setProperty("--readable", `${Math.round((width * READABLE) / letters)}px`);
  zoom.hidden = !before && (svg.clientWidth * letters) / width >= SMALL;
  if (before) {
    const { scrollLeft, scrollTop } = before;
    set(true);
    picture.scrollTo(scrollLeft, scrollTop);
  }
}

/** Where else one can go: back, the start, any state, the last ones, examples. */
function elsewhere(table, here) {
  const to = (query) => address.of(table.id, "state", query);
  const examples = table.examples ?? [];
  return h("div.elsewhere", null,
    h("div.bar", null, here.undo, table.start ? h("a.button", { href: to(address.plain(begin(table))) }, "The start") : null, here.random),
    here.last,
    examples.length ? h("details", null, h("summary", null, "Examples"),
      h("ul.links", null, examples.map((example) => h("li", null, h("a", { href: to(address.plain(address.fields(example.state))) }, example.label))))) : null);
}

/** The states that were looked at last, the newest first. */
function remember(here, table, answer, query) {
  const all = lastStates.get(table) ?? [];
  const found = [{ query, text: answer.text ?? query, head: headline(here.table, answer) }, ...all.filter((each) => each.query !== query)].slice(0, STATES);
  lastStates.set(table, found);
  here.last.hidden = found.length < 2;
  const [summary] = here.last.children;
  fill(here.last, summary, h("ol.links", null, found.slice(1).map((each) => h("li", null,
    h("a", { href: address.of(table, "state", each.query) }, each.text), h("span.about", null, ` ${each.head}`)))));
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
