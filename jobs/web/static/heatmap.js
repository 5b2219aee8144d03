// A heat map on a canvas: colours, axes, where the best action changes, the numbers under the
// pointer or the keyboard, and the same as a table.
import { css } from "./colours.js";
import { fill, h, newId, s, unfold } from "./dom.js";
import { percent } from "./format.js";
import { SvgPen, wrapped } from "./pen.js";

const BOTTOM = 46, TOP = 8, RIGHT = 22, BARS = 46, LEGEND = 30;
const MOST_TICKS = 9, MOST_IN_TABLE = 40;

/** A map of numbers.
 * data: {x: {label, values}, y: the same, cells: [x][y] number or null, edges: [x][y] of anything
 * that a line parts, or null, lines: [{xs, ys, label}], words: [{text, x, y}], name: what a cell's
 * number is, text(x, y): that number, written(x, y, decimals): it in brief, to stand on the
 * cell, margins: {x, y} chances of each value, drawn as bars on the edges}; colour(x, y) -> [r, g, b] or null; tell(x, y) ->
 * sentence; href(x, y) -> address or null; scale: of the colours (`colours.js`), for a picture;
 * what: the cells are. */
export class HeatMap {
  constructor(data, { colour, tell, href, caption, scale = null, what = "states" }) {
    Object.assign(this, { data, colour, tell, href, scale, what });
    this.at = null;
    const help = newId("help");
    this.canvas = h("canvas.map", { tabindex: "0", role: "application", "aria-roledescription": "heat map", "aria-label": caption, "aria-describedby": help });
    this.readout = h("output.readout", { "aria-live": "polite" });
    this.curve = h("div.curve");
    this.element = h("div.heat", null, this.canvas, this.readout,
      h("p.about", { id: help }, href ? "Point at a cell to read it, click to open its state. With the keyboard: arrow keys, then Enter." : "Point at a cell to read it, or use the arrow keys."),
      this.curve, this.#table(caption));
    this.#listen();
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.canvas);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => (this.canvas.isConnected ? this.draw() : this.leave());
    this.dark.addEventListener("change", this.redraw);
    this.#rest();
  }

  leave() {
    this.watch.disconnect();
    this.dark.removeEventListener("change", this.redraw);
  }

  get nx() { return this.data.x.values.length; }
  get ny() { return this.data.y.values.length; }

