// Two fields as axes, sliders for the others, colour for what one wants to know.
import * as address from "./address.js";
import * as api from "./api.js";
import { apart, namedScale, scaleOf, span, viridis } from "./colours.js";
import { cellState, changed, columnOf, columns, part } from "./columns.js";
import { fill, h, newId, sorry } from "./dom.js";
import { exportBar } from "./export.js";
import { options, Payoffs, capital } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { fromText } from "./settings.js";

const LONGEST_SLIDER = 400;
const OWN = new Set(["x", "y", "colour", "with"]);
const BOUNDS = ["from", "to", "step"];

let screen = null;
let asking = null;
let waiting = 0;

export function leave() {
  asking?.abort();
  screen?.map?.leave();
  screen = null;
}

export async function show(main, asked) {
  if (asked.query.has("chart")) { // as links of before have it
    const settings = fromText(asked.query.get("settings") ?? "");
    address.go(address.of(asked.table, "charts", { chart: asked.query.get("chart"), ...settings }), [], true);
    return "Charts";
  }
  if (!asked.same || !screen?.root.isConnected) {
    screen?.map?.leave();
    screen = build(asked.data);
    fill(main, screen.root);
  }
  const here = screen;
  asking?.abort();
  asking = new AbortController();
  const chosen = await begin(here.table, asked, choice(here.table, asked.query));
  if (!asked.current()) return "";
  controls(here, chosen);
  here.shown.setAttribute("aria-busy", "true");
  let map;
  try {
    map = await gridMap(here, chosen);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (!asked.current()) return "";
    here.map?.leave();
    here.map = null;
    fill(here.shown, sorry(error.message));
    return "Grid";
  } finally {
    if (asked.current()) here.shown.removeAttribute("aria-busy");
  }
  if (!asked.current()) return "";
  const focused = document.activeElement === here.map?.canvas;
  here.map?.leave();
  here.map = map.heat;
  fill(here.shown, h("h2", { "data-head": true, tabindex: "-1" }, map.title), map.about ? h("p.about", null, map.about) : null, map.legend, map.heat.element,
    exportBar({ name: `${here.table.game}-${chosen.x}-${chosen.y}`, title: map.title, about: map.at, ...map.heat.kept }));
  if (focused) map.heat.canvas.focus();
  return map.title;
}

// --- what is chosen -------------------------------------------------------------------------------

function choice(table, query) {
  const axes = (table.axes ?? []).map((axis) => axis.name ?? axis);
  const given = Object.fromEntries([...query].filter(([name]) => !OWN.has(name)));
  const bounds = {};
  for (const name of axes.flatMap((axis) => BOUNDS.map((end) => `${axis}_${end}`))) {
    if (given[name] !== undefined) bounds[name] = given[name];
    delete given[name];
  }
  const base = { ...address.fields(table.start ?? table.examples?.[0]?.state), ...given };
  const x = query.get("x") ?? axes[0];
  const y = query.get("y") ?? axes.find((axis) => axis !== x);
  return { x, y, colour: query.get("colour") ?? "value_1", base, bounds, axes, with: query.get("with") };
}

/** Where the address names no axes: those of the player who is up, and their payoff as colour. */
async function begin(table, asked, chosen) {
  if (asked.query.has("x") || chosen.axes.length < 2) return chosen;
  let up = 1;
  try {
    up = (await api.state(table.id, `${address.plain(chosen.base)}&drawing=0`, asking.signal)).to_act ?? 1;
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
  }
  const own = chosen.axes.find((name) => name.endsWith(`_${up}`));
  const x = own ?? chosen.x;
  const field = columnOf(table, x)?.field;
  const y = chosen.axes.find((name) => name !== x && columnOf(table, name)?.field === field) ?? chosen.axes.find((name) => name !== x);
  const found = { ...chosen, x, y, colour: asked.query.get("colour") ?? `value_${up}` };
  if (asked.current()) history.replaceState(history.state, "", address.of(table.id, "grid", query(found)));
  return found;
}

