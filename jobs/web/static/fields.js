// A state's fields as a form: every number in place, a set as cards to turn over.
import { fill, h, newId } from "./dom.js";
import { player } from "./format.js";

/** The form of a table's fields; `onlook(query)` is asked when a person wants the state. */
export class StateForm {
  constructor(table, onlook, word = "Show this state") {
    this.table = table;
    this.onlook = onlook;
    this.inputs = new Map();
    this.errors = new Map();
    this.button = h("button.main", { type: "submit" }, word);
    this.wrong = h("p.wrong", { id: newId("wrong"), "aria-live": "assertive", hidden: true });
    this.element = h("form.fields", { novalidate: true, autocomplete: "off", "aria-label": "The state" });
    this.element.append(...table.fields.map((field) => this.#row(field)), this.wrong, h("div.bar", null, this.button));
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.clear();
      this.onlook(this.query());
    });
    this.element.addEventListener("input", () => this.button.classList.add("fresh"));
  }

  #row(field) {
    const error = h("p.wrong", { id: newId("wrong"), "aria-live": "assertive", hidden: true });
    this.errors.set(field.name, error);
    if (field.kind === "set") return this.#set(field, error);
    if (field.kind === "choice") return this.#choice(field, error);
    return this.#numbers(field, error);
  }

  #numbers(field, error) {
    const length = lengthOf(field, this.table);
    const inputs = Array.from({ length }, (_, i) => {
      const label = length === 1 ? name(field) : `${name(field)}, ${field.players ? player(i + 1, length) : i + 1}`;
      return h("input", {
        type: "text", inputmode: "numeric", "aria-label": label, "aria-describedby": error.id,
        name: length === 1 ? field.name : `${field.name}_${i + 1}`,
        onkeydown: (event) => step(event, field),
      });
    });
    this.inputs.set(field.name, {
      put: (text) => text.split(",").forEach((part, i) => inputs[i] && (inputs[i].value = part)),
      take: () => {
        const parts = inputs.map((input) => input.value.trim());
        while (parts.length && parts.at(-1) === "") parts.pop();
        return parts.join(",");
      },
      empty: () => inputs.forEach((input) => { input.value = ""; }),
      all: inputs,
    });
    return h(`fieldset.row${length === 1 ? ".one" : ""}`, null, h("legend", null, name(field)),
      h("div.numbers", null, inputs.map((input, i) => (length === 1 ? input : h("span.of", null, h("span.who", { "aria-hidden": true }, i + 1), input)))),
      error);
  }

  #set(field, error) {
    const boxes = field.choices.map((card) => h("input", {
      type: "checkbox", value: card, name: `${field.name}_${card}`, "aria-label": `${name(field)}: ${card}`, "aria-describedby": error.id,
    }));
    this.inputs.set(field.name, {
      put: (text) => {
        const held = new Set(text.split(",").map((part) => part.trim()));
        boxes.forEach((box) => { box.checked = held.has(box.value); });
      },
      take: () => boxes.filter((box) => box.checked).map((box) => box.value).join(","),
      empty: () => boxes.forEach((box) => { box.checked = false; }),
      all: boxes,
    });
    return h("fieldset.row", null, h("legend", null, name(field)),
      h("div.cards", null, boxes.map((box) => h("label.card", null, box, h("span", { "aria-hidden": true }, box.value)))), error);
  }

  #choice(field, error) {
    const label = newId("choice");
    const chosen = h("select", { id: label, name: field.name, "aria-describedby": error.id },
      field.blank ? h("option", { value: "" }, "–") : null,
      field.choices.map((choice) => h("option", { value: choice }, choice)));
    this.inputs.set(field.name, {
      put: (text) => { chosen.value = text; }, take: () => chosen.value, empty: () => { chosen.selectedIndex = 0; }, all: [chosen],
    });
    return h("div.row.one", null, h("label", { for: label }, name(field)), chosen, error);
  }

  /** Put a state, field name -> text, into the form. */
  put(state) {
    this.clear();
    for (const field of this.table.fields) {
      const input = this.inputs.get(field.name);
      input.empty();
      const said = state[field.name] ?? (field.blank || field.default === null ? "" : Array(lengthOf(field, this.table)).fill(field.default).join(","));
      if (said !== "") input.put(String(said));
    }
    this.button.classList.remove("fresh");
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

  /** The server's sentence, beside the field that it is about. */
  refuse(refused) {
    this.clear();
    const named = refused.field ?? [...this.errors.keys()].find((field) => new RegExp(`^(unknown field ')?${field}(_\\d+)?\\b`).test(refused.message));
    const error = this.errors.get(named) ?? this.wrong;
    fill(error, refused.message).hidden = false;
    const input = this.inputs.get(named);
    input?.all.forEach((one) => one.setAttribute("aria-invalid", "true"));
    input?.all[0].focus();
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

function lengthOf(field, table) {
  return field.players ? field.length ?? table.players : field.length ?? 1;
}

/** Arrow keys change a number by its field's step. */
function step(event, field) {
  const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  const input = event.target;
  if (!way || event.altKey || !/^\d*$/.test(input.value.trim())) return;
  event.preventDefault();
  const next = Number(input.value || 0) + way * (field.step ?? 1);
  input.value = String(Math.min(Math.max(next, field.min ?? 0), field.max ?? Infinity));
  input.dispatchEvent(new Event("input", { bubbles: true }));
}
