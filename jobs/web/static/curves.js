// Curves over one axis as SVG: told apart by dashes and by labels at their ends, bands behind them,
// the numbers under the pointer or the keyboard, and the same as a table.
import { fill, h, newId, s, unfold } from "./dom.js";
import { breadth, wrapped } from "./pen.js";

const BOTTOM = 50, TOP = 12, SPARE = 14;
const GAP = 16, MOST_IN_TABLE = 40, KINDS = 8, FONT = "600 13px";
const DASHES = ["", "9 4", "2 4", "12 4 2 4", "5 5", "1 6", "16 4", "7 3 2 3 2 3"];

/** A picture of curves.
 * got: as /api/…/chart/… says it; plain(number) -> text. */
export class CurveChart {
  constructor(got, plain) {
    Object.assign(this, { got, plain, at: null, chosen: null });
    const help = newId("help");
    this.canvas = s("svg", {
      class: "curves", role: "application", "aria-roledescription": "chart of curves", tabindex: "0",
      "aria-label": `${got.title}. ${got.y_label} over ${got.x_label}`, "aria-describedby": help });
    this.readout = h("output.readout", { "aria-live": "polite" });
    this.element = h("div.heat", null, this.canvas, this.#keys(), this.readout,
      h("p.about", { id: help }, "Point at the picture to read its numbers. With the keyboard: left and right along the axis",
        got.curves.length > 1 ? ", up and down from curve to curve." : "."), this.#table());
    this.y = limits(got);
    this.x = ends(got);
    this.#listen();
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.canvas);
    this.put(null);
  }

  leave() {
    this.watch.disconnect();
  }

  // --- drawing ------------------------------------------------------------------------------------

  /** What of it can be taken along (`exportBar`). */
  get kept() {
    const { got } = this;
    const picture = (width) => {
      const other = new CurveChart(got, this.plain);
      other.draw(width);
      other.leave();
      return other.canvas;
    };
    const rows = () => [[got.x_name, ...got.curves.map((curve) => curve.name)], ...got.xs.map((x, i) => [x, ...got.curves.map((curve) => curve.values[i])])];
    return { picture, rows };
  }

