// Which table one looks at: the line under the head of the page, with what is to know of it, and
// the way to another one.
import * as address from "./address.js";
import { fill, h, newId } from "./dom.js";
import { boardTitle, bound, count, gameTitle, options, size } from "./format.js";

/** The line of a table. asked: the address; tables: those that there are. */
export function tableLine(line, asked, table, tables) {
  line.hidden = !table;
  if (!table) {
    delete line.dataset.key;
    return fill(line);
  }
  const key = [table.id, asked.view, tables.length].join();
  if (line.dataset.key === key) return null;
  line.dataset.key = key;
  const id = newId("table");
  const usable = tables.filter((each) => each.state !== "damaged" || each.id === table.id);
  const games = [...new Set(usable.map((each) => each.game))];
  const known = [options(table.options), `${count(table.states)} states`].filter(Boolean).join(" · ");
  const chosen = h("select", { id, onchange: () => chosen.value && address.go(toTable(asked, table, usable.find((each) => each.id === chosen.value))) },
    games.map((game) => {
      const own = usable.filter((each) => each.game === game);
      return h("optgroup", { label: gameTitle(own[0]) }, own.map((each) => h("option", { value: each.id, disabled: each.id === table.id }, named(each, own))));
    }));
  chosen.prepend(h("option", { value: "", selected: true }, "Another table"));
  return fill(line,
    h("details", null, h("summary", null, h("strong", null, gameTitle(table)), h("span", null, boardTitle(table)), h("span.about", null, known)), facts(table)),
    usable.length < 2 ? null : h("div.switch", null, h("label.unseen", { for: id }, "Another table"), chosen));
}

/** A table among others of its game, in a line. */
export function named(table, others) {
  const same = others.filter((each) => boardTitle(each) === boardTitle(table)).length > 1;
  const more = options(table.options);
  return `${boardTitle(table)}${more ? ` · ${more}` : ""}${same && !more ? ` · ${count(table.states)} states` : ""}`;
}

/** The same view of another table, and the same state where it is the same game. */
function toTable(asked, from, to) {
  if (asked.view === "compare") return address.of("", "compare", { first: to.id });
  const same = to.game === from.game && ["state", "grid"].includes(asked.view) && !asked.query.has("random");
  const query = new URLSearchParams(same ? asked.query : "");
  ["then", "with"].forEach((name) => query.delete(name));
  return address.of(to.id, asked.view, address.plain(query));
}

function facts(table) {
  const own = Object.entries(table.options ?? {});
  const help = table.option_help ?? {};
  const row = (name, value, said) => h("div", null, h("dt", null, name), h("dd", null, value, said ? h("p.about", null, said) : null));
  return h("dl.facts-of", null,
    row("board", table.board),
    own.map(([name, value]) => row(name, String(value), help[name])),
    row("states", count(table.states), `${size(table.bytes)} on disk`),
    table.error_bound ? row("accuracy", `within ${bound(Number(table.error_bound))}`, "No payoff is further from the exact one.") : null,
    row("solve", table.solve_id));
}
