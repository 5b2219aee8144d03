// Makes the pages live: a changed form is sent and its answer swapped in, and a click on a heat map
// opens the state there. Every page works without this file.
const SOON = 350; // milliseconds after the last key before a form is sent
const AGAIN = 1500; // changes that follow each other faster are one step of the browser's history
let asked = 0;
let waiting = 0;
let changedAt = 0;

document.documentElement.classList.add("js");

/** Fetch a page and show it here. keep: "pushState" or "replaceState" with its address; "wait": leave
 * the page as it is if the server does not answer. */
async function show(url, keep) {
  const mine = ++asked;
  document.querySelector("main").setAttribute("aria-busy", "true");
  let reply, text;
  try {
    reply = await fetch(url, { headers: { accept: "text/html" } });
    text = await reply.text();
  } catch {
    if (keep !== "wait") location.assign(url);
    return;
  }
  if (mine !== asked) return;
  swap(new DOMParser().parseFromString(text, "text/html"));
  if (keep?.endsWith("State") && reply.ok) history[keep](null, "", reply.url);
}

/** Put another page's header and main part in place of ours; the box that has the keyboard stays. */
function swap(page) {
  const held = document.activeElement?.id ? document.activeElement : null;
  const open = [...document.querySelectorAll("details[open] > summary")].map((each) => each.textContent);
  document.title = page.title;
  for (const part of ["header", "main"]) document.querySelector(part).replaceWith(page.querySelector(part));
  for (const summary of document.querySelectorAll("summary")) {
    if (open.includes(summary.textContent)) summary.parentElement.open = true;
  }
  const fresh = held && document.getElementById(held.id);
  if (!fresh) return;
  for (const name of ["aria-invalid", "aria-describedby"]) {
    if (fresh.hasAttribute(name)) held.setAttribute(name, fresh.getAttribute(name));
    else held.removeAttribute(name);
  }
  fresh.replaceWith(held); // with its caret, and what was typed meanwhile
  held.focus({ preventScroll: true });
}

function send(form) {
  clearTimeout(waiting);
  const query = new URLSearchParams(new FormData(form));
  const now = Date.now();
  const keep = now - changedAt < AGAIN ? "replaceState" : "pushState";
  changedAt = now;
  show(`${form.action.split("?")[0]}?${query}`, keep);
}

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, ({ target }) => {
    const form = target.form?.matches("[data-live]") ? target.form : null;
    const typed = target.matches("input:not([type=checkbox])");
    if (!form || (kind === "input") !== typed) return;
    clearTimeout(waiting);
    waiting = setTimeout(send, typed ? SOON : 0, form);
  });
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-live]")) return;
  event.preventDefault();
  send(event.target);
});

addEventListener("popstate", () => show(location.href, null));

// A running solve: the page is fetched again until it shows none.
setInterval(() => {
  if (document.querySelector("[data-again]") && !document.hidden) show(location.href, "wait");
}, 5000);

/** The cell of a heat map under the pointer: the values on its axes, or null. */
function cellAt(event) {
  const figure = event.target.closest?.("figure[data-cells]");
  const ground = event.target.closest?.("svg")?.querySelector(".background");
  if (!figure || !ground) return null;
  const box = [...event.target.closest("svg").querySelectorAll(".background")].map((each) => each.getBoundingClientRect())
    .reduce((a, b) => (a.width * a.height < b.width * b.height ? b : a));
  const [xs, ys] = [figure.dataset.xs.split(","), figure.dataset.ys.split(",")];
  const i = Math.floor(((event.clientX - box.left) / box.width) * xs.length);
  const j = Math.floor(((box.bottom - event.clientY) / box.height) * ys.length);
  return i in xs && j in ys ? { figure, x: xs[i], y: ys[j] } : null;
}

for (const kind of ["pointermove", "click"]) {
  document.addEventListener(kind, (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    const { cells, x, y, state } = cell.figure.dataset;
    const named = (name, value) => `${name.replaceAll("_", " ")} ${Number(value).toLocaleString("en")}`;
    if (kind === "click") location.assign(`${state}?${cells}${cells && "&"}${x}=${cell.x}&${y}=${cell.y}`);
    else cell.figure.querySelector("figcaption").textContent = `${named(x, cell.x)}, ${named(y, cell.y)}: click to open this state`;
  });
}
