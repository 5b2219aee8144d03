// What if: the same state in two tables, side by side, differences coloured.
import * as address from "./address.js";
import * as api from "./api.js";
import { drawing, fill, h, newId, nothing, s } from "./dom.js";
import { exportBar } from "./export.js";
import { StateForm } from "./fields.js";
import { capital, Payoffs, player } from "./format.js";
import { named } from "./here.js";

const GAP = 24;

let screen = null;

export function leave() {
  screen = null;
}

export async function show(main, asked) {
  const first = asked.data;
  if (!first) return choose(main, asked);
  const second = asked.query.get("second");
  const tables = await api.tables();
  if (!asked.current()) return "";
  const rivals = tables.filter((table) => table.game === first.game && table.id !== first.id && table.state !== "damaged");
  if (!second && rivals.length) {
    const [nearest] = rivals.sort((a, b) => apart(first, a) - apart(first, b));
    address.go(address.of("", "compare", { ...Object.fromEntries(asked.query), second: nearest.id }), [], true);
    return "What if";
  }
  if (!asked.same || screen?.first !== first.id || !screen.root.isConnected) {
    screen = build(first);
    fill(main, screen.root);
  }
  const here = screen;
  fill(here.pick, pick(asked, first, tables.filter((table) => table.game === first.game)));
  if (!second) {
    fill(here.shown, h("p.lead", null, "There is only one table of this game here. Solve a second one, with another board or other options, to see what changes."));
    return "What if";
  }
  const query = stateOf(first, asked.query);
  let got;
  try {
    got = here.ready?.query === query && here.ready.second === second ? here.ready.got : await api.compare(asking(first.id, second, query, "&shared=1"));
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (!asked.current()) return "";
    here.form.put(address.fields(query));
    fill(here.boards);
    fill(here.shown, h("p.note", { role: "alert" }, error.message));
    if (error.status === 400) here.form.refuse(error);
    return "What if";
  }
  if (!asked.current()) return "";
  here.ready = null;
  const state = address.fields(got.first.state);
  if (got.moved || !query) history.replaceState(history.state, "", address.of("", "compare", { first: first.id, second, ...state }));
  here.form.put(state);
  fill(here.boards, [got.first, got.second].map((answer, i) => drawing(answer.drawing, `${["first", "second"][i]}: ${answer.text ?? "the state"}`)));
  fill(here.shown, got.moved ? h("p.note", null, "The two tables do not both have the state that you came from. Both have this one.") : null, side(first, got, second, state));
  return "What if";
}

/** In how much two tables differ: the board, and each option. */
function apart(one, other) {
  const names = Object.keys({ ...one.options, ...other.options });
  return (one.board === other.board ? 0 : names.length + 1) + names.filter((name) => one.options[name] !== other.options[name]).length;
}

/** No table is named: the first there is. */
async function choose(main, asked) {
  const tables = (await api.tables()).filter((table) => table.state !== "damaged");
  if (!tables.length) fill(main, nothing("Nothing to compare", "There is no table here yet."));
  else if (asked.current()) address.go(address.of("", "compare", { first: tables[0].id }), [], true);
  return "What if";
}

const asking = (first, second, state, more = "") => `${address.plain({ first, second })}${state ? `&${state}` : ""}${more}`;

/** The state of an address, as a query; "" where there is none. */
function stateOf(table, query) {
  return address.plain(new URLSearchParams([...query].filter(([name]) => table.fields.some((field) => field.name === name))));
}

function build(table) {
  const here = { first: table.id, ready: null, edit: null };
  here.form = new StateForm(table, (query, field, sure) => edited(here, query, sure));
  here.shown = h("div.answer");
  here.pick = h("div.pair");
  here.boards = h("div.pair.boards");
  const open = matchMedia("(min-width: 60rem)").matches;
  here.root = h("div.view", null, h("h1", { "data-head": true, tabindex: "-1" }, "What if"),
    h("p.lead", null, "The same state in two tables: two boards, or two sets of options."), here.pick, here.boards,
    h("div.explorer", null, h("div.state", null, h("details.change", { open }, h("summary", null, "Change the state"), here.form.element)), here.shown));
  return here;
}

/** A state as somebody changed it: shown where both tables have it, else the sentence stands there. */
async function edited(here, query, sure) {
  const mine = here.edit = {};
  const second = address.read(location.hash).query.get("second");
  try {
    const got = await api.compare(asking(here.first, second, query));
    if (here.edit !== mine || screen !== here) return;
    here.ready = { query: address.plain(new URLSearchParams(query)), second, got };
    address.go(address.of("", "compare", { first: here.first, second, ...address.fields(query) }), [], true);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (here.edit === mine) here.form.refuse(error, sure);
  }
}