  draw(width = this.canvas.clientWidth) {
    if (!width) return;
    const tall = Math.round(Math.min(Math.max(width * 0.5, 230), 420));
    // Where whole labels would leave too little room, numbers stand for them; the list says whose.
    const widest = Math.max(...this.got.curves.map(({ label }) => breadth(label, FONT)));
    this.short = widest > 0.3 * width;
    const right = this.short ? 34 : widest + SPARE + 10;
    this.upwards = wrapped(this.got.y_label, tall, FONT);
    const left = 20 + GAP * this.upwards.length + Math.max(...ticks(...this.y, Math.max(2, Math.floor(tall / 55))).map((y) => breadth(grouped(y), FONT)));
    this.box = { left, top: TOP, width: width - left - right, height: tall };
    this.across = wrapped(this.got.x_label, width - 2 * SPARE, FONT);
    const height = tall + TOP + BOTTOM + GAP * (this.across.length - 1);
    this.canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.canvas.style.setProperty("height", `${height}px`);
    this.cursor = s("g", { class: "cursor" });
    this.paths = this.got.curves.map((curve, k) => s("path", { class: `line ${kind(k)}`, "stroke-dasharray": dash(k), d: this.#path(curve.values) }));
    fill(this.canvas, this.#bands(), this.#axes(), this.paths, this.#alone(), this.#reasons(), this.#labels(), this.#words(), this.cursor);
    this.#point();
  }

  #px(x) {
    return this.box.left + (this.box.width * (x - this.x[0])) / (this.x[1] - this.x[0]);
  }

  #py(y) {
    return this.box.top + this.box.height * (1 - (y - this.y[0]) / (this.y[1] - this.y[0]));
  }

  #path(values) {
    let path = "";
    values.forEach((value, i) => {
      if (value === null) return;
      const alone = (values[i - 1] ?? null) === null;
      path += `${alone ? "M" : "L"}${this.#px(this.got.xs[i]).toFixed(1)} ${this.#py(value).toFixed(1)}`;
    });
    return path;
  }

  /** Points with a gap on either side, which a line does not show. */
  #alone() {
    const at = (values, i) => values[i] ?? null;
    return this.got.curves.map(({ values }, k) => values.map((value, i) => (
      value === null || at(values, i - 1) !== null || at(values, i + 1) !== null ? null
        : s("circle", { class: `dot ${kind(k)}`, cx: this.#px(this.got.xs[i]), cy: this.#py(value), r: 3.5 }))));
  }

  #bands() {
    const { top, height } = this.box;
    return this.got.bands.map((band) => s("rect", {
      class: "band", x: this.#px(band.first), y: top, width: this.#px(band.last) - this.#px(band.first), height }));
  }

  /** Why each band is there, where there is room for it; the readout says it anyway. */
  #reasons() {
    const { top, left, width } = this.box;
    let free = -Infinity;
    return this.got.bands.map((band) => {
      const [first, last] = [this.#px(band.first), this.#px(band.last)];
      const lines = band.text.split("\n");
      const wide = Math.max(...lines.map((line) => breadth(line, FONT)));
      const middle = Math.min(Math.max((first + last) / 2, left + wide / 2 + 3), left + width - wide / 2 - 3);
      const room = middle - wide / 2 > free;
      if (room) free = middle + wide / 2 + 6;
      return room ? lines.map((line, k) => s("text", { class: "why", x: middle, y: top + 16 + GAP * k, "text-anchor": "middle" }, line)) : null;
    });
  }

  #axes() {
    const { left, top, width, height } = this.box;
    const low = top + height;
    const wide = Math.max(...this.x.map((x) => breadth(grouped(x), FONT))) + 18;
    return [
      ticks(...this.y, Math.max(2, Math.floor(height / 55))).map((y) => [
        s("line", { class: "rule", x1: left, x2: left + width, y1: this.#py(y), y2: this.#py(y) }),
        s("text", { x: left - 7, y: this.#py(y) + 4, "text-anchor": "end" }, grouped(y))]),
      ticks(...this.x, Math.max(2, Math.min(9, Math.floor(width / wide))), 1).map((x) => [
        s("line", { class: "rule", x1: this.#px(x), x2: this.#px(x), y1: low, y2: low + 5 }),
        s("text", { x: this.#px(x), y: low + 19, "text-anchor": "middle" }, grouped(x))]),
      s("line", { class: "axis", x1: left, x2: left + width, y1: low, y2: low }),
      this.across.map((line, k) => s("text", { class: "what", x: this.#middle(line), y: low + 42 + GAP * k, "text-anchor": "middle" }, line)),
      this.upwards.map((line, k) => s("text", { class: "what", transform: `translate(${14 + GAP * k} ${top + height / 2}) rotate(-90)`, "text-anchor": "middle" }, line)),
    ];
  }

  /** Where a line below the axis is centred: on it, as far as the picture goes. */
  #middle(line) {
    const half = breadth(line, FONT) / 2;
    return Math.max(half, Math.min(this.box.left + this.box.width / 2, this.canvas.viewBox.baseVal.width - half));
  }

  /** A label at the end of each curve, moved apart where they would lie on each other. */
  #labels() {
    const { left, top, width, height } = this.box;
    const found = this.got.curves.flatMap(({ label, values }, k) => {
      const last = values.findLastIndex((value) => value !== null);
      return last < 0 ? [] : [{ k, label, x: this.#px(this.got.xs[last]), y: this.#py(values[last]) }];
    }).sort((a, b) => a.y - b.y);
    apart(found, top + 6, top + height - 4);
    const x = left + width + SPARE;
    return found.map((each) => [
      s("path", { class: `leader ${kind(each.k)}`, d: `M${each.x + 2} ${each.y}L${x - 3} ${each.place}` }),
      s("text", { class: `label ${kind(each.k)}`, x, y: each.place + 4 }, this.short ? String(each.k + 1) : each.label)]);
  }

  #words() {
    return this.got.words.map(({ text, x, y }) => text.split("\n").map((line, k) => (
      s("text", { class: "word", x: this.#px(x), y: this.#py(y) + 4 + 18 * k, "text-anchor": "middle" }, line))));
  }

  /** What each curve is, with a piece of it. */
  #keys() {
    return h("ol.keys", null, this.got.curves.map((curve, k) => h("li", null,
      s("svg", { class: "curves", viewBox: "0 0 44 12", width: 44, height: 12, "aria-hidden": "true" },
        s("path", { class: `line ${kind(k)}`, "stroke-dasharray": dash(k), d: "M1 6H43" })),
      h("span.n", null, `${k + 1} `), curve.label, curve.values.some((value) => value !== null) ? "" : ": no number")));
  }

  // --- reading ------------------------------------------------------------------------------------

  #listen() {
    const { canvas } = this;
    const point = (event) => {
      if (!this.box) return;
      const x = event.clientX - canvas.getBoundingClientRect().left;
      const near = (i) => Math.abs(this.#px(this.got.xs[i]) - x);
      this.put(this.got.xs.reduce((best, _, i) => (near(i) < near(best) ? i : best), 0));
    };
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("pointerdown", point);
    canvas.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && document.activeElement !== canvas && this.put(null));
    canvas.addEventListener("focus", () => this.at === null && canvas.matches(":focus-visible") && this.put(0));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const [last, most] = [this.got.xs.length - 1, this.got.curves.length];
    const far = event.shiftKey ? 10 : 1;
    const at = this.at ?? 0;
    const to = { ArrowRight: at + far, ArrowLeft: at - far, Home: 0, End: last }[event.key];
    const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (to === undefined && turn === undefined) return;
    event.preventDefault();
    if (turn && most > 1) this.chosen = this.chosen === null ? (turn > 0 ? 0 : most - 1) : (this.chosen + turn + most) % most;
    this.put(to === undefined ? at : Math.min(Math.max(to, 0), last));
  }

  /** Read the numbers at the i-th place of the axis; null: at none. */
  put(at) {
    this.at = at;
    if (at === null) this.chosen = null;
    this.#point();
    const { got } = this;
    if (at === null) return fill(this.readout, h("span.hint", null, `${count(got.curves.length, "curve")}, ${count(got.xs.length, "point")}`));
    const x = got.xs[at];
    const why = [...new Set(got.bands.filter((band) => band.first <= x && x <= band.last).map((band) => band.text.replaceAll("\n", " ")))];
    const said = got.curves.map((curve, k) => h(k === this.chosen ? "strong" : "span", null, `${curve.label} ${this.#said(curve.values[at])}`));
    return fill(this.readout, h("span", null, `${got.x_label} = ${grouped(x)}:`), this.chosen === null ? said : said[this.chosen], why.length ? h("span", null, `(${why.join(", ")})`) : null);
  }

  #said(value) {
    return value === null ? "none" : this.plain(value);
  }

  #point() {
    if (!this.cursor) return;
    this.paths.forEach((path, k) => path.classList.toggle("chosen", k === this.chosen));
    if (this.at === null) return fill(this.cursor);
    const x = this.#px(this.got.xs[this.at]);
    const { top, height } = this.box;
    const dots = this.got.curves.map(({ values }, k) => (values[this.at] === null || (this.chosen !== null && this.chosen !== k) ? null
      : s("circle", { class: kind(k), cx: x, cy: this.#py(values[this.at]), r: 4.5 })));
    return fill(this.cursor, s("line", { x1: x, x2: x, y1: top, y2: top + height }), dots);
  }

  /** The same numbers as a table, made when it is opened; of many some, evenly spaced. */
  #table() {
    const { got } = this;
    return unfold("The numbers as a table", `${got.title}, as a table`, () => {
      const rows = spaced(got.xs.length);
      return h("table.numbers", null,
        h("caption", null, got.y_label, rows.length < got.xs.length ? `; ${rows.length} of ${grouped(got.xs.length)} rows` : ""),
        h("thead", null, h("tr", null, h("th.n", { scope: "col" }, got.x_label), got.curves.map((curve) => h("th.n", { scope: "col" }, curve.label)))),
        h("tbody", null, rows.map((i) => h("tr", null, h("th.n", { scope: "row" }, grouped(got.xs[i])),
          got.curves.map((curve) => h("td.n", null, curve.values[i] === null ? "" : this.plain(curve.values[i])))))));
    });
  }
}

const kind = (k) => `c${k % KINDS}`;

/** After eight curves the colours come again, with other dashes. */
const dash = (k) => DASHES[(k + 3 * Math.floor(k / KINDS)) % KINDS];

function limits({ limits: given, curves }) {
  if (given) return given;
  const held = curves.flatMap((curve) => curve.values).filter((value) => value !== null);
  if (!held.length) return [0, 1];
  const [low, high] = [Math.min(...held), Math.max(...held)];
  const spare = 0.04 * (high - low) || 0.5;
  return [low - spare, high + spare];
}

function ends({ xs, bands }) {
  const all = [xs[0], xs.at(-1), ...bands.flatMap((band) => [band.first, band.last])];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

/** Round numbers between two ends, about so many; least: the smallest step. */
function ticks(low, high, most, least = 0) {
  const rough = (high - low) / most;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(least, unit * [1, 2, 2.5, 5, 10].find((each) => each * unit >= rough * 0.999));
  const whole = least ? Math.max(least, Math.ceil(step)) : step;
  const first = Math.ceil(low / whole - 1e-9);
  return Array.from({ length: Math.floor(high / whole + 1e-9) - first + 1 }, (_, k) => (first + k) * whole);
}

/** Places for what stands at y, ascending, at least `GAP` apart and within bounds as far as they go. */
function apart(found, top, low) {
  let free = top;
  for (const each of found) {
    each.place = Math.max(each.y, free);
    free = each.place + GAP;
  }
  let most = low;
  for (const each of found.toReversed()) {
    each.place = Math.min(each.place, most);
    most = each.place - GAP;
  }
}

function grouped(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 6 }).replace("-", "−");
}

function count(number, what) {
  return `${grouped(number)} ${what}${number === 1 ? "" : "s"}`;
}

function spaced(n) {
  if (n <= MOST_IN_TABLE) return Array.from({ length: n }, (_, i) => i);
  return Array.from({ length: MOST_IN_TABLE }, (_, k) => Math.round((k * (n - 1)) / (MOST_IN_TABLE - 1)));
}