  #rest() {
    fill(this.readout, h("span.hint", null, `${this.nx} × ${this.ny} ${this.what}`));
  }

  // --- drawing ------------------------------------------------------------------------------------

  draw() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const pen = this.canvas.getContext("2d");
    this.box = this.#layout(pen, width);
    const height = this.box.top + this.box.height + this.box.low;
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.setProperty("height", `${height}px`);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.#paint(pen);
    this.#cursor(pen);
  }

  /** The same as SVG. */
  svg(width) {
    const shown = this.box;
    const measure = document.createElement("canvas").getContext("2d");
    this.box = this.#layout(measure, width);
    const pen = new SvgPen(width, this.box.top + this.box.height + this.box.low);
    this.#paint(pen);
    this.box = shown;
    if (!this.scale) return pen.root;
    const tall = pen.root.viewBox.baseVal.height;
    return s("svg", { viewBox: `0 0 ${width} ${tall + LEGEND}` }, s("g", { class: "curves" }, this.scale.drawn()),
      s("g", { transform: `translate(0 ${LEGEND})` }, [...pen.root.childNodes]));
  }

  /** What of it can be taken along (`exportBar`). */
  get kept() {
    const { x, y, cells, name, names, text, flat } = this.data;
    const rows = () => [names ?? [x.label, y.label, name], ...x.values.flatMap((a, i) => y.values
      .map((b, j) => [a, b, flat ? text(i, j) : cells[i][j]]).filter(([, , value]) => value !== null && value !== ""))];
    return { picture: (width) => this.svg(width), rows };
  }

  /** Where the cells are in a picture of a width: what stands beside them gets the room it needs. */
  #layout(pen, width) {
    pen.font = small();
    const ticked = Math.max(...this.data.y.values.map((value) => pen.measureText(short(value)).width));
    const upwards = wrapped(this.data.y.label, Math.max(200, 0.45 * width), "600 13px");
    const left = ticked + 16 + 16 * upwards.length;
    const bars = this.data.margins ? BARS : 0;
    const inside = width - left - RIGHT - bars;
    const tall = Math.round(Math.min(Math.max(inside * Math.min(this.ny / this.nx, 1), inside * 0.45, 200), 560));
    const across = wrapped(this.data.x.label, inside + RIGHT + bars, "600 13px");
    return { left, top: TOP + bars, width: inside, height: tall, across, upwards, low: BOTTOM + 16 * (across.length - 1) };
  }

  #paint(pen) {
    this.#cells(pen);
    this.#edges(pen);
    this.#lines(pen);
    this.#numbers(pen);
    this.#margins(pen);
    this.#axes(pen);
  }

  #place(i, j) {
    const { left, top, width, height } = this.box;
    return [left + (i * width) / this.nx, top + height - (j * height) / this.ny];
  }

  #cells(pen) {
    const { left, top, width, height } = this.box;
    hatch(pen, this.box, style("--line"));
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    for (let i = 0; i < this.nx; i += 1) {
      for (let j = 0; j < this.ny; j += 1) {
        const colour = this.colour(i, j);
        if (!colour) continue;
        const [x0, y1] = this.#place(i, j);
        const [x1, y0] = this.#place(i + 1, j + 1);
        pen.fillStyle = css(colour);
        pen.fillRect(Math.floor(x0), Math.floor(y0), Math.ceil(x1) - Math.floor(x0), Math.ceil(y1) - Math.floor(y0));
      }
    }
    pen.restore();
  }

  /** Lines between cells whose `edges` differ: white, with a dark rim, to be seen on any colour. */
  #edges(pen) {
    const { edges } = this.data;
    if (!edges) return;
    pen.beginPath();
    for (let i = 0; i < this.nx; i += 1) {
      for (let j = 0; j < this.ny; j += 1) {
        const own = edges[i][j];
        if (own === null) continue;
        if (i + 1 < this.nx && edges[i + 1][j] !== null && edges[i + 1][j] !== own) this.#wall(pen, i + 1, j, i + 1, j + 1);
        if (j + 1 < this.ny && edges[i][j + 1] !== null && edges[i][j + 1] !== own) this.#wall(pen, i, j + 1, i + 1, j + 1);
      }
    }
    twice(pen);
  }

  #wall(pen, i, j, k, l) {
    pen.moveTo(...this.#place(i, j));
    pen.lineTo(...this.#place(k, l));
  }

  #lines(pen) {
    const at = (axis, value) => {
      const { values } = axis;
      const unit = values.length > 1 ? values[1] - values[0] : 1;
      return (value - values[0]) / unit + 0.5;
    };
    const { left, top, width, height } = this.box;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    for (const { xs, ys } of this.data.lines ?? []) {
      pen.beginPath();
      for (const piece of pieces(xs, ys)) {
        piece.forEach(([x, y], k) => pen[k ? "lineTo" : "moveTo"](...this.#place(at(this.data.x, x), at(this.data.y, y))));
      }
      twice(pen);
    }
    pen.restore();
    pen.font = `600 14px ${style("--font")}`;
    pen.fillStyle = "#fff";
    pen.strokeStyle = "#101316";
    pen.lineWidth = 4;
    pen.textAlign = "center";
    for (const { text, x, y } of this.data.words ?? []) {
      const [px, py] = this.#place(at(this.data.x, x), at(this.data.y, y));
      text.split("\n").forEach((line, k) => { // white with a dark rim, to be read on any colour
        const half = pen.measureText(line).width / 2 + 2;
        const middle = Math.max(left + half, Math.min(px, left + width - half));
        pen.strokeText(line, middle, py + 18 * k);
        pen.fillText(line, middle, py + 18 * k);
      });
    }
  }

  /** The number of each cell on it, where they all fit. */
  #numbers(pen) {
    const { data, box } = this;
    if (!data.written) return;
    pen.font = small();
    const all = [2, 1].map((decimals) => data.cells.flatMap((column, i) => column.map((_, j) => [i, j, data.written(i, j, decimals)])))
      .find((each) => Math.max(...each.map(([, , text]) => pen.measureText(text).width)) + 5 < box.width / this.nx);
    if (!all || box.height / this.ny < 16) return;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const [i, j, text] of all) {
      const colour = this.colour(i, j);
      if (!colour) continue;
      pen.fillStyle = light(colour) ? "#101316" : "#fff";
      pen.fillText(text, ...this.#place(i + 0.5, j + 0.5));
    }
  }

  /** Chances as bars on the upper and the right edge. */
  #margins(pen) {
    const { margins } = this.data;
    if (!margins) return;
    const { left, top, width, height } = this.box;
    const most = Math.max(...margins.x, ...margins.y);
    const long = (chance) => (chance / most) * (BARS - 18);
    pen.font = `11px ${style("--font")}`;
    margins.x.forEach((chance, i) => {
      const [x0] = this.#place(i, 0);
      const wide = width / this.nx;
      pen.fillStyle = style("--p2");
      pen.fillRect(x0 + wide * 0.12, top - 3 - long(chance), wide * 0.76, Math.max(long(chance), 1));
      this.#share(pen, chance, x0 + wide / 2, top - 7 - long(chance), wide, "center");
    });
    margins.y.forEach((chance, j) => {
      const [, y1] = this.#place(0, j + 1);
      const high = height / this.ny;
      pen.fillStyle = style("--p1");
      pen.fillRect(left + width + 3, y1 + high * 0.12, Math.max(long(chance), 1), high * 0.76);
      this.#share(pen, chance, left + width + 7 + long(chance), y1 + high / 2 + 4, high < 12 ? 0 : BARS, "left");
    });
  }

  #share(pen, chance, x, y, room, align) {
    const text = String(Math.round(100 * chance));
    if (chance < 0.005 || pen.measureText(text).width > room) return;
    pen.fillStyle = style("--ink");
    pen.textAlign = align;
    pen.textBaseline = "alphabetic";
    pen.fillText(text, x, y);
  }

  #axes(pen) {
    const { left, top, width, height } = this.box;
    const { x, y } = this.data;
    pen.fillStyle = style("--quiet");
    pen.font = small();
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const wide = Math.max(...x.values.map((value) => pen.measureText(short(value)).width)) + 14;
    for (const i of ticks(this.nx, Math.min(MOST_TICKS, Math.floor(width / wide)))) {
      const [px] = this.#place(i + 0.5, 0);
      pen.fillText(short(x.values[i]), px, top + height + 6);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const j of ticks(this.ny, Math.min(MOST_TICKS, Math.floor(height / 26)))) {
      const [, py] = this.#place(0, j + 0.5);
      pen.fillText(short(y.values[j]), left - 7, py);
    }
    pen.fillStyle = style("--ink");
    pen.font = `600 13px ${style("--font")}`;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    this.box.across.forEach((line, k) => pen.fillText(line, left + width / 2, top + height + 38 + 16 * k));
    pen.save();
    pen.translate(13, top + height / 2);
    pen.rotate(-Math.PI / 2);
    this.box.upwards.forEach((line, k) => pen.fillText(line, 0, 16 * k, height));
    pen.restore();
  }

  #cursor(pen) {
    if (!this.at) return;
    const [i, j] = this.at;
    const [x0, y1] = this.#place(i, j);
    const [x1, y0] = this.#place(i + 1, j + 1);
    const [w, t] = [Math.max(x1 - x0, 5), Math.max(y1 - y0, 5)];
    pen.lineWidth = 4;
    pen.strokeStyle = "#000";
    pen.strokeRect(x0, y0, w, t);
    pen.lineWidth = 2;
    pen.strokeStyle = "#fff";
    pen.strokeRect(x0, y0, w, t);
  }

  // --- reading ------------------------------------------------------------------------------------

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.#point(event));
    canvas.addEventListener("pointerleave", () => document.activeElement !== canvas && this.put(null));
    canvas.addEventListener("pointerup", (event) => {
      const before = this.at?.join();
      this.#point(event);
      // A finger covers the cell: its first touch reads, the second one opens.
      if (this.at && (event.pointerType !== "touch" || before === this.at.join())) this.#open();
    });
    canvas.addEventListener("focus", () => !this.at && canvas.matches(":focus-visible") && this.put([0, 0]));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #point(event) {
    if (!this.box) return;
    const around = this.canvas.getBoundingClientRect();
    const { left, top, width, height } = this.box;
    const i = Math.floor(((event.clientX - around.left - left) / width) * this.nx);
    const j = Math.floor(((top + height - (event.clientY - around.top)) / height) * this.ny);
    const inside = i >= 0 && j >= 0 && i < this.nx && j < this.ny;
    this.put(inside ? [i, j] : null);
    this.canvas.classList.toggle("opens", inside && !!this.href?.(i, j));
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const [i, j] = this.at ?? [0, 0];
    const far = event.shiftKey ? 10 : 1;
    const to = {
      ArrowRight: [i + far, j], ArrowLeft: [i - far, j], ArrowUp: [i, j + far], ArrowDown: [i, j - far],
      Home: [0, j], End: [this.nx - 1, j], PageUp: [i, this.ny - 1], PageDown: [i, 0],
    }[event.key];
    if (to) {
      event.preventDefault();
      this.put([Math.min(Math.max(to[0], 0), this.nx - 1), Math.min(Math.max(to[1], 0), this.ny - 1)]);
    } else if (event.key === "Enter" && this.at) {
      event.preventDefault();
      this.#open();
    }
  }

  #open() {
    const to = this.href?.(...this.at);
    if (to) location.hash = to;
  }

  /** Point at a cell; null: at none. */
  put(at) {
    if (this.at?.join() === at?.join()) return;
    this.at = at;
    if (this.box) this.draw();
    if (!at) return this.#rest();
    const to = this.href?.(...at);
    fill(this.readout, h("span", null, this.tell(...at)), to ? h("a", { href: to }, "open this state") : null);
    this.#along(at[1]);
  }

  /** The row of the cell as a curve. */
  #along(row) {
    const values = this.data.cells.map((column) => column[row]);
    const held = values.filter((value) => typeof value === "number");
    if (this.row === row || this.data.flat || this.data.margins || held.length < 2) return;
    this.row = row;
    fill(this.curve, curve(this.data.x.values, values, this.data.name,
      `${this.data.name} along ${this.data.x.label}, ${this.data.y.label} being ${short(this.data.y.values[row])}`));
  }

  /** The same numbers as a table, made when it is opened; of many cells some, evenly spaced. */
  #table(caption) {
    return unfold("The numbers as a table", `${caption}, as a table`, () => {
      const [is, js] = [spaced(this.nx), spaced(this.ny)];
      const { x, y, margins } = this.data;
      const share = (chance) => h("td.n.share", null, percent(chance));
      return h("table.numbers", null,
        h("caption", null, `${this.data.name}: ${x.label} across, ${y.label} down`, is.length < this.nx || js.length < this.ny ? "; some of the cells" : ""),
        h("thead", null, h("tr", null, h("td"), is.map((i) => h("th.n", { scope: "col" }, short(x.values[i]))), margins ? h("th.n", { scope: "col" }, "chance") : null)),
        h("tbody", null, js.map((j) => h("tr", null, h("th.n", { scope: "row" }, short(y.values[j])), is.map((i) => h("td.n", null, this.#cell(i, j))), margins ? share(margins.y[j]) : null)),
          margins ? h("tr", null, h("th.n", { scope: "row" }, "chance"), is.map((i) => share(margins.x[i])), h("td")) : null));
    });
  }

  #cell(i, j) {
    const text = this.data.text(i, j);
    const to = this.href?.(i, j);
    return to && text ? h("a", { href: to }, text) : text;
  }
}

/** The pieces of a line between its gaps, which are null: [[x, y], …] each. */
export function pieces(xs, ys) {
  const found = [[]];
  xs.forEach((x, k) => {
    if (x === null || ys[k] === null) found.push([]);
    else found.at(-1).push([x, ys[k]]);
  });
  return found.filter((piece) => piece.length);
}

/** A hatched ground: here is no state. */
function hatch(pen, { left, top, width, height }, colour) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let x = left - height; x < left + width; x += 7) {
    pen.moveTo(x, top + height);
    pen.lineTo(x + height, top);
  }
  pen.stroke();
  pen.restore();
}

