// A state's fields as a form that is read as one changes it: numbers with steps and sliders, a set
// as cards to turn over, each with its sentence.
import { fill, h, newId } from "./dom.js";
import { player } from "./format.js";

const [SOON, TYPED] = [60, 450];
const [FEWEST, MOST] = [6, 400];

/** The form of a table's fields. onedit(query, field, sure): the state was changed; sure: somebody
 * waits for it, so the keyboard may go to what is wrong. */
export class StateForm {
  constructor(table, onedit) {
    this.table = table;
    this.onedit = onedit;
    this.waiting = 0;
    this.inputs = new Map();
    this.errors = new Map();
    this.wrong = h("p.wrong", { id: newId("wrong"), "aria-live": "assertive", hidden: true });
    this.element = h("form.fields", { novalidate: true, autocomplete: "off", "aria-label": "The state" });
    this.element.append(...table.fields.map((field) => this.#row(field)), this.wrong);
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#edited(document.activeElement.dataset.field, 0);
    });
    this.element.addEventListener("input", ({ target }) => {
      this.inputs.get(target.dataset.field)?.follow?.();
      this.#edited(target.dataset.field, target.type === "text" ? TYPED : SOON);
    });
    this.element.addEventListener("change", ({ target }) => target.type === "text" && this.waiting && this.#edited(target.dataset.field, SOON));
  }

  #edited(field, after) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.waiting = 0;
      this.onedit(this.query(), field, after === 0);
    }, after);
  }

  #row(field) {
    const error = h("p.wrong", { id: newId("wrong"), "aria-live": "assertive", hidden: true });
    const help = field.help ? h("p.help", { id: newId("help") }, field.help) : null;
    this.errors.set(field.name, error);
    const about = [help?.id, error.id].filter(Boolean).join(" ");
    if (field.kind === "set") return this.#set(field, about, help, error);
    if (field.kind === "choice") return this.#choice(field, about, help, error);
    return this.#numbers(field, about, help, error);
  }

  #numbers(field, about, help, error) {
    const [length, named] = [lengthOf(field, this.table), field.kind === "name"];
    const inputs = Array.from({ length }, (_, i) => {
      const label = length === 1 ? name(field) : `${name(field)}, ${field.players ? player(i + 1, length) : i + 1}`;
      return h("input", {
        type: "text", inputmode: named || field.min < 0 ? "text" : "numeric", "aria-label": label, "aria-describedby": about, "data-field": field.name,
        name: length === 1 ? field.name : `${field.name}_${i + 1}`,
        onkeydown: (event) => {
          const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
          if (!way || event.altKey || named || !whole(event.target)) return;
          event.preventDefault();
          this.#step(event.target, field, way);
        },
      });
    });
    const sliders = inputs.map((input) => (named ? null : slider(field, input)));
    /** The sliders show what the numbers say. */
    const follow = () => sliders.forEach((one, i) => { if (one) one.value = inputs[i].value || "0"; });
    this.inputs.set(field.name, {
      follow,
      put: (text) => {
        text.split(",").forEach((part, i) => inputs[i] && put(inputs[i], part));
        follow();
      },
      take: () => {
        const parts = inputs.map((input) => input.value.trim());
        while (parts.length && parts.at(-1) === "") parts.pop();
        return parts.join(",");
      },
      empty: () => inputs.forEach((input) => put(input, "")),
      all: inputs,
    });
    const button = (input, way) => h("button", {
      type: "button", tabindex: "-1", "aria-label": `${input.getAttribute("aria-label")}: ${way < 0 ? "less" : "more"}`,
      onclick: () => this.#step(input, field, way),
    }, way < 0 ? "−" : "+");
    const part = (input, i) => h("div.of", null,
      length === 1 ? null : h(`span.who${field.players ? `.p${i + 1}` : ""}`, { "aria-hidden": true }, field.players ? player(i + 1, length) : i + 1),
      named ? input : h("div.step", null, button(input, -1), input, button(input, 1)), sliders[i]);
    return h(`fieldset.row${length === 1 ? ".one" : ""}`, null, h("legend", null, name(field)), help,
      h("div.numbers", null, inputs.map(part)), error);
  }

  #step(input, field, way) {
    if (!whole(input)) return;
    const next = Number(input.value || 0) + way * (field.step ?? 1);
    input.value = String(Math.min(Math.max(next, field.min ?? 0), field.max ?? Infinity));
    this.inputs.get(field.name).follow();
    this.#edited(field.name, SOON);
  }

  #set(field, about, help, error) {
    const boxes = field.choices.map((card) => h("input", {
      type: "checkbox", value: card, name: `${field.name}_${card}`, "data-field": field.name, "aria-label": `${name(field)}: ${card}`, "aria-describedby": about,
    }));
    this.inputs.set(field.name, {
      put: (text) => {
        const chosen = new Set(text.split(",").map((part) => part.trim()));
        boxes.forEach((box) => { box.checked = chosen.has(box.value); });
      },
      take: () => boxes.filter((box) => box.checked).map((box) => box.value).join(","),
      empty: () => boxes.forEach((box) => { box.checked = false; }),
      all: boxes,
    });
    return h("fieldset.row", null, h("legend", null, name(field)), help,
      h("div.cards", null, boxes.map((box) => h("label.card", null, box, h("span", { "aria-hidden": true }, box.value)))), error);
  }

  #choice(field, about, help, error) {
    const label = newId("choice");
    const chosen = h("select", { id: label, name: field.name, "data-field": field.name, "aria-describedby": about },
      field.blank ? h("option", { value: "" }, "–") : null,
      field.choices.map((choice) => h("option", { value: choice }, choice)));
    this.inputs.set(field.name, {
      put: (text) => { chosen.value = text; }, take: () => chosen.value, empty: () => { chosen.selectedIndex = 0; }, all: [chosen],
    });
    return h("div.row.one", null, h("label", { for: label }, name(field)), help, chosen, error);
  }

  /** Put a state, field name -> text, into the form; not where somebody is writing. */
  put(state) {
    if (this.waiting) return;
    this.clear();
    for (const field of this.table.fields) {
      const input = this.inputs.get(field.name);
      const said = state[field.name] ?? (field.blank || field.default === null ? "" : defaultOf(field, this.table));
      if (input.take() === String(said)) continue;
      input.empty();
      if (said !== "") input.put(String(said));
    }
  }

  /** The state as an address' query; empty fields are left out. */
  query() {
    const pairs = [];
    for (const [field, input] of this.inputs) {
      const said = input.take();
      if (said !== "") pairs.push(`${field}=${encodeURIComponent(said).replaceAll("%2C", ",")}`);
    }
    return pairs.join("&");
  }

  clear() {
    for (const error of [...this.errors.values(), this.wrong]) hide(error);
    for (const input of this.inputs.values()) input.all.forEach((one) => one.removeAttribute("aria-invalid"));
  }

  /** The server's sentence, beside the field that it is about; focus: take the keyboard there. */
  refuse(refused, focus = false) {
    this.clear();
    const named = refused.field ?? [...this.errors.keys()].find((field) => new RegExp(`^(unknown field ')?${field}(_\\d+)?\\b`).test(refused.message));
    const error = this.errors.get(named) ?? this.wrong;
    fill(error, refused.message).hidden = false;
    const input = this.inputs.get(named);
    input?.all.forEach((one) => one.setAttribute("aria-invalid", "true"));
    if (focus && !input?.all.includes(document.activeElement)) input?.all[0].focus();
  }

  /** Bring a part of the drawing's field to the keyboard. */
  focus(column, value) {
    const field = column.replace(/_\d+$/, "");
    const inputs = (this.inputs.get(column) ?? this.inputs.get(field))?.all;
    const input = inputs?.find((one) => one.name === column || one.name === `${column}_${value}`) ?? inputs?.[0];
    input?.focus();
    if (input?.type === "text") input.select();
  }
}

