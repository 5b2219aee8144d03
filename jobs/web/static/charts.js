// The game's own charts: what a table says at a glance, each with a sentence on how to read it and
// with what it is made for as inputs.
import * as address from "./address.js";
import * as api from "./api.js";
import { scaleOf, span, viridis } from "./colours.js";
import { cellState, columnOf } from "./columns.js";
import { CurveChart } from "./curves.js";
import { fill, h, sorry } from "./dom.js";
import { exportBar } from "./export.js";
import { capital } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { listing, plain } from "./listing.js";
import { Settings } from "./settings.js";

let screen = null;
let asking = null;

export function leave() {
  asking?.abort();
  screen?.shown?.leave();
  screen = null;
}

export async function show(main, asked) {
  const { data: table } = asked;
  const kinds = table.charts ?? [];
  if (!kinds.length) {
    screen?.shown?.leave();
    screen = null;
    fill(main, h("div.view", null, h("h1", null, "Charts"), h("p.note", null, "This game has no charts of its own. ",
      h("a", { href: address.of(table.id, "grid") }, "Grid"), " shows its states over two of their fields.")));
    return "Charts";
  }
  if (!asked.same || !screen?.root.isConnected) {
    screen?.shown?.leave();
    screen = build(table);
    fill(main, screen.root);
  }
  const here = screen;
  const kind = kinds.find((each) => each.name === asked.query.get("chart")) ?? (asked.query.has("chart") ? null : kinds[0]);
  if (!kind) throw new api.Refused(`There is no chart of this name; there are ${kinds.map((each) => each.name).join(", ")}.`, 404);
  const settings = Object.fromEntries([...asked.query].filter(([name]) => name !== "chart"));
  controls(here, kind, settings);
  asking?.abort();
  asking = new AbortController();
  here.place.setAttribute("aria-busy", "true");
  let got;
  try {
    got = await api.chart(table.id, kind.name, address.plain(settings), asking.signal);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (!asked.current()) return "";
    if (Object.keys(settings).length) here.settings.refuse(error.message);
    else fill(here.place, sorry(error.message));
    return "Charts";
  } finally {
    if (asked.current()) here.place.removeAttribute("aria-busy");
  }
  if (!asked.current()) return "";
  return draw(here, kind, got);
}

function build(table) {
  const place = h("section.mapped", { "aria-label": "The chart" });
  const wide = matchMedia("(min-width: 60rem)").matches;
  const list = h("nav", { "aria-label": "Charts of this game" });
  const summary = h("span");
  const chosen = h("form", { "aria-label": "What the chart is made for", onsubmit: (event) => event.preventDefault() });
  const more = h("details", { open: wide }, h("summary", null, "Settings"), chosen);
  const root = h("div.view", null, h("h1", null, "Charts"),
    h("div.gridded", null, h("div.choices", null, h("details", { open: wide }, h("summary", null, summary), list), more), place));
  return { table, root, place, list, summary, chosen, more, kind: null, settings: null, shown: null };
}

/** The list of charts, and the settings of this one: made anew where others are needed, else left
 * as they are under the fingers. */
function controls(here, kind, settings) {
  const names = Object.keys(settings);
  const there = here.kind === kind && names.every((name) => kind.takes === null || here.settings.rows.has(name));
  if (!there) {
    here.kind = kind;
    fill(here.summary, "All charts");
    fill(here.list, h("ul.chartlist", null, here.table.charts.map((each) => h("li", null, h("a", {
      href: address.of(here.table.id, "charts", { chart: each.name }), "aria-current": each === kind ? "page" : null,
    }, capital(each.shows))))));
    here.settings = new Settings(kind, names, (chosen) => {
      address.go(address.of(here.table.id, "charts", { chart: kind.name, ...chosen }));
    });
    fill(here.chosen, here.settings.element);
    here.more.hidden = here.settings.element.hidden;
  }
  here.settings.put(settings);
}

function draw(here, kind, got) {
  here.shown?.leave();
  const focused = document.activeElement === here.shown?.canvas;
  const made = { curves: curves, heatmap: pictured, listing: listed }[got.kind](here.table, kind, got);
  here.shown = made.shown;
  fill(here.place, h("h2", { "data-head": true, tabindex: "-1" }, made.title), got.about ? h("p.about", null, got.about) : null,
    kind.reading ? h("p.reading", null, kind.reading) : null, made.legend, made.shown.element,
    exportBar({ name: `${here.table.game}-${kind.name}`, title: made.title, about: got.about, ...made.shown.kept }));
  if (focused) made.shown.canvas.focus();
  return made.title;
}

function curves(table, kind, got) {
  return { shown: new CurveChart(got, plain), title: got.title };
}

function listed(table, kind, got) {
  return { shown: listing(got, kind.shows), title: capital(kind.shows) };
}

function pictured(table, kind, got) {
  const [nx, ny] = got.names;
  const data = {
    x: { label: got.x_label, values: got.xs }, y: { label: got.y_label, values: got.ys }, cells: got.values,
    lines: got.lines, words: got.words, name: got.colour_label, names: got.names, text: (i, j) => (got.values[i][j] === null ? "" : plain(got.values[i][j])),
  };
  const scale = scaleOf(viridis, got.limits ?? span(got.values), plain);
  const states = got.rest && [nx, ny].every((name) => columnOf(table, name));
  const state = (i, j) => cellState(table, got.rest, [nx, got.xs[i]], [ny, got.ys[j]]);
  const shown = new HeatMap(data, {
    caption: got.title, scale, what: states ? "states" : "cells",
    colour: (i, j) => (got.values[i][j] === null || got.blank?.[i]?.[j] ? null : scale.colour(got.values[i][j])),
    tell: (i, j) => `${got.x_label} = ${got.xs[i]}, ${got.y_label} = ${got.ys[j]}: ${got.colour_label} ${plain(got.values[i][j])}`,
    href: states ? (i, j) => (got.values[i][j] === null ? null : address.of(table.id, "state", state(i, j))) : null,
  });
  return { shown, title: got.title, legend: scale.legend };
}
