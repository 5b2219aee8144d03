// What a game's chart is made for, as one line of text: spins=2 third=1000.
import { fill, h, newId } from "./dom.js";

/** A line to write settings in, a button, and the server's sentence where they are wrong.
 * use(text): they were asked for. */
export class Settings {
  constructor(use) {
    const [id, help] = [newId("settings"), newId("help")];
    this.wrong = h("p.wrong", { id: newId("wrong"), "aria-live": "assertive", hidden: true });
    this.input = h("input", {
      id, name: "settings", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      "aria-describedby": `${help} ${this.wrong.id}` });
    this.element = h("div.row.settings", null, h("label", { for: id }, "settings"),
      h("div.bar", null, this.input, h("button", { type: "submit", onclick: () => use(this.input.value.trim()) }, "Use")),
      h("p.about", { id: help }, "FIELD=VALUE, a space between two; empty for the usual ones"), this.wrong);
  }

  /** Show settings, which nothing is wrong with so far. */
  put(text) {
    this.input.value = text;
    this.wrong.hidden = true;
    this.wrong.textContent = "";
    this.input.removeAttribute("aria-invalid");
  }

  refuse(sentence) {
    fill(this.wrong, sentence).hidden = false;
    this.input.setAttribute("aria-invalid", "true");
  }
}

/** Settings as a question to the server; what is given twice stays so, for it to refuse. */
export function asQuery(text) {
  const words = text.split(/[\s&]+/).filter(Boolean);
  return new URLSearchParams(words.map((word) => {
    const at = word.indexOf("=");
    return at < 0 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
  })).toString();
}