function query(chosen, more = {}) {
  const all = { ...chosen, ...more };
  return address.plain({ x: all.x, y: all.y, colour: all.colour, with: all.with, ...bounded(all), ...all.base });
}

/** The bounds of the axes that there are now. */
function bounded({ x, y, bounds }) {
  return Object.fromEntries(Object.entries(bounds).filter(([name]) => BOUNDS.some((end) => name === `${x}_${end}` || name === `${y}_${end}`)));
}

// --- controls -------------------------------------------------------------------------------------

function build(table) {
  const shown = h("section.mapped", { "aria-label": "The map" });
  const chosen = h("form.choices", { "aria-label": "What the map shows", onsubmit: (event) => event.preventDefault() });
  const root = h("div.view", null, h("h1", null, "Grid"), h("div.gridded", null, chosen, shown));
  return { table, root, shown, chosen, key: null, map: null };
}

/** The controls: made anew when others are needed, else left as they are under the fingers. */
function controls(here, chosen) {
  const others = columns(here.table).filter((column) => column.name !== chosen.x && column.name !== chosen.y);
  const key = [chosen.x, chosen.y, chosen.with].join();
  if (here.key !== key) {
    here.key = key;
    const held = document.activeElement?.name;
    fill(here.chosen, own(here, chosen, others));
    if (held) here.chosen.elements[held]?.focus();
  }
  if (chosen.axes.length < 2) return;
  here.chosen.elements.colour.value = chosen.colour;
  here.chosen.querySelectorAll("[data-bound]").forEach((input) => {
    if (input !== document.activeElement) input.value = chosen.bounds[input.name] ?? "";
  });
  here.chosen.querySelectorAll("[data-column]").forEach((input) => {
    if (input === document.activeElement) return;
    input.value = part(chosen.base, columnOf(here.table, input.dataset.column));
    input.nextElementSibling && (input.nextElementSibling.textContent = input.value);
  });
}

function own(here, chosen, others) {
  if (chosen.axes.length < 2) return h("p.note", null, "States of this game have no two numbers to make axes of.");
  const label = (name) => columnOf(here.table, name)?.label ?? name;
  const items = chosen.axes.map((name) => [name, label(name)]);
  const swap = (axis, name) => {
    const other = axis === "x" ? "y" : "x";
    go(here, query({ ...now(here), [axis]: name, ...(now(here)[other] === name ? { [other]: chosen[axis] } : {}) }));
  };
  return [
    choose("across", "x", items, chosen.x, (name) => swap("x", name)),
    choose("up", "y", items, chosen.y, (name) => swap("y", name)),
    choose("colour", "colour", colours(here.table), chosen.colour, (name) => go(here, query({ ...now(here), colour: name }))),
    chosen.with ? h("p.note", null, "Colour: how much more another table gives. ",
      h("a", { href: address.of(here.table.id, "grid", query({ ...chosen, with: null })) }, "This table alone")) : null,
    h("details", { open: here.chosen.querySelector("details.ends")?.open }, h("summary", null, "From, to and step of the axes"),
      [chosen.x, chosen.y].map((name) => ends(here, name))),
    h("details", { open: here.chosen.querySelector("details:last-child")?.open ?? matchMedia("(min-width: 60rem)").matches }, h("summary", null, "The other fields"),
      h("div.sliders", null, others.map((column) => slider(here, column)), sets(here, chosen))),
  ];
}

const now = (here) => choice(here.table, address.read(location.hash).query);

function colours(table) {
  const payoffs = new Payoffs(table);
  const values = Array.from({ length: table.players }, (_, i) => [`value_${i + 1}`, table.players === 1 ? payoffs.name : `${payoffs.name}, player ${i + 1}`]);
  return [...values, ["margin", "margin of the best action"], ["best", "best action"]];
}

