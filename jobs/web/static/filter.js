// Rows that meet conditions, as luckbase export takes them: ready searches, a builder, the line
// itself; what is found as rows that open in the explorer.
import * as address from "./address.js";
import * as api from "./api.js";
import { fill, h, newId } from "./dom.js";
import { exportBar } from "./export.js";
import { capital, count, Payoffs } from "./format.js";
import { drawnTable, sortedTable } from "./listing.js";

const MOST = 50;
const WIDE = matchMedia("(min-width: 60rem)");
const NUMBERS = [["=", "is"], ["!=", "is not"], ["<", "is less than"], ["<=", "is at most"], [">", "is more than"], [">=", "is at least"]];
const TEXTS = NUMBERS.slice(0, 2);

let screen = null;
let asking = null;

export function leave() {
  asking?.abort();
  screen = null;
}

export async function show(main, asked) {
  const { data: table } = asked;
  if (!asked.same || !screen?.root.isConnected) {
    const known = await api.columns(table.id);
    if (!asked.current()) return "";
    screen = build(table, known);
    fill(main, screen.root);
  }
  const here = screen;
  const where = asked.query.get("where") ?? "";
  here.line.value = where;
  refuse(here, "");
  here.examples.querySelectorAll("a").forEach((link) => link.toggleAttribute("aria-current", link.dataset.where === where));
  here.begin.open = WIDE.matches || !where;
  asking?.abort();
  if (!asked.query.has("where")) {
    fill(here.found, h("p.about", null, "Choose a search, or write a condition."));
    return "Filter";
  }
  asking = new AbortController();
  here.found.setAttribute("aria-busy", "true");
  try {
    const got = await api.filter(table.id, address.plain({ where, most: MOST }), asking.signal);
    if (asked.current()) fill(here.found, rows(table, got));
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (!asked.current()) return "";
    fill(here.found);
    refuse(here, error.message.replace(/^where: /, ""));
  } finally {
    here.found.removeAttribute("aria-busy");
  }
  return "Filter";
}

const to = (table, where) => address.of(table.id, "filter", { where });

function build(table, known) {
  const [id, help] = [newId("where"), newId("help")];
  const wrong = h("p.wrong", { id: newId("wrong"), "aria-live": "assertive", hidden: true });
  const line = h("input", {
    id, name: "where", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    placeholder: known.examples[0]?.where ?? "", "aria-describedby": `${help} ${wrong.id}` });
  const go = () => address.go(to(table, line.value.trim()));
  const form = h("form.search", { role: "search", "aria-label": "Rows of this table", onsubmit: (event) => { event.preventDefault(); go(); } },
    h("label", { for: id }, "All of these must hold"),
    h("div.searching", null, line, h("button.main", { type: "submit" }, "Search")), wrong,
    h("p.about", { id: help }, "COLUMN OP VALUE, a space between two conditions. OP is =, !=, <, <=, > or >=. VALUE is a number, another column, or a text, in quotes if it has spaces."));
  const examples = h("ul.chartlist", null, known.examples.map((each) => h("li", null, h("a", { href: to(table, each.where), "data-where": each.where }, capital(each.label)))));
  const begin = h("details", null, h("summary", null, "Searches to begin with"), examples);
  const found = h("section.found", { "aria-label": "What was found", "aria-live": "polite" });
  const add = (condition) => {
    line.value = `${line.value.trim()} ${condition}`.trim();
    go();
  };
  return {
    line, wrong, examples, begin, found,
    root: h("div.view", null, h("h1", { "data-head": true, tabindex: "-1" }, "Filter"),
      h("p.lead", null, "Look for states of this table by what they are and by what is best there."),
      h("div.gridded", null,
        h("div.choices", null, begin,
          h("details", null, h("summary", null, "Add a condition"), builder(known.columns, add)),
          h("details", null, h("summary", null, "What the columns are"), columnList(known.columns))),
        h("div", null, form, found))),
  };
}

function refuse(here, sentence) {
  fill(here.wrong, sentence).hidden = !sentence;
  here.line.toggleAttribute("aria-invalid", false);
  if (sentence) here.line.setAttribute("aria-invalid", "true");
}

