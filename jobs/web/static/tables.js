// The tables that there are: what one sees first. A game has its picture and its sentences, and one
// table of all is where to start.
import * as address from "./address.js";
import * as api from "./api.js";
import { drawing, fill, h } from "./dom.js";
import { boardTitle, count, gameTitle, options, size } from "./format.js";

let fetching = null;

export async function show(main, asked) {
  const found = await api.tables();
  if (!asked.current()) return "";
  if (!found.length) {
    fill(main, empty());
    return "Tables";
  }
  const games = new Map();
  for (const table of found) games.set(table.game, [...(games.get(table.game) ?? []), table]);
  const first = startOf(found);
  const sections = [...games.values()].sort((a, b) => b.includes(first) - a.includes(first)).map(section);
  fill(main, h("div.head", null, h("h1", null, "Solved games"),
    h("p.lead", null, "Every state has its best action and its exact payoff. Open a table, and click through it."),
    first ? h("p", null, h("a.button.main.start", { href: address.of(first.id, "state") }, "Start here"), " ",
      h("span.about", null, `${gameTitle(first)}: ${boardTitle(first)}, ${count(first.states)} states`)) : null),
  sections.map(([element]) => element));
  pictures(sections);
  return "Tables";
}

export function leave() {
  fetching?.abort();
}

/** The largest table that is complete, for one to start with. */
function startOf(tables) {
  const whole = tables.filter((table) => table.state === "complete");
  return whole.reduce((best, table) => (best === null || table.states > best.states ? table : best), null);
}

/** A game: its element, the place of its picture, and the table that has it. */
function section(tables) {
  const [any] = tables;
  const name = gameTitle(any);
  const picture = h("div.picture", { "aria-hidden": true });
  const element = h("section.game", { "aria-label": name }, picture,
    h("div.told", null, h("h2", null, name), any.about ? h("p.about", null, any.about) : null),
    h("ul.tables", null, tables.map(item)));
  return [element, picture, tables.find(usable) ?? null];
}

/** Of each game a state, small; one after the other, so that whoever goes on need not wait. A game
 * that draws nothing does without. */
async function pictures(sections) {
  fetching?.abort();
  fetching = new AbortController();
  const { signal } = fetching;
  for (const [, picture, table] of sections) {
    try {
      const svg = table && drawing((await api.state(table.id, "drawing=1", signal)).drawing, gameTitle(table));
      if (svg) fill(picture, svg);
      else picture.remove();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
    }
  }
}

const usable = (table) => table.state !== "damaged";

function item(table) {
  const name = boardTitle(table);
  const small = [options(table.options), table.kind === "search" ? "below chosen states" : "", `${count(table.states)} states, ${size(table.bytes)}`];
  return h("li.table", null,
    h("div.what", null,
      h("h3", null, usable(table) ? h("a", { href: address.of(table.id, "state") }, name) : name,
        table.state === "complete" ? null : [" ", condition(table)]),
      h("p.about", null, small.filter(Boolean).join(" · "))),
    usable(table) ? h("div.ways", null,
      [["state", "Explore"], ["charts", "Charts"], ["play", "Play"]].map(([view, word]) => h("a.button", { href: address.of(table.id, view), "aria-label": `${word}: ${name}` }, word))) : null,
    table.why?.length ? h("p.note", null, table.why.join("; ")) : null,
    table.running ? h("p.note", null, `Being solved now: ${table.running.last_note || "it has begun"}.`) : null);
}

function condition(table) {
  return h(`span.badge.${table.state === "partial" ? "part" : "old"}`, null, table.state);
}

function empty() {
  return h("div.view.narrow", null, h("h1", null, "No table yet"), h("p.lead", null, "Solve one first, for example:"),
    h("pre", { tabindex: "0", role: "region", "aria-label": "Commands" }, h("code", null, "luckbase solve pig/race\nluckbase serve")));
}
