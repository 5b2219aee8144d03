// The tables that there are: what one sees first.
import * as address from "./address.js";
import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { count, options, size, title } from "./format.js";

export async function show(main) {
  const found = await api.tables();
  const games = Map.groupBy ? Map.groupBy(found, (table) => table.game) : group(found);
  fill(main,
    h("div.head", null, h("h1", null, "Tables"),
      h("p.lead", null, found.length ? "The exact payoff of every state, to click through. Choose a table." : "There is no table here yet.")),
    found.length ? [...games].map(([game, tables]) => section(game, tables)) : empty());
  return "Tables";
}

function group(tables) {
  const games = new Map();
  for (const table of tables) games.set(table.game, [...(games.get(table.game) ?? []), table]);
  return games;
}

function section(game, tables) {
  return h("section.game", { "aria-label": title(game) }, h("h2", null, title(game)), h("ul.tables", null, tables.map(item)));
}

function item(table) {
  const usable = table.state !== "damaged";
  const name = table.title ?? table.board;
  return h("li.table", null,
    h("div.what", null,
      h("h3", null, usable ? h("a", { href: address.of(table.id, "state") }, name) : name),
      h("p.about", null, [table.title ? table.board : "", options(table.options), table.kind === "search" ? "below chosen states" : ""].filter(Boolean).join(" · "))),
    h("dl.facts", null, fact("states", count(table.states)), fact("on disk", size(table.bytes)),
      h("div", null, h("dt", null, "condition"), h("dd", null, condition(table)))),
    table.why?.length ? h("p.note", null, table.why.join("; ")) : null,
    table.running ? h("p.note", null, `Being solved: ${table.running}`) : null,
    usable ? h("div.ways", null,
      [["state", "Explore"], ["grid", "Grid"], ["play", "Play"]].map(([view, word]) => h("a.button", { href: address.of(table.id, view) }, word)),
      h("a.button", { href: address.of(table.id, "compare", { first: table.id }) }, "What if")) : null);
}

function fact(name, value) {
  return h("div", null, h("dt", null, name), h("dd", null, value));
}

function condition(table) {
  const kind = { complete: "good", partial: "part" }[table.state] ?? "old";
  return h(`span.badge.${kind}`, null, table.state);
}

function empty() {
  return h("div.sorry", null, h("p", null, "Solve one first, for example:"),
    h("pre", null, h("code", null, "luckbase solve boards/pig/race.toml\nluckbase serve")));
}
