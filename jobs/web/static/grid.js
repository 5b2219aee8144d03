// Two fields as axes, sliders for the others, colour for what one wants to know; or one of the
// game's own charts.
import * as address from "./address.js";
import * as api from "./api.js";
import { apart, css, named, viridis } from "./colours.js";
import { CurveChart } from "./curves.js";
import { fill, h, newId, sorry } from "./dom.js";
import { options, Payoffs, player } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { listing } from "./listing.js";
import { asQuery, Settings } from "./settings.js";

const LONGEST_SLIDER = 400;
const OWN = new Set(["x", "y", "colour", "chart", "settings", "with"]);

let screen = null;
let asking = null;
let waiting = 0;

export function leave() {
  asking?.abort();
  screen?.map?.leave();
  screen = null;
}

export async function show(main, asked) {
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
    map = chosen.chart ? await chartMap(here, chosen) : await gridMap(here, chosen);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (!asked.current()) return "";
    here.map?.leave();
    here.map = null;
    fill(here.shown, chosen.settings ? null : sorry(error.message));
    if (chosen.settings) here.settings.refuse(error.message);
    return "Grid";
  } finally {
    if (asked.current()) here.shown.removeAttribute("aria-busy");
  }
  if (!asked.current()) return "";
  const focused = document.activeElement === here.map?.canvas;
  here.map?.leave();
  here.map = map.heat;
  fill(here.shown, h("h2", { "data-head": true, tabindex: "-1" }, map.title), map.about ? h("p.about", null, map.about) : null, map.legend, map.heat.element);
  if (focused) map.heat.canvas.focus();
  return map.title;
}

// --- what is chosen -------------------------------------------------------------------------------

/** The columns of a table's states that a slider or an axis can have. */
function columns(table) {
  return table.fields.filter((field) => field.kind !== "set").flatMap((field) => {
    const length = field.length ?? 1;
    return Array.from({ length }, (_, i) => ({
      field, place: i, length, name: length === 1 ? field.name : `${field.name}_${i + 1}`,
      label: length === 1 ? field.label ?? field.name : `${field.label ?? field.name}, ${field.players ? player(i + 1, length) : i + 1}`,
    }));
  });
}

function choice(table, query) {
  const axes = (table.axes ?? []).map((axis) => axis.name ?? axis);
  const given = Object.fromEntries([...query].filter(([name]) => !OWN.has(name)));
  const first = table.examples?.[0]?.state;
  const base = { ...address.fields(table.start ?? first), ...given };
  const charts = table.charts ?? [];
  const chart = query.get("chart") ?? (query.has("x") || axes.length > 1 || !charts.length ? null : charts[0].name);
  const x = query.get("x") ?? axes[0];
  const y = query.get("y") ?? axes.find((axis) => axis !== x);
  const settings = chart && chart !== "-" ? query.get("settings")?.trim() ?? "" : "";
  return { chart: chart === "-" ? null : chart, settings, x, y, colour: query.get("colour") ?? "value_1", base, axes, charts, with: query.get("with") };
}

/** Where the address names no axes: those of the player who is up, and his payoff as colour. */
async function begin(table, asked, chosen) {
  if (chosen.chart || asked.query.has("x") || chosen.axes.length < 2) return chosen;
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
  if (all.chart) return address.plain({ chart: all.chart, settings: all.settings || null });
  return address.plain({ x: all.x, y: all.y, colour: all.colour, with: all.with, ...all.base });
}

// --- controls -------------------------------------------------------------------------------------

function build(table) {
  const shown = h("section.mapped", { "aria-label": "The map" });
  const chosen = h("form.choices", { "aria-label": "What the map shows", onsubmit: (event) => event.preventDefault() });
  const root = h("div.view", null, h("h1", null, "Grid"), h("div.gridded", null, chosen, shown));
  return { table, root, shown, chosen, key: null, map: null, settings: null };
}

/** The controls: made anew when others are needed, else left as they are under the fingers. */
function controls(here, chosen) {
  const others = columns(here.table).filter((column) => column.name !== chosen.x && column.name !== chosen.y);
  const key = [chosen.chart, chosen.x, chosen.y, chosen.with].join();
  if (here.key !== key) {
    here.key = key;
    const held = document.activeElement?.name;
    here.settings = new Settings((settings) => go(here, query({ ...now(here), settings })));
    const parts = [what(here, chosen), chosen.chart ? here.settings.element : own(here, chosen, others)];
    fill(here.chosen, parts);
    if (held) here.chosen.elements[held]?.focus();
  }
  if (chosen.chart) return here.settings.put(chosen.settings);
  here.chosen.elements.colour.value = chosen.colour;
  here.chosen.querySelectorAll("[data-column]").forEach((input) => {
    if (input === document.activeElement) return;
    input.value = part(chosen.base, columnOf(here.table, input.dataset.column));
    input.nextElementSibling && (input.nextElementSibling.textContent = input.value);
  });
}

