// Texts in lines that fit, and what a heat map draws with where it is not drawn on a canvas: as much
// of a canvas' pen as it needs, and what comes of it is SVG.
import { s } from "./dom.js";

const ruler = document.createElement("canvas").getContext("2d");

/** How wide a text is in a font of the page's letters: "600 13px". */
export function breadth(said, font) {
  ruler.font = `${font} ${getComputedStyle(document.documentElement).getPropertyValue("--font")}`;
  return ruler.measureText(said).width;
}

/** A text in lines that fit. */
export function wrapped(said, width, font) {
  const lines = [];
  for (const word of said.split(/\s+/).filter(Boolean)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && breadth(longer, font) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

const DOWN = { top: 0.8, middle: 0.35, alphabetic: 0 };
const ANCHOR = { left: "start", center: "middle", right: "end" };

export class SvgPen {
  constructor(width, height) {
    this.root = s("svg", { viewBox: `0 0 ${width} ${height}` });
    Object.assign(this, {
      into: this.root, saved: [], path: "", box: null, last: null, lineWidth: 1, lineCap: "butt", lineJoin: "miter",
      fillStyle: "#000", strokeStyle: "#000", font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
  }

  save() { this.saved.push(this.into); }

  restore() { this.into = this.saved.pop(); }

  translate(x, y) { this.#group({ transform: `translate(${x} ${y})` }); }

  rotate(turn) { this.#group({ transform: `rotate(${(turn * 180) / Math.PI})` }); }

  /** To the rectangle of the path, which is all that is clipped to. */
  clip() {
    const [x, y, width, height] = this.box;
    const inner = s("svg", { x, y, width, height, viewBox: `${x} ${y} ${width} ${height}`, overflow: "hidden" });
    this.#put(inner);
    this.into = inner;
  }

  beginPath() { this.path = ""; }

  rect(...box) { this.box = box; }

  moveTo(x, y) { this.path += `M${round(x)} ${round(y)}`; }

  lineTo(x, y) { this.path += `L${round(x)} ${round(y)}`; }

  stroke() {
    if (!this.path) return;
    this.#put(s("path", { d: this.path, fill: "none", ...this.#line() }));
  }

  /** What continues the one below it in the same colour is made one with it. */
  fillRect(x, y, width, height) {
    const { last } = this;
    const fill = this.fillStyle;
    if (last && last.fill === fill && last.x === x && last.width === width && y < last.y && y + height >= last.y && this.into.lastChild === last.made) {
      last.height += last.y - y;
      last.y = y;
      last.made.setAttribute("y", y);
      last.made.setAttribute("height", last.height);
      return;
    }
    const made = s("rect", { x, y, width, height, fill, stroke: "none" });
    this.last = { x, y, width, height, fill, made };
    this.#put(made);
  }

  measureText(said) {
    ruler.font = this.font;
    return ruler.measureText(said);
  }

  fillText(said, x, y, room = Infinity) { this.#text(said, x, y, room, { fill: this.fillStyle, stroke: "none" }); }

  strokeText(said, x, y, room = Infinity) { this.#text(said, x, y, room, { fill: "none", ...this.#line() }); }

  #text(said, x, y, room, look) {
    const [, weight, size, family] = /^(?:(\d+) )?([\d.]+)px (.*)$/.exec(this.font);
    const squeezed = this.measureText(said).width > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
    this.#put(s("text", {
      x, y: round(y + DOWN[this.textBaseline] * size), "text-anchor": ANCHOR[this.textAlign],
      "font-size": `${size}px`, "font-weight": weight ?? 400, "font-family": family, ...squeezed, ...look }, said));
  }

  #line() {
    return { stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-linecap": this.lineCap === "square" ? "square" : "butt", "stroke-linejoin": this.lineJoin };
  }

  #group(given) {
    const inner = s("g", given);
    this.#put(inner);
    this.into = inner;
  }

  #put(made) { this.into.append(made); }
}

const round = (value) => Math.round(value * 100) / 100;
