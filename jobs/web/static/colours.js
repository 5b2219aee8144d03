// Colours for numbers: viridis (even steps of lightness, so it reads in grey and to colour-blind
// people), and one with a middle for differences (blue, pale, orange); scales of them, with the bar
// or the list that says which is which.
import { h, s } from "./dom.js";

const VIRIDIS = ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"].map(parts);
const APART = ["9a3b00", "d97a2b", "f2c79a", "f3f1ec", "a9c8ec", "4a86cf", "0b4a94"].map(parts);

function parts(hex) {
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function along(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((part, i) => Math.round(part + (at - low) * (stops[low + 1][i] - part)));
}

/** share 0 to 1 -> [r, g, b]. */
export const viridis = (share) => along(VIRIDIS, share);

/** share 0 (less, orange) to 1 (more, blue), 0.5 none -> [r, g, b]. */
export const apart = (share) => along(APART, share);

/** The colour of the i-th of n names: far apart in lightness. */
export const named = (i, n) => along(VIRIDIS, n < 2 ? 0.5 : 0.08 + (0.88 * i) / (n - 1));

export const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

/** The least and the greatest of cells [x][y]. */
export function span(cells) {
  const held = cells.flat().filter((value) => typeof value === "number");
  return held.length ? [held.reduce((a, b) => Math.min(a, b)), held.reduce((a, b) => Math.max(a, b))] : [0, 1];
}

/** A scale of numbers between two ends: the colour of one, what says so on the page, and in a
 * picture: `drawn()`, parts of an SVG, 30 high. */
export function scaleOf(colours, [low, high], text) {
  const share = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  const steps = Array.from({ length: 32 }, (_, k) => css(colours(k / 31)));
  return {
    colour: (value) => colours(share(value)),
    legend: h("div.legend", { role: "img", "aria-label": `Colours from ${text(low)} to ${text(high)}` },
      h("span.n", null, text(low)), h("span.ramp", null, steps.map((fill) => swatch(fill))), h("span.n", null, text(high))),
    drawn: () => [
      s("text", { y: 14 }, text(low)),
      steps.map((fill, k) => s("rect", { x: 90 + 8 * k, y: 3, width: 8.5, height: 13, fill })),
      s("text", { x: 90 + 8 * 32 + 12, y: 14 }, text(high))],
  };
}

/** The same of names, by their number. */
export function namedScale(names, none) {
  const fills = names.map((_, k) => css(named(k, names.length)));
  return {
    colour: (k) => named(k, names.length),
    legend: h("ul.legend.names", null, names.map((name, k) => h("li", null, swatch(fills[k], "span.swatch"), name)), h("li", null, h("span.swatch.none"), none)),
    drawn: () => names.map((name, k) => [
      s("rect", { x: 150 * k, y: 3, width: 14, height: 14, fill: fills[k] }), s("text", { x: 150 * k + 20, y: 15 }, name)]),
  };
}

function swatch(fill, kind = "span") {
  const made = h(kind);
  made.style.setProperty("background", fill);
  return made;
}