function columnOf(table, name) {
  return columns(table).find((column) => column.name === name);
}

/** The part of a state that a column says. */
function part(base, column) {
  const text = base[column.name] ?? base[column.field.name];
  if (text === undefined) return String(column.field.default ?? column.field.min ?? 0).split(",")[column.place] ?? "0";
  return column.length === 1 || base[column.name] !== undefined ? text : text.split(",")[column.place] ?? "";
}

function what(here, chosen) {
  if (!chosen.charts.length) return null;
  const items = [...chosen.charts.map((chart) => [chart.name, chart.shows]), ...(chosen.axes.length > 1 ? [["-", "two fields of your choice"]] : [])];
  return choose("what it shows", "chart", items, chosen.chart ?? "-", (name) => go(here, name === "-" ? query({ ...chosen, chart: null }) : query({ ...chosen, chart: name, settings: "" })));
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
    h("details", { open: here.chosen.querySelector("details")?.open ?? matchMedia("(min-width: 60rem)").matches }, h("summary", null, "The other fields"),
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

function go(here, to, replace = false) {
  address.go(address.of(here.table.id, "grid", to), [], replace);
}

function slider(here, column) {
  const { field } = column;
  const [low, step] = [field.min ?? 0, field.step ?? 1];
  const high = Math.min(field.max ?? Infinity, field.held_max ?? Infinity);
  const id = newId("slider");
  const ranged = (high - low) / step <= LONGEST_SLIDER;
  const input = h("input", {
    id, name: column.name, "data-column": column.name,
    ...(ranged ? { type: "range", min: low, max: high, step } : { type: "text", inputmode: "numeric" }),
    oninput: () => {
      if (input.nextElementSibling) input.nextElementSibling.textContent = input.value;
      clearTimeout(waiting);
      waiting = setTimeout(() => go(here, query(moved(here, column, input.value.trim())), true), ranged ? 60 : 300);
    },
  });
  return h("div.slider", null, h("label", { for: id }, column.label), input, ranged ? h("output.n", { for: id }) : null);
}

/** The state of the address with one number changed. */
function moved(here, column, value) {
  const chosen = now(here);
  const base = { ...chosen.base };
  if (column.length === 1) base[column.name] = value;
  else {
    const all = columns(here.table).filter((each) => each.field === column.field);
    base[column.field.name] = all.map((each) => (each.name === column.name ? value : part(base, each))).join(",");
    all.forEach((each) => delete base[each.name]);
  }
  return { ...chosen, base };
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
  const wanted = address.plain({ x: chosen.x, y: chosen.y, colour: chosen.colour, ...chosen.base });
  const [got, rival] = await Promise.all([api.grid(table.id, wanted, asking.signal), chosen.with ? api.table(chosen.with) : null]);
  const other = rival ? await api.grid(rival.id, `${wanted}&${sameAxes(got)}`, asking.signal) : null;
  const payoffs = new Payoffs(table);
  const names = got.actions ?? [];
  const best = chosen.colour === "best";
  const cells = other && !best ? minus(other, got) : best ? got.best : got.cells;
  const plain = colours(table).find(([name]) => name === chosen.colour)?.[1] ?? chosen.colour;
  const what = other && !best ? `${plain}: ${apartFrom(rival, table)} less ${apartFrom(table, rival)}` : plain;
  const number = best ? (k) => names[k] : other ? (value) => payoffs.change(value) : (value) => payoffs.text(value);
  const own = (i, j) => `${data.x.label} = ${got.x.values[i]}, ${data.y.label} = ${got.y.values[j]}`;
  const tell = (i, j) => {
    if (cells[i][j] === null) return `${own(i, j)}: ${got.best?.[i]?.[j] === null ? "no such state in this table" : other && !best && got.cells[i][j] !== null ? `no such state on ${apartFrom(rival, table)}` : "nothing to choose"}`;
    const said = best ? "" : `${what} ${number(cells[i][j])}`;
    const action = got.best?.[i]?.[j] ?? null;
    return `${own(i, j)}: ${[said, action === null ? "" : `best: ${names[action]}`].filter(Boolean).join(", ")}`;
  };
  const scale = other && !best ? differences(cells, payoffs) : best ? actions(names) : numbers(cells, payoffs);
  const data = { x: axis(table, got.x), y: axis(table, got.y), cells, edges: best ? null : got.best, name: what, flat: best, text: (i, j) => (cells[i][j] === null ? "" : number(cells[i][j])) };
  const held = got.cells;
  const heat = new HeatMap(data, {
    colour: (i, j) => (cells[i][j] === null ? null : scale.colour(cells[i][j])), tell, caption: `${what} over ${data.x.label} and ${data.y.label}`,
    href: (i, j) => (held[i][j] === null && (got.best?.[i]?.[j] ?? null) === null ? null : address.of(table.id, "state", cellState(here, chosen, got, i, j))),
  });
  const parted = !best && got.best?.flat().some((k) => k !== null) && new Set(got.best.flat().filter((k) => k !== null)).size > 1;
  return { heat, title: capital(what), legend: scale.legend, about: parted ? `White lines: the best action changes there${other ? `, on ${table.board}` : ""}.` : null };
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

/** The state of a cell: what is chosen, with the two numbers in their places. */
function cellState(here, chosen, got, i, j) {
  let base = { ...chosen.base };
  for (const [column, value] of [[columnOf(here.table, got.x.name), got.x.values[i]], [columnOf(here.table, got.y.name), got.y.values[j]]]) {
    if (!column) continue;
    const all = columns(here.table).filter((each) => each.field === column.field);
    const text = all.map((each) => (each.name === column.name ? value : part(base, each))).join(",");
    all.forEach((each) => delete base[each.name]);
    base = { ...base, [column.field.name]: text };
  }
  return address.plain(base);
}

const plain = (value) => (value === null ? "none" : Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 }));

/** One of the game's charts: curves, lines to read, or a heat map. */
async function chartMap(here, chosen) {
  const got = await api.chart(here.table.id, chosen.chart, asQuery(chosen.settings), asking.signal);
  if (got.kind === "curves") return { heat: new CurveChart(got, plain), title: got.title, about: got.about, legend: null };
  if (got.kind === "listing") {
    const shows = chosen.charts.find((chart) => chart.name === got.name)?.shows ?? got.name;
    return { heat: listing(got, shows), title: capital(shows), about: got.note, legend: null };
  }
  return pictured(here, got);
}

function pictured(here, got) {
  const { table } = here;
  const [nx, ny] = got.names;
  const limits = got.limits ?? span(got.values);
  const data = {
    x: { label: got.x_label, values: got.xs }, y: { label: got.y_label, values: got.ys }, cells: got.values,
    lines: got.lines, words: got.words, name: got.colour_label, text: (i, j) => (got.values[i][j] === null ? "" : plain(got.values[i][j])),
  };
  const scale = legendOf(viridis, limits, plain);
  const states = got.rest && [nx, ny].every((name) => columnOf(table, name));
  const state = (i, j) => cellState(here, { base: got.rest }, { x: { name: nx, values: got.xs }, y: { name: ny, values: got.ys } }, i, j);
  const heat = new HeatMap(data, {
    caption: got.title,
    colour: (i, j) => (got.values[i][j] === null || got.blank?.[i]?.[j] ? null : scale.colour(got.values[i][j])),
    tell: (i, j) => `${got.x_label} = ${got.xs[i]}, ${got.y_label} = ${got.ys[j]}: ${got.colour_label} ${plain(got.values[i][j])}`,
    href: states ? (i, j) => (got.values[i][j] === null ? null : address.of(table.id, "state", state(i, j))) : null,
  });
  return { heat, title: got.title, about: got.about, legend: scale.legend };
}

// --- scales ---------------------------------------------------------------------------------------

function span(cells) {
  const held = cells.flat().filter((value) => typeof value === "number");
  return held.length ? [held.reduce((a, b) => Math.min(a, b)), held.reduce((a, b) => Math.max(a, b))] : [0, 1];
}

function numbers(cells, payoffs) {
  return legendOf(viridis, span(cells), (value) => payoffs.text(value));
}

function differences(cells, payoffs) {
  const most = Math.max(...span(cells).map(Math.abs)) || 1e-12;
  return legendOf(apart, [-most, most], (value) => payoffs.change(value));
}

/** A scale of numbers: what colour one has, and the bar that says so. */
function legendOf(colours, [low, high], text) {
  const share = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  const steps = Array.from({ length: 32 }, (_, k) => {
    const step = h("span");
    step.style.setProperty("background", css(colours(k / 31)));
    return step;
  });
  return {
    colour: (value) => colours(share(value)),
    legend: h("div.legend", { role: "img", "aria-label": `Colours from ${text(low)} to ${text(high)}` }, h("span.n", null, text(low)), h("span.ramp", null, steps), h("span.n", null, text(high))),
  };
}

function actions(names) {
  const swatch = (k) => {
    const made = h("span.swatch");
    made.style.setProperty("background", css(named(k, names.length)));
    return made;
  };
  return {
    colour: (k) => named(k, names.length),
    legend: h("ul.legend.names", null, names.map((name, k) => h("li", null, swatch(k), name)), h("li", null, h("span.swatch.none"), "nothing to choose")),
  };
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
