// Elements of the page, made without a line of HTML in a string.

/** An element: `h("a.button", {href}, "text", child)`; false and null are left out. */
export function h(what, given, ...children) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [name, value] of Object.entries(given ?? {})) set(made, name, value);
  made.append(...flat(children));
  return made;
}

function set(made, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
  else if (name.startsWith("--")) made.style.setProperty(name, value);
  else made.setAttribute(name, value === true ? "" : value);
}

function flat(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
}

/** An element of a drawing. */
export function s(tag, given, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(given ?? {})) set(made, name, value);
  made.append(...flat(children));
  return made;
}

/** Put children in the place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

const opened = new Set();

/** What `make` gives, made when it is opened, below its name; open where one of that name was left so. */
export function unfold(name, label, make) {
  const body = h("div.scroll", { tabindex: "0", role: "region", "aria-label": label });
  return h("details", {
    open: opened.has(name),
    ontoggle: ({ target }) => {
      if (!target.open) return opened.delete(name);
      opened.add(name);
      if (!body.childElementCount) fill(body, make());
    },
  }, h("summary", null, name), body);
}

let ids = 0;

/** An id that no other element has. */
export function newId(what) {
  ids += 1;
  return `${what}-${ids}`;
}

const NOT_DRAWN = new Set(["script", "foreignObject", "style", "animate", "set", "iframe"]);

/** What the server draws of a state, as an element; null where it draws nothing. */
export function drawing(text, label) {
  if (!text) return null;
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (svg.localName !== "svg") return null;
  for (const part of [svg, ...svg.querySelectorAll("*")]) {
    if (NOT_DRAWN.has(part.localName)) part.remove();
    for (const { name } of [...part.attributes]) {
      if (/^(on|style$)|href$/i.test(name)) part.removeAttribute(name);
    }
  }
  const own = document.importNode(svg, true);
  own.setAttribute("role", "img");
  if (!own.querySelector(":scope > title") && !own.hasAttribute("aria-label")) own.setAttribute("aria-label", label);
  return h("figure.drawing", null, own);
}

/** Tell people who listen to the page. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

/** A whole page that says why there is nothing to see. */
export function nothing(head, sentence, ...more) {
  return h("div.view.narrow", { role: "alert" }, h("h1", { "data-head": true, tabindex: "-1" }, head), h("p.lead", null, sentence), more);
}

/** A sentence about what went wrong, read out at once. */
export function sorry(text, ...more) {
  return h("div.sorry", { role: "alert" }, h("p", null, text), more);
}
