// What a game's chart is made for, as inputs: one for each setting that the chart takes.
import * as address from "./address.js";
import { fill, h, newId } from "./dom.js";

const PATIENCE = 500;

/** The inputs of a chart, and the server's sentence beside the one that is wrong.
 * kind: the chart, as the table lists it; names: settings that the address has; use(settings): they
 * were changed. A chart that does not say what it takes has a line for all of it. */
export class Settings {
  constructor(kind, names, use) {
    const known = kind.takes ?? [];
    const others = names.filter((name) => !known.some((each) => each.name === name));
    this.rows = new Map();
    this.waiting = 0;
    this.kind = kind;
    this.use = use;
    const fields = kind.takes === null ? [{ name: ANY, help: "FIELD=VALUE, a space between two; empty for the usual ones." }]
      : [...known, ...others.map((name) => ({ name, help: "" }))];
    this.wrong = h("p.wrong", { "aria-live": "assertive", hidden: true });
    this.element = h("div.settings", null, fields.map((field) => this.#row(field)), this.wrong);
    this.element.hidden = !fields.length;
  }

  #row({ name, help }) {
    const [id, about] = [newId("setting"), newId("help")];
    const wrong = h("p.wrong", { id: newId("wrong"), "aria-live": "assertive", hidden: true });
    const input = h("input", {
      id, name, type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      "aria-describedby": `${about} ${wrong.id}`,
      oninput: () => this.changed(PATIENCE), onchange: () => this.changed(0),
    });
    this.rows.set(name, { input, wrong });
    return h("div.row", null, h("label", { for: id }, name.replaceAll("_", " ")), input, wrong, help ? h("p.about", { id: about }, help) : null);
  }

  changed(patience) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.use(this.#read()), patience);
  }

  #read() {
    const found = Object.fromEntries([...this.rows].map(([name, { input }]) => [name, input.value.trim()]).filter(([, value]) => value));
    if (this.kind.takes === null) Object.assign(found, fromText(found[ANY] ?? ""), { [ANY]: null });
    return found;
  }

  /** Show settings, which nothing is wrong with so far; not under the fingers. */
  put(settings) {
    const said = this.kind.takes === null ? { [ANY]: Object.entries(settings).map((pair) => pair.join("=")).join(" ") } : settings;
    for (const [name, { input, wrong }] of this.rows) {
      if (input !== document.activeElement) input.value = said[name] ?? "";
      input.removeAttribute("aria-invalid");
      hide(wrong);
    }
    hide(this.wrong);
  }

  refuse(sentence) {
    const name = [...this.rows.keys()].find((each) => sentence.startsWith(`${each}:`)) ?? (this.rows.size === 1 ? [...this.rows.keys()][0] : null);
    const row = this.rows.get(name);
    fill(row?.wrong ?? this.wrong, sentence).hidden = false;
    row?.input.setAttribute("aria-invalid", "true");
    this.element.hidden = false;
  }
}

/** The name of the line for whatever a chart takes. */
const ANY = "settings";

function hide(sentence) {
  sentence.hidden = true;
  sentence.textContent = "";
}

/** Settings as one types them, a space between two. */
export function fromText(text) {
  return address.fields(text.split(/[\s&]+/).filter(Boolean).join("&"));
}