function choose(label, name, items, value, onchange) {
  const id = newId(name);
  const chosen = h("select", { id, name, onchange: () => onchange(chosen.value) }, items.map(([key, text]) => h("option", { value: key }, text)));
  chosen.value = value;
  return h("div.row", null, h("label", { for: id }, label), chosen);
}

/** Which values of a column the map shows. */
function ends(here, name) {
  const axis = here.table.axes.find((each) => each.name === name);
  const usual = { from: axis.min, to: axis.max, step: axis.step };
  const set = (bound, value) => go(here, query({ ...now(here), bounds: { ...now(here).bounds, [bound]: value || null } }));
  return h("fieldset.row", null, h("legend", null, columnOf(here.table, name)?.label ?? name), h("div.numbers", null, BOUNDS.map((end) => h("label.bound", null, end,
    h("input", { name: `${name}_${end}`, "data-bound": true, type: "text", inputmode: "numeric", placeholder: usual[end], onchange: ({ target }) => set(target.name, target.value.trim()) })))));
}

function go(here, to, replace = false) {
  address.go(address.of(here.table.id, "grid", to), [], replace);
}

function slider(here, column) {
  const { field } = column;
  const [low, step] = [field.min ?? 0, field.step ?? 1];
  const high = Math.min(field.max ?? Infinity, field.held_max ?? Infinity);
  const id = newId("slider");
  const named = typeof field.choices?.[0] === "string";
  const ranged = !named && field.kind !== "name" && (high - low) / step <= LONGEST_SLIDER;
  const input = h(named ? "select" : "input", {
    id, name: column.name, "data-column": column.name,
    ...(named ? {} : ranged ? { type: "range", min: low, max: high, step } : { type: "text", inputmode: "numeric" }),
    oninput: () => {
      if (input.nextElementSibling) input.nextElementSibling.textContent = input.value;
      clearTimeout(waiting);
      waiting = setTimeout(() => go(here, query({ ...now(here), base: changed(here.table, now(here).base, column, input.value.trim()) }), true), ranged ? 60 : 300);
    },
  }, named ? field.choices.map((each) => h("option", { value: each }, each)) : null);
  return h("div.slider", null, h("label", { for: id }, column.label), input, ranged ? h("output.n", { for: id }) : null);
}

function sets(here, chosen) {
  return here.table.fields.filter((field) => field.kind === "set").map((field) => {
    const id = newId("set");
    const input = h("input", {
      id, name: field.name, type: "text", value: chosen.base[field.name] ?? "",
      onchange: () => go(here, query({ ...now(here), base: { ...now(here).base, [field.name]: input.value.trim() } })),
    });
    return h("div.slider", null, h("label", { for: id }, field.label ?? field.name), input);
  });
}

// --- maps -----------------------------------------------------------------------------------------

