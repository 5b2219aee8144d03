// A site without a server: the addresses of the API, answered from files (`jobs.web.site`).
import { Refused } from "./api.js";
import { plain } from "./address.js";
import { block } from "./blocks.js";

const CELLS = 40_000;
const TRIES = 600;
const LATER = 1000; // milliseconds: the first answer comes first
const HARD = { any: [0, Infinity], easy: [5, Infinity], medium: [1, 5], hard: [0, 1] }; // in steps of payoffs
const OWN = ["drawing", "version", "random", "strict", "difficulty", "seed", "x", "y", "colour"];

let site = null;

/** What a server would say to a request, as a Response. */
export async function answer(path) {
  const { pathname, searchParams } = new URL(path, "http://site");
  try {
    site ??= begun();
    const said = await (await site).say(pathname.split("/").slice(3).map(decodeURIComponent), searchParams);
    return new Response(JSON.stringify(said));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return new Response(JSON.stringify({ error: error.message, field: error.field }), { status: error.status || 503 });
  }
}

async function begun() {
  const response = await fetch(document.documentElement.dataset.site);
  if (!response.ok) throw new Refused("site.json is not there: the site is not whole.", 404);
  const { table } = await response.json();
  const seal = table.solve_id;
  const module = table.site.kind === "payoffs" ? (await import("./payoffs.js")).Payoffs : (await import("./decisions.js")).Decisions;
  setTimeout(keepOffline, LATER);
  return new Site(seal, table, new module(seal, table));
}

class Site {
  constructor(seal, table, states) {
    Object.assign(this, { seal, table, states });
    this.columns = table.fields.flatMap((field) => Array.from({ length: field.length }, (_, i) => ({ field, i, name: field.length === 1 ? field.name : `${field.name}_${i + 1}` })));
  }

  say([id, view, name], query) {
    if (id === undefined) return { tables: [this.table] };
    if (id !== this.table.id) throw new Refused(`${id}: this site has one table, ${this.table.id}`, 404);
    if (view === undefined) return this.table;
    if (view === "state") return this.state(query);
    if (view === "chart") return this.chart(name);
    if (view === "grid") return this.grid(query);
    if (view === "train") return this.train(query);
    throw new Refused("This page has no server, which that would need.", 404);
  }

  async state(query) {
    if (query.get("drawing") === "1") return { drawing: (await this.text(this.table.charts.length)) || null };
    const values = query.has("random") ? await this.drawn(randomOf(query.get("random"))) : this.read(query);
    return this.view(values);
  }

  /** The answer to values, one a column in people's units. */
  async view(values) {
    const found = await this.states.answer(this.numbers(values));
    if (!found) throw new Refused(`${this.said(values).text}: there is no such state in this table`, 400);
    const there = this.said(this.valuesOf(found.numbers));
    const led = (one) => ({ ...one, ...this.said(this.valuesOf(one.numbers)) });
    return {
      board: this.table.board, options: this.table.options, solve_id: this.table.solve_id, stale: [], ...found, ...there,
      actions: found.actions.map(({ next, outcomes, ...action }) => ({ ...action, ...(next && { next: led(next) }), ...(outcomes && { outcomes: outcomes.map(led) }) })),
      outcomes: found.outcomes.map(led), why: found.why ?? [], defaults: {}, playable: false, why_not_playable: null, drawing: null,
    };
  }

  async chart(name) {
    const number = this.table.charts.findIndex((each) => each.name === name);
    if (number < 0) throw new Refused(`There is no chart ${name}.`, 404);
    return JSON.parse(await this.text(number));
  }

  /** A chart as it is stored, or after them the picture of a state. */
  async text(number) {
    return new TextDecoder().decode(await block(this.seal, "charts.bin", number));
  }

  async grid(query) {
    const [x, y] = ["x", "y"].map((which) => this.axis(query, query.get(which)));
    const colour = query.get("colour") || "value_1";
    if (x.name === y.name) throw new Refused(`y: ${y.name} is the column of x too; take another one`, 400);
    if (x.values.length * y.values.length > CELLS) throw new Refused(`x and y: expected at most ${CELLS} cells; take them closer`, 400);
    const rest = new URLSearchParams([...query].filter(([name]) => !/_(from|to|step)$/.test(name)));
    const base = this.read(rest);
    const actions = [];
    const number = (action) => (actions.includes(action) ? actions.indexOf(action) : actions.push(action) - 1);
    const rows = await Promise.all(x.values.map((i) => Promise.all(y.values.map((j) => {
      const values = this.columns.map(({ name }, k) => (name === x.name ? i : name === y.name ? j : base[k]));
      return this.states.cell(this.numbers(values), colour);
    }))));
    const best = rows.map((row) => row.map((cell) => (cell?.best ? number(cell.best) : null)));
    const player = Number(colour.replace("value_", "")) - 1;
    const cells = rows.map((row, i) => row.map((cell, j) => (colour === "best" ? best[i][j] : (colour === "margin" ? cell?.margin : cell?.value[player]) ?? null)));
    const { state, query: queries } = this.said(base);
    return { x, y, colour, cells, best, to_act: rows.map((row) => row.map((cell) => cell?.to_act ?? 0)), actions, queries, state, payoff_name: this.table.payoff_name };
  }