function hide(error) {
  error.hidden = true;
  error.textContent = "";
}

function name(field) {
  return field.label ?? field.name;
}

/** A state that nobody draws, as a table: a row a field, a column a player. seat: who is up. */
export function fieldTable(table, state, seat) {
  const seats = table.fields.some((field) => field.players) ? Array.from({ length: table.players }, (_, i) => i + 1) : [];
  const own = (each) => each === seat ? ".own" : "";
  const cells = (field) => {
    const values = [state[field.name] ?? defaultOf(field, table).split(",")].flat().map((value) => value.toLocaleString("en"));
    if (field.players) return seats.map((each) => h(`td.n${own(each)}`, null, values[each - 1]));
    return h("td.n", { colspan: String(seats.length || 1) }, values.join(", ") || "none");
  };
  const head = (each) => h(`th.n${own(each)}`, { scope: "col" }, player(each, seats.length));
  return h("table.numbers", null,
    seats.length ? h("thead", null, h("tr", null, h("td"), seats.map(head))) : null,
    h("tbody", null, table.fields.map((field) => h("tr", null, h("th", { scope: "row" }, name(field)), cells(field)))));
}

function lengthOf(field, table) {
  return field.players ? field.length ?? table.players : field.length ?? 1;
}

/** What a field is where nobody says it, as an address has it. */
export function defaultOf(field, table) {
  return Array(lengthOf(field, table)).fill(field.default).join(",");
}

const whole = (input) => /^(-?\d+)?$/.test(input.value.trim());

function put(input, text) {
  if (input !== document.activeElement || Number(input.value) !== Number(text) || !whole(input)) input.value = text;
}

/** A slider beside a number of so many values that steps to it are many, and not too many. */
function slider(field, input) {
  const high = Math.min(field.max ?? Infinity, field.held_max ?? Infinity);
  const [low, step] = [field.min ?? 0, field.step ?? 1];
  const steps = (high - low) / step;
  if (steps < FEWEST || steps > MOST) return null;
  const made = h("input", {
    type: "range", min: low, max: high, step, tabindex: "-1", "aria-hidden": "true", "data-field": field.name,
    oninput: () => { input.value = made.value; },
  });
  return made;
}