function pick(asked, first, tables) {
  const one = (label, name, value) => {
    const id = newId(name);
    const chosen = h("select", { id, name, onchange: () => address.go(address.of("", "compare", { ...Object.fromEntries(asked.query), [name]: chosen.value })) },
      tables.map((table) => h("option", { value: table.id }, named(table, tables))));
    chosen.value = value ?? "";
    return h("div.row", null, h("label", { for: id }, label), chosen);
  };
  return [one("first table", "first", first.id), one("second table", "second", asked.query.get("second"))];
}

/** Two answers side by side: the payoffs, every action, what is best. */
function side(table, got, second, state) {
  const payoffs = new Payoffs(table);
  const { first: a, second: b } = got;
  const names = [...new Set([...(a.actions ?? []), ...(b.actions ?? [])].map((action) => action.action))];
  const of = (answer, name) => answer.actions?.find((action) => action.action === name)?.value ?? null;
  const who = (a.to_act ?? b.to_act ?? 1) - 1;
  const all = [["this state", a.value, b.value], ...names.map((name) => [name, of(a, name), of(b, name)])];
  const most = Math.max(...all.map(([, x, y]) => (x && y ? Math.abs(y[who] - x[who]) : 0)), payoffs.chance ? 0.02 : 0.1);
  const same = a.best === b.best;
  const map = (table.axes ?? []).length > 1 ? h("a.button", { href: address.of(table.id, "grid", { with: second, ...state }) }, "See the difference as a map") : null;
  return h("section", { "aria-label": "The two answers" },
    h("h2", null, same ? (a.best ? `Best in both: ${a.best}` : "The same in both") : `First: ${a.best ?? "mixed"}. Second: ${b.best ?? "mixed"}.`),
    h("p.about", null, `${capital(payoffs.name)}${table.players > 1 ? ` of ${player(who + 1, table.players)}` : ""}`),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": "The two answers, as a table" }, h("table.outcomes.compared", null,
      h("thead", null, h("tr", null, h("td"), h("th.n", { scope: "col" }, "first"), h("th.n", { scope: "col" }, "second"), h("th.swing", { scope: "col" }, "second less first"))),
      h("tbody", null, all.map(([name, x, y]) => h("tr", null, h("th", { scope: "row" }, name, mark(name, a, b)),
        h("td.n", null, x ? payoffs.show(x[who]) : "–"), h("td.n", null, y ? payoffs.show(y[who]) : "–"),
        h("td.swing", null, x && y ? swing(payoffs, y[who] - x[who], most) : "")))))),
    everybody(table, payoffs, a, b),
    exportBar({
      name: `${table.game}-what-if`, title: a.text ?? "", about: "The first table, the second below.",
      picture: a.drawing && b.drawing ? (width) => stacked(width, document.querySelectorAll(".boards .drawing svg")) : null,
      rows: () => [["", "first", "second", "second less first"], ...all.map(([name, x, y]) => [name, x?.[who], y?.[who], x && y ? y[who] - x[who] : ""])],
    }),
    h("div.bar.ends", null, h("a.button", { href: address.of(table.id, "state", state) }, "Explore the first"),
      h("a.button", { href: address.of(second, "state", state) }, "Explore the second"), map));
}

/** Drawings one below the other. */
function stacked(width, drawings) {
  let y = 0;
  const made = s("svg");
  for (const shown of drawings) {
    const { width: wide, height: tall } = shown.viewBox.baseVal;
    const [copy, height] = [shown.cloneNode(true), (tall * width) / wide];
    for (const [name, value] of Object.entries({ x: 0, y, width, height })) copy.setAttribute(name, value);
    made.append(copy);
    y += height + GAP;
  }
  made.setAttribute("viewBox", `0 0 ${width} ${y - GAP}`);
  return made;
}

function mark(name, a, b) {
  const where = [a.best === name ? "first" : "", b.best === name ? "second" : ""].filter(Boolean);
  if (!where.length) return null;
  return h("span.badge.good", null, where.length === 2 ? "best in both" : `best in the ${where[0]}`);
}

function everybody(table, payoffs, a, b) {
  if (table.players < 3) return null;
  return h("p.about", null, "Change for each: ", a.value.map((value, i) => `player ${i + 1} ${payoffs.change(b.value[i] - value)}`).join(", "), ".");
}

function swing(payoffs, change, most) {
  const near = Math.abs(change) < 1e-12;
  const piece = h(`span.${change < 0 ? "worse" : "better"}`);
  piece.style.setProperty("--long", String(near ? 0 : Math.abs(change) / most));
  return h("div.swinging", null, h("span.track", { "aria-hidden": true }, piece), h("span.n", null, near ? "±0" : payoffs.change(change)));
}
