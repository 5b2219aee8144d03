// Train: a decision drawn from the table, of a chosen difficulty. The person decides, is told what
// it cost and why, and a score is kept for as long as the browser's tab is open.
import * as address from "./address.js";
import * as api from "./api.js";
import { drawing, fill, h, newId, say, sorry } from "./dom.js";
import { fieldTable } from "./fields.js";
import { capital, Payoffs } from "./format.js";
import { keys } from "./keys.js";

const DIFFICULTIES = { any: "any", easy: "easy", medium: "medium", hard: "hard" };
const KEPT = 500;

export function leave() {
  keys(null);
}

export async function show(main, asked) {
  const table = asked.data;
  const difficulty = asked.query.get("difficulty") ?? "any";
  const seed = asked.query.get("seed");
  if (seed === null) { // every decision has an address of its own, so back goes back
    history.replaceState(history.state, "", to(table, difficulty));
    return show(main, { ...asked, query: new URLSearchParams(location.hash.split("?")[1]) });
  }
  let got = null;
  let wrong = null;
  try {
    got = await api.train(table.id, address.plain({ difficulty, seed }));
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    wrong = error.message;
  }
  if (!asked.current()) return "";
  const next = () => asked.current() && address.go(to(table, difficulty));
  const score = h("div.score", { "aria-label": "Your score", role: "group" });
  const view = { table, got, difficulty, next, score, name: `${difficulty} ${seed}`, asked };
  fill(main, h("div.view", null, got ? null : head("Train"), h("div.chosen", null, choice(view), score), wrong ? none(view, wrong) : null, got ? h("div.playing") : null));
  if (got) ask(view, main.querySelector(".playing"));
  else keys({ n: ["another one", next] });
  tally(view);
  return "Train";
}

function to(table, difficulty) {
  return address.of(table.id, "train", { difficulty, seed: Math.floor(Math.random() * 2 ** 32) });
}

function head(text) {
  return h("h1", { "data-head": true, tabindex: "-1" }, text);
}

function none(view, wrong) {
  return sorry(capital(wrong), h("p", null, h("button", { type: "button", onclick: view.next }, "Try another draw")));
}

/** How difficult a decision is wished. */
function choice({ table, difficulty }) {
  const id = newId("difficulty");
  return h("div.difficulty", { role: "group", "aria-labelledby": id },
    h("span.about", { id }, "Difficulty"),
    Object.entries(DIFFICULTIES).map(([key, word]) => h("button", {
      type: "button", "aria-pressed": key === difficulty ? "true" : "false", onclick: () => address.go(to(table, key)),
    }, word)));
}

// --- the decision ---------------------------------------------------------------------------------

function ask(view, place) {
  const { table, got, next } = view;
  const taken = decisions(table.id).find((each) => each.name === view.name)?.action;
  const buttons = got.choices.map((each, i) => h("li", null,
    h("button.main.move", { type: "button", onclick: () => decide(each.action) }, i < 9 ? h("kbd", { "aria-hidden": true }, String(i + 1)) : null, each.action)));
  const answer = h("section", { "aria-label": "Your decision" });
  const who = table.players > 1 ? `You are player ${got.seat}.` : "";
  fill(place, h("section", { "aria-label": "The state" }, drawing(got.drawing, got.text) ?? fieldTable(table, got.state, got.seat), h("p.source", null, got.text)), answer);

  function decide(action) {
    if (!view.asked.current() || !got.choices.some((each) => each.action === action)) return;
    record(view, got.choices.find((each) => each.action === action));
    told(action, true);
  }

  function told(action, fresh) {
    const chosen = got.choices.find((each) => each.action === action);
    const button = h("button.main.move", { type: "button", onclick: next }, h("kbd", { "aria-hidden": true }, "n"), "Next");
    fill(answer, verdict(view, chosen), h("div.bar", null, button, h("a.button", { href: address.of(table.id, "state", got.query) }, "Look closer")));
    keys({ n: ["the next one", next] });
    tally(view);
    if (!fresh) return;
    button.focus({ preventScroll: true });
    say(answer.querySelector("h1").textContent);
  }

  if (taken !== undefined && got.choices.some((each) => each.action === taken)) return told(taken, false);
  fill(answer, head("What do you do?"), h("p.lead", null, who, ` ${goal(table, got)}`),
    h("ul.moves", { "aria-label": "Your actions" }, buttons));
  keys(Object.fromEntries(got.choices.slice(0, 9).map((each, i) => [String(i + 1), [each.action, () => decide(each.action)]])));
  return null;
}