async function gridMap(here, chosen) {
  const { table } = here;
  if (chosen.axes.length < 2) throw new api.Refused("This table has no grid: its states have no two numbers to make axes of.", 400);
  const wanted = address.plain({ x: chosen.x, y: chosen.y, colour: chosen.colour, ...bounded(chosen), ...chosen.base });
  const [got, rival] = await Promise.all([api.grid(table.id, wanted, asking.signal), chosen.with ? api.table(chosen.with) : null]);
  const other = rival ? await api.grid(rival.id, `${wanted}&${sameAxes(got)}`, asking.signal) : null;
  const payoffs = new Payoffs(table);
  const names = got.actions ?? [];
  const best = chosen.colour === "best";
  const cells = other && !best ? minus(other, got) : best ? got.best : got.cells;
  const plain = colours(table).find(([name]) => name === chosen.colour)?.[1] ?? chosen.colour;
  const what = other && !best ? `${plain}: ${apartFrom(rival, table)} less ${apartFrom(table, rival)}` : plain;
  const number = best ? (k) => names[k] : (value) => (other ? payoffs.change(value) : chosen.colour === "margin" ? payoffs.size(value) : payoffs.text(value));
  const own = (i, j) => `${data.x.label} = ${got.x.values[i]}, ${data.y.label} = ${got.y.values[j]}`;
  const tell = (i, j) => {
    if (cells[i][j] === null) return `${own(i, j)}: ${got.best?.[i]?.[j] === null ? "no such state in this table" : other && !best && got.cells[i][j] !== null ? `no such state on ${apartFrom(rival, table)}` : "nothing to choose"}`;
    const said = best ? "" : `${what} ${number(cells[i][j])}`;
    const action = got.best?.[i]?.[j] ?? null;
    return `${own(i, j)}: ${[said, action === null ? "" : `best: ${names[action]}`].filter(Boolean).join(", ")}`;
  };
  const most = Math.max(...span(cells).map(Math.abs)) || 1e-12;
  const scale = best ? namedScale(names, "nothing to choose")
    : other ? scaleOf(apart, [-most, most], number) : scaleOf(viridis, span(cells), number);
  const data = { x: axis(table, got.x), y: axis(table, got.y), cells, edges: best ? null : got.best, name: what, names: [got.x.name, got.y.name, chosen.colour], flat: best, text: (i, j) => (cells[i][j] === null ? "" : number(cells[i][j])) };
  const held = got.cells;
  const state = (i, j) => cellState(table, chosen.base, [got.x.name, got.x.values[i]], [got.y.name, got.y.values[j]]);
  const heat = new HeatMap(data, {
    scale, colour: (i, j) => (cells[i][j] === null ? null : scale.colour(cells[i][j])), tell, caption: `${what} over ${data.x.label} and ${data.y.label}`,
    href: (i, j) => (held[i][j] === null && (got.best?.[i]?.[j] ?? null) === null ? null : address.of(table.id, "state", state(i, j))),
  });
  const parted = !best && got.best?.flat().some((k) => k !== null) && new Set(got.best.flat().filter((k) => k !== null)).size > 1;
  return { heat, title: capital(what), at: fixedAt(got), legend: scale.legend, about: parted ? `White lines: the best action changes there${other ? `, on ${table.board}` : ""}.` : null };
}

/** The fields that all cells share, for a picture of them. */
function fixedAt(got) {
  const rest = Object.entries(address.fields(got.queries ?? "")).map(([name, value]) => `${name} ${value}`);
  return rest.join(", ");
}

function axis(table, given) {
  return { label: columnOf(table, given.name)?.label ?? given.label ?? given.name, values: given.values };
}

/** The axes of one grid, as another table is asked for them: its own may have other steps. */
function sameAxes(got) {
  const spans = [got.x, got.y].map(({ name, values }) => [
    [`${name}_from`, values[0]], [`${name}_to`, values.at(-1)], [`${name}_step`, values.length > 1 ? values[1] - values[0] : 1]]);
  return address.plain(Object.fromEntries(spans.flat()));
}

/** The first grid less the second, on the second's axes: cells are found by their values there. */
function minus(first, second) {
  const places = (axis) => new Map(axis.values.map((value, k) => [value, k]));
  const [across, up] = [places(first.x), places(first.y)];
  return second.x.values.map((x, i) => second.y.values.map((y, j) => {
    const [own, other] = [second.cells[i][j], first.cells[across.get(x)]?.[up.get(y)] ?? null];
    return own === null || other === null ? null : other - own;
  }));
}

/** A table by its board, and by the options that another one has not. */
function apartFrom(table, other) {
  const [own, its] = [settings(table), settings(other)];
  const names = Object.keys({ ...table.options, ...other.options }).filter((name) => own[name] !== its[name]).sort();
  return names.length ? `${table.board} with ${options(Object.fromEntries(names.map((name) => [name, own[name]])))}` : table.board;
}

/** The options of a table's board, those at the game's defaults too. */
function settings(table) {
  const parts = Object.values(table.board_file ?? {}).filter((part) => part && typeof part === "object");
  return { ...Object.assign({}, ...parts), ...table.options };
}
