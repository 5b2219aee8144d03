// The page: which view an address asks for, what stands around it, and where one came from.
import * as address from "./address.js";
import * as api from "./api.js";
import { fill, h, nothing, say } from "./dom.js";
import { tableLine } from "./here.js";

const VIEWS = {
  tables: () => import("./tables.js"),
  state: () => import("./explorer.js"),
  charts: () => import("./charts.js"),
  grid: () => import("./grid.js"),
  filter: () => import("./filter.js"),
  play: () => import("./play.js"),
  train: () => import("./train.js"),
  compare: () => import("./compare.js"),
};
const WAYS = [["state", "Explore"], ["charts", "Charts"], ["grid", "Grid"], ["filter", "Filter"], ["play", "Play"], ["train", "Train"], ["compare", "What if"]];

const OF_TABLE = new Set(["charts", "filter", "train"]); // which are of no state

const main = document.getElementById("main");
let turn = 0;
let current = null;
let leave = null;

/** Draw what the address asks for. `turn` counts: a slow answer to an old question is dropped. */
async function draw() {
  const asked = address.read(location.hash);
  const mine = ++turn;
  const path = history.state?.path;
  const same = current?.view === asked.view && current?.table === asked.table;
  main.setAttribute("aria-busy", "true");
  // What is above keeps its place while it is on its way.
  if (asked.table) ["views", "here"].forEach((id) => { document.getElementById(id).hidden = false; });
  try {
    const load = VIEWS[asked.view];
    if (!load) throw new api.Refused("There is no such page.", 404);
    const [view, table, tables] = await Promise.all([load(), ...(asked.table ? [api.table(asked.table), api.tables()] : [])]);
    if (mine !== turn) return;
    if (!same) leave?.();
    if (!same && current) scrollTo(0, 0);
    around(asked, table, tables);
    const more = { ...asked, data: table, same, path: path ?? [], current: () => mine === turn };
    const made = await view.show(main, more);
    if (mine !== turn) return;
    current = { view: asked.view, table: asked.table };
    leave = view.leave ?? null;
    document.title = `${made} · luckbase`;
    if (path) settle(made);
  } catch (error) {
    if (error.name === "AbortError" || mine !== turn) return;
    current = null;
    if (!(error instanceof api.Refused)) throw error;
    around(asked, null, []);
    fill(main, nothing(error.status === 404 ? "Not here" : "Not answered", error.message, h("p", null, h("a.button", { href: "#/" }, "All tables"))));
    document.title = "luckbase";
  } finally {
    if (mine === turn) main.removeAttribute("aria-busy");
  }
}

/** After a step inside the page: the keyboard goes to the head of what is new. */
function settle(made) {
  const head = main.querySelector("[data-head]");
  if (head && !main.contains(document.activeElement)) head.focus();
  say(head?.textContent || made);
}

/** The ways to look at a table, and which table it is. */
function around(asked, table, tables) {
  const views = document.getElementById("views");
  views.hidden = !table;
  tableLine(document.getElementById("here"), asked, table, tables);
  document.getElementById("keys").hidden = true;
  if (!table) return;
  const state = stateOf(asked.query, table);
  fill(views, WAYS.map(([view, word]) => h("a", {
    href: address.of(table.id, view, view === "compare" ? { first: table.id, ...state } : OF_TABLE.has(view) ? "" : state),
    "aria-current": view === asked.view ? "page" : null,
  }, word)));
}

/** The fields of a state in an address, and nothing else. */
function stateOf(query, table) {
  const names = new Set(table.fields.map((field) => field.name));
  return Object.fromEntries([...query].filter(([name]) => names.has(name)));
}

addEventListener("moved", draw);
addEventListener("popstate", draw);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
draw();