function twice(pen) {
  pen.lineCap = "square";
  pen.lineJoin = "round";
  pen.lineWidth = 3.6;
  pen.strokeStyle = "#101316";
  pen.stroke();
  pen.lineWidth = 1.6;
  pen.strokeStyle = "#fff";
  pen.stroke();
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const small = () => `12px ${style("--font")}`;

/** Whether dark letters are read on a colour. */
const light = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b > 140;

function short(value) {
  return typeof value === "number" ? value.toLocaleString("en") : String(value);
}

function ticks(n, most) {
  const step = Math.max(1, [1, 2, 5, 10, 20, 25, 50, 100, 200, 500].find((each) => Math.ceil(n / each) <= Math.max(most, 2)) ?? n);
  return Array.from({ length: Math.ceil(n / step) }, (_, k) => k * step);
}

function spaced(n) {
  if (n <= MOST_IN_TABLE) return Array.from({ length: n }, (_, i) => i);
  return Array.from({ length: MOST_IN_TABLE }, (_, k) => Math.round((k * (n - 1)) / (MOST_IN_TABLE - 1)));
}

/** A curve through numbers, some of them null. */
function curve(xs, values, name, label) {
  const [width, height, left, low, right, top] = [640, 170, 54, 140, 628, 12];
  const held = values.filter((value) => value !== null);
  const [least, most] = [Math.min(...held), Math.max(...held)];
  const spread = most - least || 1;
  const px = (i) => left + ((right - left) * i) / Math.max(xs.length - 1, 1);
  const py = (value) => low - ((low - top) * (value - least)) / spread;
  let path = "";
  values.forEach((value, i) => {
    if (value !== null) path += `${path && values[i - 1] !== null ? "L" : "M"}${px(i).toFixed(1)} ${py(value).toFixed(1)}`;
  });
  const round = (value) => Number(value.toPrecision(3)).toString();
  return h("figure", null, s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: from ${round(values.find((value) => value !== null))} to ${round(held.at(-1))}` },
    [least, most].map((value) => [
      s("line", { x1: left, x2: right, y1: py(value), y2: py(value), class: "rule" }),
      s("text", { x: left - 6, y: py(value) + 4, "text-anchor": "end" }, round(value))]),
    ticks(xs.length, 8).map((i) => s("text", { x: px(i), y: height - 10, "text-anchor": "middle" }, short(xs[i]))),
    s("path", { d: path, class: "line" })), h("figcaption", null, label));
}
