// Says the numbers of a picture where the mouse is, or where the arrow keys have led.
"use strict";
for (const figure of document.querySelectorAll("figure.heat")) {
  const svg = figure.querySelector("svg");
  const said = figure.querySelector("output");
  const script = figure.querySelector("script.numbers");
  if (!script) continue;
  const { plot, labels, xs, ys, values } = JSON.parse(script.textContent);
  const [left, top, wide, high] = plot;
  const here = svg.querySelector("rect.here");
  let at = [0, 0];
  const show = (i, j) => {
    at = [i, j];
    const value = values[i][j];
    said.textContent = `${labels[0]} ${xs[i].toLocaleString("en")}, ${labels[1]} ` +
      `${ys[j].toLocaleString("en")}: ${value === null ? "no number" : `${labels[2]} ${value}`}`;
    here.setAttribute("x", left + i * wide / xs.length);
    here.setAttribute("y", top + (ys.length - 1 - j) * high / ys.length);
    here.setAttribute("width", wide / xs.length);
    here.setAttribute("height", high / ys.length);
  };
  const within = (k, n) => Math.min(Math.max(k, 0), n - 1);
  svg.addEventListener("pointermove", (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(
      svg.getScreenCTM().inverse());
    const i = Math.floor((point.x - left) / wide * xs.length);
    const j = Math.floor((1 - (point.y - top) / high) * ys.length);
    if (i >= 0 && i < xs.length && j >= 0 && j < ys.length) show(i, j);
  });
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!(event.key in by)) return;
    event.preventDefault();
    const [i, j] = by[event.key];
    show(within(at[0] + i, xs.length), within(at[1] + j, ys.length));
  });
}
