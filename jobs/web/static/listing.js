// Lists as tables whose heads sort them: a game's list, and the rows that a filter finds.
import { fill, h, s } from "./dom.js";
import { capital } from "./format.js";
import { breadth } from "./pen.js";

const FEW = 200, FEW_LONG = 2, LONG = 5, LINE = 26;

export const plain = (value) => (value === null ? "none" : Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 }).replace(/^-0$/, "0"));

/** A list of a game's: got: as /api/…/chart/… says it; shows: what it is, for people. */
export function listing(got, shows) {
  const crossed = across(got);
  const heads = got.columns.map((name) => name.replaceAll("_", " "));
  const table = crossed ?? (got.rows.length <= FEW_LONG && heads.length > LONG ? turned(heads, got.rows, shows) : null) ?? sortedTable(heads, got.rows, written, shows);
  const element = h("div.heat", null, got.note ? h("p.about", null, capital(got.note)) : null, table);
  return { element, leave() {}, kept: { rows: () => [got.columns, ...got.rows], picture: (width) => drawnTable(width, heads, got.rows) } };
}

/** A number for each pair of two columns, as a table across; null where the list is none of that. */
function across({ columns, rows }) {
  if (columns.length !== 3) return null;
  const [down, over] = [0, 1].map((k) => [...new Set(rows.map((row) => row[k]))]);
  if (over.length < 2 || over.length > 20 || down.length * over.length !== rows.length) return null;
  const found = new Map(rows.map(([a, b, value]) => [`${a} ${b}`, value]));
  return region(columns[2], h("table.listed", null,
    h("caption", null, `${columns[2].replaceAll("_", " ")}: ${columns[0]} down, ${columns[1]} across`),
    h("thead", null, h("tr", null, h("td"), over.map((b) => h("th.n", { scope: "col" }, b)))),
    h("tbody", null, down.map((a) => h("tr", null, h("th.n", { scope: "row" }, a), over.map((b) => h("td.n", null, found.get(`${a} ${b}`))))))));
}

/** A few long rows, each as a column. */
function turned(heads, rows, label) {
  return region(label, h("table.listed.turned", null, h("tbody", null, heads.map((head, k) => h("tr", null, h("th", { scope: "row" }, head), rows.map((row) => h("td.n", null, written(row[k]))))))));
}

const written = (cell) => (typeof cell === "number" ? plain(cell) : cell);

/** Heads and the first rows as a picture, as wide as they need. */
export function drawnTable(width, heads, rows) {
  const lines = [heads, ...rows.slice(0, FEW).map((row) => row.map((cell) => String(written(cell) ?? "")))];
  const wide = heads.map((_, k) => Math.max(...lines.map((line) => breadth(line[k], "600 13px"))) + 20);
  const ends = wide.map((_, k) => wide.slice(0, k + 1).reduce((a, b) => a + b, 0));
  const numeric = heads.map((_, k) => rows.every((row) => typeof row[k] === "number" || empty(row[k])));
  const cell = (text, line, k) => s("text", {
    x: numeric[k] ? ends[k] - 10 : ends[k] - wide[k] + 10, y: 18 + LINE * line, "text-anchor": numeric[k] ? "end" : "start", class: line ? "cell" : "what" }, text);
  return s("svg", { class: "curves", viewBox: `0 0 ${Math.max(width, ends.at(-1))} ${LINE * lines.length + 6}` },
    lines.map((line, i) => [line.map((text, k) => cell(text, i, k)), s("line", { class: "rule", x1: 0, x2: ends.at(-1), y1: LINE * (i + 1), y2: LINE * (i + 1) })]));
}

function region(label, table) {
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, table);
}

/** A table sorted by the column whose head is pressed; as many rows as one reads, and a button for
 * all. rows: lists of numbers and texts; show(cell, row, k): what stands for one. */
export function sortedTable(heads, rows, show, label) {
  const body = h("tbody");
  const numeric = heads.map((_, k) => rows.every((row) => typeof row[k] === "number" || empty(row[k])));
  let [by, up, all] = [null, true, rows.length <= FEW];
  const more = h("button", { type: "button", onclick: () => { all = true; draw(); } }, `Show all ${rows.length.toLocaleString("en")} rows`);
  const buttons = heads.map((head, k) => h("button.sort", {
    type: "button",
    onclick: () => {
      [by, up] = [k, by === k ? !up : true];
      draw();
    },
  }, head));
  const cells = buttons.map((button, k) => h(numeric[k] ? "th.n" : "th", { scope: "col" }, button));
  function draw() {
    const order = by === null ? rows : rows.toSorted((a, b) => (up ? 1 : -1) * compare(a[by], b[by]));
    cells.forEach((cell, k) => (k === by ? cell.setAttribute("aria-sort", up ? "ascending" : "descending") : cell.removeAttribute("aria-sort")));
    fill(body, (all ? order : order.slice(0, FEW)).map((row) => h("tr", null, row.map((cell, k) => h(numeric[k] ? "td.n" : "td", null, show(cell, row, k))))));
    more.hidden = all;
  }
  draw();
  return h("div", null, region(label, h("table.listed", null, h("thead", null, h("tr", null, cells)), body)), more);
}

const empty = (cell) => cell === null || cell === "";

/** Numbers by size, nothing last, texts as people sort them. */
function compare(a, b) {
  if (empty(a) || empty(b)) return empty(a) - empty(b);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
