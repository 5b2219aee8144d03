// A chart to read: its lines, and the same as a table.
import { h, unfold } from "./dom.js";

const MOST = 400;

/** got: as /api/…/chart/… says it; shows: what the chart is, for people. */
export function listing(got, shows) {
  const canvas = h("pre.listing", { tabindex: "0", role: "region", "aria-label": shows }, got.lines.slice(0, MOST).join("\n"));
  const some = (all) => (all.length > MOST ? h("p.about", null, `The first ${MOST} of ${all.length.toLocaleString("en")}.`) : null);
  const table = unfold("The same as a table", `${shows}, as a table`, () => [some(got.rows), h("table.numbers", null,
    h("thead", null, h("tr", null, got.columns.map((name) => h("th.n", { scope: "col" }, name.replaceAll("_", " "))))),
    h("tbody", null, got.rows.slice(0, MOST).map((row) => h("tr", null, row.map((cell) => h("td.n", null, String(cell)))))))]);
  return { canvas, element: h("div.heat", null, some(got.lines), canvas, table), leave() {} };
}