/** What a payoff is. */
function goal(table, got) {
  const both = got.strategies ? "Both choose at once, and the other plays an optimal strategy. " : "";
  return `${both}A mistake costs ${got.difficulty === "easy" ? "a lot" : got.difficulty === "medium" ? "a little" : "next to nothing"} of ${/dollars/.test(table.payoff_name) ? "what you may win" : `your ${table.payoff_name.replace("expected ", "")}`}.`;
}

/** What the decision cost, what each action is worth, and why. */
function verdict({ table, got }, chosen) {
  const payoffs = new Payoffs(table);
  const best = got.choices.filter((each) => each.best).map((each) => each.action);
  const line = chosen.best ? `Right: ${chosen.action}` : `${capital(chosen.action)} costs ${payoffs.size(chosen.cost)}`;
  const order = [...got.choices].sort((a, b) => a.cost - b.cost);
  const chances = order.some((each) => each.chance !== undefined);
  return [
    head(line),
    h("p.lead", null, chosen.best
      ? best.length > 1 ? `As good: ${best.filter((each) => each !== chosen.action).join(", ")}.` : `The next best costs ${payoffs.size(got.margin)}.`
      : `Best: ${best.join(" or ")}.`),
    h("div.why", null, got.why.map((sentence) => h("p", null, sentence))),
    h("table.decisions", null, h("caption.unseen", null, "What each action is worth"),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "action"), h("th.n", { scope: "col" }, table.payoff_name), chances ? h("th.n", { scope: "col" }, "drawn with") : null, h("th.n", { scope: "col" }, "costs"))),
      h("tbody", null, order.map((each) => h("tr", { "aria-current": each === chosen ? "true" : null },
        h("th", { scope: "row" }, each.action, each === chosen ? h("span.badge", { class: `badge ${each.best ? "good" : "old"}` }, "you") : null),
        h("td.n", null, payoffs.show(each.value)), chances ? h("td.n", null, `${(100 * each.chance).toFixed(1)}%`) : null,
        h("td.n", null, each.cost ? payoffs.size(each.cost) : "–"))))),
  ];
}

// --- the score ------------------------------------------------------------------------------------

const key = (id) => `luckbase train ${id}`;

/** What was decided with a table in this tab. */
function decisions(id) {
  try {
    return JSON.parse(sessionStorage.getItem(key(id))) ?? [];
  } catch {
    return [];
  }
}

function record({ table, name }, { action, cost, best }) {
  const all = [...decisions(table.id).filter((each) => each.name !== name), { name, action, cost, best }];
  keep(table.id, all.slice(-KEPT));
}

function keep(id, all) {
  try {
    sessionStorage.setItem(key(id), JSON.stringify(all));
  } catch { /* a browser that keeps nothing */ }
}

function tally({ table, score }) {
  const payoffs = new Payoffs(table);
  const all = decisions(table.id);
  if (!all.length) return fill(score);
  const right = all.filter((each) => each.best).length;
  const cost = all.reduce((sum, each) => sum + each.cost, 0);
  const part = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));
  return fill(score, h("dl.facts", null,
    part(all.length === 1 ? "decision" : "decisions", String(all.length)), part("right", `${Math.round((100 * right) / all.length)}%`),
    part("cost in all", cost ? payoffs.size(cost) : "nothing"), part("cost of one", cost ? payoffs.size(cost / all.length) : "nothing")),
  h("button", { type: "button", onclick: () => { keep(table.id, []); tally({ table, score }); document.getElementById("main").focus(); } }, "Start again"));
}
