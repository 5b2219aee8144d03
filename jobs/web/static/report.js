// Says the numbers of a picture where the mouse is, or where the arrow keys have led.
"use strict";

const within = (k, n) => Math.min(Math.max(k, 0), n - 1);
const said = (value) => (value === null ? "no number" : value.toLocaleString("en",
  { maximumFractionDigits: 6 }));

function cells({ plot, labels, xs, ys, values }, here) {
  const [left, top, wide, high] = plot;
  return {
    size: [xs.length, ys.length],
    find: (x, y) => [Math.floor((x - left) / wide * xs.length),
      Math.floor((1 - (y - top) / high) * ys.length)],
    show: (i, j) => {
      here.setAttribute("x", left + i * wide / xs.length);
      here.setAttribute("y", top + (ys.length - 1 - j) * high / ys.length);
      here.setAttribute("width", wide / xs.length);
      here.setAttribute("height", high / ys.length);
      return `${labels[0]} ${said(xs[i])}, ${labels[1]} ${said(ys[j])}: ` +
        `${labels[2]} ${said(values[i][j])}`;
    },
  };
}

function lines({ plot, labels, xs, places, curves }, here) {
  const [, top, , high] = plot;
  return {
    size: [xs.length, 1],
    find: (x) => {
      let best = 0;
      places.forEach((at, i) => { if (Math.abs(at - x) < Math.abs(places[best] - x)) best = i; });
      return [best, 0];
    },
    show: (i) => {
      here.setAttribute("d", `M${places[i]} ${top}v${high}`);
      const parts = curves.map((curve, k) => `${labels[k + 1]} ${said(curve[i])}`);
      return `${labels[0]} ${said(xs[i])}: ${parts.join("; ")}`;
    },
  };
}

for (const figure of document.querySelectorAll("figure.plot")) {
  const svg = figure.querySelector("svg");
  const script = figure.querySelector("script.numbers");
  if (!script) continue;
  const output = figure.querySelector("output");
  const data = JSON.parse(script.textContent);
  const picture = (data.curves ? lines : cells)(data, svg.querySelector(".here"));
  let at = [0, 0];
  const show = (i, j) => {
    at = [i, j];
    output.textContent = picture.show(i, j);
  };
  svg.addEventListener("pointermove", (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(
      svg.getScreenCTM().inverse());
    const [i, j] = picture.find(point.x, point.y);
    if (i >= 0 && i < picture.size[0] && j >= 0 && j < picture.size[1]) show(i, j);
  });
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!(event.key in by)) return;
    event.preventDefault();
    const [i, j] = by[event.key];
    show(within(at[0] + i, picture.size[0]), within(at[1] + j, picture.size[1]));
  });
}