/** A column, how it is compared and with what, each chosen; add(condition). */
function builder(columns, add) {
  const [name, op, value, values] = ["column", "op", "value", "values"].map(newId);
  const chosen = h("select", { id: name, onchange: () => fit() }, columns.map((each) => h("option", { value: each.name }, each.label)));
  const ops = h("select", { id: op });
  const input = h("input", { id: value, type: "text", autocomplete: "off", list: values });
  const list = h("datalist", { id: values });
  const about = h("p.about", { "aria-live": "polite" });
  function fit() {
    const column = columns.find((each) => each.name === chosen.value);
    const numbers = column.kind === "number";
    fill(ops, (numbers ? NUMBERS : TEXTS).map(([sign, word]) => h("option", { value: sign }, word)));
    const others = numbers ? columns.filter((each) => each.kind === "number" && each !== column).map((each) => each.name) : [];
    fill(list, [...column.values, ...(column.kind === "truth" ? ["true", "false"] : []), ...others].map((each) => h("option", { value: each })));
    fill(about, column.help, column.max === null ? "" : ` From ${column.min.toLocaleString("en")} to ${column.max.toLocaleString("en")} here.`);
    input.value = "";
  }
  const row = (id, label, part) => h("div.row", null, h("label", { for: id }, label), part);
  fit();
  return h("form.settings", {
    "aria-label": "A condition",
    onsubmit: (event) => {
      event.preventDefault();
      const said = input.value.trim();
      if (!said) return input.focus();
      add(`${chosen.value}${ops.value}${/\s/.test(said) ? `'${said}'` : said}`);
    },
  }, row(name, "column", chosen), about, row(op, "compared", ops), row(value, "with a value, or another column", input), list,
  h("div.bar", null, h("button", { type: "submit" }, "Add and search")));
}

function columnList(columns) {
  return h("dl.columns", null, columns.map((each) => h("div", null, h("dt", null, h("code", null, each.name)), h("dd", null, each.help || each.label))));
}

/** What was found: how many, and the first rows of them. What is the same in all stands above. */
function rows(table, got) {
  const payoffs = new Payoffs(table);
  const all = `${got.complete ? "" : "At least "}${count(got.count)} of ${count(got.of)} states`;
  const said = got.complete ? `${all}.` : `${all}: ${count(got.looked_at)} were looked at in the time there is.`;
  const columns = columnsOf(table, payoffs, got);
  const same = columns.filter((column) => column.plain && got.rows.length > 1 && new Set(got.rows.map(column.value)).size === 1);
  const shown = columns.filter((column) => !same.includes(column));
  const lines = got.rows.map((row, k) => [k + 1, ...shown.map((column) => column.value(row))]);
  const show = (cell, line, k) => {
    const row = got.rows[line[0] - 1];
    if (k === 0) return h("a", { href: address.of(table.id, "state", row.query), "aria-label": `Open row ${cell}: ${row.text}` }, "open");
    return shown[k - 1].show?.(row) ?? cell ?? "";
  };
  const alike = same.length ? `In all of these: ${same.map((column) => `${column.name} ${column.value(got.rows[0])}`).join(", ")}.` : "";
  const more = got.count > got.rows.length || !got.complete;
  return [
    h("p.counted", null, said, got.count > got.rows.length ? ` The first ${got.rows.length} are shown.` : ""),
    alike ? h("p.about", null, alike) : null,
    got.rows.length ? sortedTable(["row", ...shown.map((column) => column.name)], lines, show, "The rows") : null,
    exportBar({
      name: `${table.game}-filter`, title: got.where || "Every row", about: `${said} ${alike}`,
      rows: got.rows.length ? () => [columns.map((column) => column.name), ...got.rows.map((row) => columns.map((column) => column.value(row)))] : null,
      picture: got.rows.length ? (width) => drawnTable(width, shown.map((column) => column.name), lines.map((line) => line.slice(1))) : null }),
    more ? h("p.about", null, "All of them, into a file: ", h("code", null, `luckbase export ${table.path_name} "${got.where.replaceAll('"', "'")}" --out rows.csv`)) : null,
  ];
}

/** What is said of a row: its fields, who is up, what is best and by how much, the payoffs. */
function columnsOf(table, payoffs, got) {
  const fields = Object.keys(address.fields(got.rows[0]?.query));
  const decided = got.rows.some((row) => row.best !== null) ? [
    { name: "up", plain: true, value: (row) => row.to_act },
    { name: "best", plain: true, value: (row) => row.best },
    { name: "better by", value: (row) => row.margin, show: (row) => (row.toss_up ? h("span.badge.toss", null, "toss-up") : row.margin === null ? "" : payoffs.size(row.margin)) }] : [];
  return [
    ...fields.map((name) => ({ name, plain: true, value: (row) => number(address.fields(row.query)[name]) })), ...decided,
    ...(got.rows[0]?.value ?? []).map((_, i) => ({
      name: table.players > 1 ? `player ${i + 1}` : payoffs.name, value: (row) => row.value[i], show: (row) => payoffs.show(row.value[i]) }))];
}

function number(text) {
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : text ?? "";
}
