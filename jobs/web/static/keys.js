// Keys of a view: a letter or a digit does what a button does, but not where somebody writes.
import { fill, h } from "./dom.js";

const NOT_THERE = "input:not([type=range], [type=checkbox], [type=radio]), select, textarea, [role=application]";
let [current, on] = [{}, true];

/** The keys of a view: {key: [what it does, act()]}; null: none any more. */
export function keys(given) {
  current = given ?? {};
  const line = document.getElementById("keys");
  line.hidden = !given;
  if (!given) return;
  const box = h("input", { type: "checkbox", checked: on, onchange: () => { on = box.checked; } });
  fill(line, h("summary", null, "Keys"),
    h("label.tick", null, box, " Letters and digits are keys"),
    h("dl", null, Object.entries(given).map(([key, [does]]) => h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, does)))));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(NOT_THERE) || !on) return;
  const [, act] = current[event.key] ?? [];
  if (!act) return;
  event.preventDefault();
  act();
});
