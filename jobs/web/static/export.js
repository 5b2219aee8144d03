// What a view shows, to take along: its picture as PNG or SVG, its numbers as CSV, its address.
import { h, s, say } from "./dom.js";
import { wrapped } from "./pen.js";

const WIDE = 960, EDGE = 28, SHARP = 2, LINE = 20;
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "paint-order", "opacity", "color", "font-family", "font-size", "font-weight", "text-anchor", "visibility"];

/** Buttons for what a view shows, whichever there are of them.
 * name: of the files; title, about: stand above the picture; picture(width): an SVG element, made
 * for this or shown already; rows(): lists of cells, the heads first. */
export function exportBar({ name, title = "", about = "", picture = null, rows = null }) {
  const file = name.replace(/[^\w.-]+/g, "-");
  const drawn = () => standalone(picture(WIDE - 2 * EDGE), title, about);
  return h("div.bar.exports", { role: "group", "aria-label": "Take it along" },
    picture ? [
      button("PNG", async () => save(`${file}.png`, await png(drawn()))),
      button("SVG", () => save(`${file}.svg`, new Blob([text(drawn())], { type: "image/svg+xml" }))),
    ] : null,
    rows ? button("CSV", () => save(`${file}.csv`, new Blob([csv(rows())], { type: "text/csv" }))) : null,
    button("Copy link", copyLink));
}

function button(word, act) {
  const made = h("button", {
    type: "button", title: word === "Copy link" ? "The address of what is shown" : `Save as ${word}`,
    onclick: async () => {
      made.setAttribute("aria-busy", "true");
      const done = await act();
      made.removeAttribute("aria-busy");
      if (!done) return;
      say(done);
      made.textContent = done;
      setTimeout(() => { made.textContent = word; }, 2000);
    },
  }, word);
  return made;
}

/** Rows as CSV: text in quotes where it has to be. */
export function csv(rows) {
  const cell = (value) => {
    const said = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(said) ? `"${said.replaceAll('"', '""')}"` : said;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

function save(name, content) {
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The address into the clipboard; where a page has none, it is marked to be copied by hand. */
async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    return "Copied";
  } catch {
    prompt("The address of what is shown:", location.href);
    return null;
  }
}

// --- pictures -------------------------------------------------------------------------------------

const text = (svg) => new XMLSerializer().serializeToString(svg);

/** A picture that needs no page around it: its styles in it, a title above, on the page's ground. */
function standalone(shown, title, about) {
  const [inner, [wide, tall]] = [WIDE - 2 * EDGE, sizeOf(shown)];
  const height = (tall * inner) / wide;
  const made = s("svg", { xmlns: "http://www.w3.org/2000/svg", class: "exported" });
  const heads = [
    ...wrapped(title, inner, "700 20px").map((line) => s("text", { class: "title" }, line)),
    ...wrapped(about, inner, "400 14px").map((line) => s("text", { class: "about" }, line))];
  heads.forEach((line, i) => set(line, { x: EDGE, y: EDGE + 16 + i * (LINE + 4) }));
  const top = EDGE + heads.length * (LINE + 4) + (heads.length ? 8 : 0);
  const body = shown.isConnected ? shown.cloneNode(true) : shown;
  set(body, { x: EDGE, y: top, width: inner, height, viewBox: `0 0 ${wide} ${tall}` });
  set(made, { width: WIDE, height: Math.ceil(top + height + EDGE), viewBox: `0 0 ${WIDE} ${Math.ceil(top + height + EDGE)}` });
  made.append(s("rect", { class: "ground", width: "100%", height: "100%" }), ...heads, body);
  const place = h("div.unseen.heat.drawing", { "aria-hidden": true }, made);
  document.body.append(place);
  for (const part of made.querySelectorAll("*")) {
    const look = getComputedStyle(part);
    for (const name of KEPT) part.setAttribute(name, look.getPropertyValue(name));
  }
  place.remove();
  for (const part of [made, ...made.querySelectorAll("*")]) ["class", "style", "tabindex"].forEach((name) => part.removeAttribute(name));
  return made;
}

function set(element, given) {
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
}

function sizeOf(svg) {
  const box = svg.viewBox.baseVal;
  return box?.width ? [box.width, box.height] : [svg.clientWidth || WIDE, svg.clientHeight || WIDE / 2];
}

async function png(svg) {
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)) * SHARP);
  const image = new Image(width, height);
  image.src = `data:image/svg+xml,${encodeURIComponent(text(svg))}`;
  await image.decode();
  const canvas = h("canvas", { width, height });
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