  axis(query, name) {
    const axis = this.table.axes.find((each) => each.name === name);
    if (!axis) throw new Refused(`'${name}' is not a column of numbers of this table`, 400);
    const [low, high, step] = ["from", "to", "step"].map((end, k) => Number(query.get(`${name}_${end}`) ?? [axis.min, axis.max, axis.step][k]));
    if (!(step > 0) || !((high - low) / step < CELLS)) throw new Refused(`${name} from ${low} to ${high} by ${step} gives no values`, 400);
    return { name, label: axis.label, values: Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, k) => low + k * step) };
  }

  async train(query) {
    const difficulty = query.get("difficulty") ?? "any";
    const random = randomOf(`${difficulty} ${query.get("seed")}`);
    const [low, high] = (HARD[difficulty] ?? HARD.any).map((bound) => bound * this.table.step);
    for (let k = 0; k < TRIES; k++) {
      const view = await this.view(await this.drawn(random));
      if (view.actions.length < 2) continue;
      const choices = this.states.choices?.(view) ?? view.actions;
      const margin = Math.min(...choices.map(({ cost }) => cost ?? NaN).filter((cost) => cost > this.table.tolerance));
      if (choices.every(({ cost }) => cost !== null) && !(margin > low && margin <= high)) continue;
      const steps = margin / this.table.step;
      return { ...view, seat: view.to_act, margin, difficulty: steps <= 1 ? "hard" : steps <= 5 ? "medium" : "easy", seed: Number(query.get("seed")),
        choices: choices.map(({ action, value, cost, best }) => ({ action, value: value?.[view.to_act - 1] ?? null, cost, best: best || cost === 0 })) };
    }
    throw new Refused("no decision of this difficulty was drawn", 404);
  }

  async drawn(random) {
    return this.valuesOf(await this.states.drawn(random));
  }

  // --- fields -------------------------------------------------------------------------------------

  /** The values of the fields of an address, one a column. */
  read(query) {
    for (const name of query.keys()) {
      if (!OWN.includes(name) && !this.table.fields.some((field) => field.name === name)) throw new Refused(`unknown field '${name}'`, 400);
    }
    return this.table.fields.flatMap((field) => readField(field, query.get(field.name)));
  }

  /** A state as the API says it: its fields, and as an address and a person say them. */
  said(values) {
    const state = {};
    for (const field of this.table.fields) {
      const own = values.filter((_, k) => this.columns[k].field === field);
      const blank = field.blank ? own.findLastIndex((value) => value !== (field.default ?? 0)) + 1 : own.length;
      if (field.kind === "set") state[field.name] = field.choices.filter((one) => Math.floor(own[0] / 2 ** (one - 1)) % 2);
      else if (blank) state[field.name] = ["list", "players"].includes(field.kind) ? own.slice(0, blank) : own[0];
    }
    const query = plain(state);
    return { state, query, text: query.replaceAll("&", " ") };
  }

  numbers(values) {
    const { columns } = this.table.site;
    return columns ? values.map((value, k) => (value - columns[k].shift) / columns[k].unit) : values;
  }

  valuesOf(numbers) {
    const { columns } = this.table.site;
    return columns ? numbers.map((number, k) => number * columns[k].unit + columns[k].shift) : numbers;
  }
}

function readField(field, text) {
  const { name, length, min, max, step } = field;
  const wrong = (what) => new Refused(`${name}: ${what}`, 400, name);
  if (field.kind === "set") text ??= field.default;
  if (text === null || text === "") {
    if (field.kind === "set" && text === "") return [0];
    if (field.default === null) throw wrong(`is missing; write ${name}=${field.example}`);
    return Array(length).fill(field.default);
  }
  const parts = text.split(",").map((part) => part.trim());
  const values = parts.map((part) => {
    if (!/^[+-]?\d{1,9}$/.test(part)) throw wrong(`'${part}' is not a whole number`);
    return Number(part);
  });
  if (field.kind === "set") {
    const off = values.find((value, i) => !field.choices.includes(value) || values.indexOf(value) < i);
    if (off !== undefined) throw wrong(`${off}: expected each at most once, of ${field.choices.join(", ")}`);
    return [values.reduce((bits, value) => bits + 2 ** (value - 1), 0)];
  }
  if (values.length > length || (values.length < length && !field.blank)) throw wrong(`'${text}' has ${values.length} values, not ${length}; write ${name}=${field.example}`);
  for (const value of values) {
    if (value < min && !(field.blank && value === field.default)) throw wrong(`${value} is too small; expected at least ${min}`);
    if (max !== null && value > max) throw wrong(`${value} is too large; expected at most ${max}`);
    if (value % step) throw wrong(`${value} is not a multiple of ${step}`);
  }
  return [...values, ...Array(length - values.length).fill(field.default ?? 0)];
}

/** A function that gives numbers from 0 to 1, the same ones for the same text (mulberry32). */
function randomOf(text) {
  let seed = 0x811c9dc5;
  for (const letter of String(text)) seed = Math.imul(seed ^ letter.charCodeAt(0), 0x01000193);
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// --- without a connection -------------------------------------------------------------------------

/** Have the browser keep the page, and the blocks too where they are few. */
async function keepOffline() {
  if (!navigator.serviceWorker) return;
  const place = document.getElementById("offline");
  navigator.serviceWorker.addEventListener("message", ({ data }) => { if (place) place.textContent = data.said; });
  await navigator.serviceWorker.register("sw.js");
  const { active } = await navigator.serviceWorker.ready;
  const files = await (await fetch("offline.json")).json();
  if (files.length) active.postMessage(files.map((name) => `data/${name}`));
}
