// What a table says of a state: who is up, actions best first, outcomes, strategies, the main line.
import { fill, h, newId, sorry } from "./dom.js";
import { exportBar } from "./export.js";
import { bound, capital, Payoffs, percent, player } from "./format.js";

const FEW = 24;
const view = { player: null };

/** Who is up and what is best, in a line. */
export function headline(table, answer) {
  const who = answer.to_act === null ? "" : player(answer.to_act, table.players);
  if (answer.over) return "The game is over";
  if (answer.strategies) return "Both choose at once";
  if (answer.to_act === null || !answer.actions?.length) return "Chance decides";
  const name = who === "you" ? "You are up" : `${capital(who)} is up`;
  if (answer.actions.length === 1) return `${name} and must ${answer.actions[0].action}`;
  return answer.best ? `${name}: ${answer.best}` : `${name}: not decided`;
}

/** Who is up, what is best and why, who gets what. note: an element of what should be known
 * first, or null. */
export function verdictParts(table, answer, note) {
  const payoffs = new Payoffs(table);
  return [
    h("h1", { "data-head": true, tabindex: "-1" }, headline(table, answer)),
    note,
    under(payoffs, answer),
    split(table, payoffs, answer),
    answer.why?.length ? h("div.why", null, answer.why.map((sentence) => h("p", null, sentence))) : null,
  ];
}

/** What every action and every outcome is worth. ways: where clicks lead to (`explorer.show`). */
export function answerParts(table, answer, ways) {
  const payoffs = new Payoffs(table);
  const chosen = (answer.actions ?? []).find((action) => action.action === ways.chosen) ?? null;
  const shown = chosen ?? (answer.strategies ? null : answer.actions?.find((action) => action.outcomes));
  const outcomes = !shown ? answer.outcomes : answer.strategies ? met(answer, shown) : shown.outcomes;
  return [
    answer.strategies ? [strategies(table, answer), pairs(table, payoffs, answer, ways)] : null,
    answer.actions?.length > 1 || answer.actions?.[0]?.next ? actionTable(table, payoffs, answer, ways, shown) : null,
    outcomes?.length ? outcomeSection(table, payoffs, answer, ways, shown, outcomes) : null,
    answer.over ? null : mainLine(table, payoffs, ways),
    h("p.source", null, known(answer)),
    exportBar({
      name: `${table.game}-${table.board}`, title: headline(table, answer), about: answer.text ?? "",
      picture: answer.drawing ? () => document.querySelector(".board .drawing svg") : null,
      rows: () => rowsOf(answer, shown, outcomes ?? []),
    }),
  ];
}

/** The numbers of an answer, to take along: the state, every action, every outcome of the one that is shown. */
function rowsOf(answer, shown, outcomes) {
  const players = answer.value.map((_, i) => `payoff_${i + 1}`);
  return [["what", "name", "chance", ...players, "cost"],
    ["state", answer.text, "", ...answer.value, ""],
    ...(answer.actions ?? []).map((action) => ["action", action.action, "", ...(action.value ?? []), action.cost ?? ""]),
    ...outcomes.map((outcome) => [shown ? `outcome of ${shown.action}` : "outcome", outcome.name, outcome.chance, ...(outcome.value ?? players.map(() => "")), ""])];
}

function known(answer) {
  const error = answer.error ? `Each within ${bound(answer.error)}, from the ${answer.source}.` : `From the ${answer.source}.`;
  return `${error} ${answer.text ?? ""}`;
}

function under(payoffs, answer) {
  const parts = [];
  if (answer.toss_up) {
    parts.push(h("span.badge.toss", null, "toss-up"), answer.strategies ? " Other strategies are optimal too. " : " Another action is worth as much. ");
  } else if (answer.margin !== null && answer.margin !== undefined && answer.best) {
    parts.push("Better than the next by ", h("strong.n", null, payoffs.size(answer.margin)), ".");
  }
  return parts.length ? h("p.lead", null, parts) : null;
}

// --- who gets what --------------------------------------------------------------------------------

/** The payoff of each player, and where they are chances, a bar that they share. */
function split(table, payoffs, answer) {
  const items = answer.value.map((value, i) => h(`li.p${i + 1}`, null,
    table.players === 1 ? null : h("span.who", null, capital(player(i + 1, table.players))),
    h("span.big.n", null, payoffs.show(value))));
  return h("div.split", { role: "group", "aria-label": capital(payoffs.name) },
    h("p.what", { "aria-hidden": true }, capital(payoffs.name)),
    payoffs.chance ? bar(answer.value) : null, h("ul.shares", null, items));
}

function bar(value) {
  return h("div.shared", { "aria-hidden": true }, value.map((part, i) => {
    const piece = h(`span.p${i + 1}`);
    piece.style.setProperty("--share", String(Math.max(part, 0)));
    return piece;
  }));
}

// --- actions --------------------------------------------------------------------------------------

function actionTable(table, payoffs, answer, ways, shown) {
  const costs = answer.actions.length > 1 && !answer.strategies;
  const players = answer.value.map((_, i) => i);
  const head = h("tr", null, h("th", { scope: "col" }, "action"),
    payoffs.chance && table.players > 1 ? h("td.bars") : null,
    players.map((i) => h("th.n", { scope: "col" }, table.players === 1 ? payoffs.name : [h("span.long", null, "player "), i + 1])),
    costs ? h("th.n", { scope: "col" }, "costs") : null);
  const rows = answer.actions.map((action) => h("tr", { class: action === shown ? "shown" : null },
    h("th", { scope: "row" }, way(action, ways, action === shown)),
    payoffs.chance && table.players > 1 ? h("td.bars", null, bar(action.value)) : null,
    players.map((i) => h(`td.n${i + 1 === answer.to_act ? ".own" : ""}`, null, payoffs.show(action.value[i]))),
    costs ? h("td.n", null, cost(payoffs, answer, action)) : null));
  const title = answer.strategies ? "Player 1’s choices against the other’s strategy" : "Actions";
  return h("section", { "aria-label": title }, h("h2", null, title),
    h("div.scroll", null, h(`table.actions${costs ? ".priced" : ""}`, null, h("thead", null, head), h("tbody", null, rows))));
}

/** An action as what one clicks: to the state it leads to, or to what chance does after it. */
function way(action, ways, shown) {
  if (action.next) return link(action.action, action.next.query, ways, action.action, "a.act.button");
  if (!action.outcomes) return h("span", null, action.action);
  return h("button.act", { type: "button", "data-key": action.action, "aria-pressed": shown ? "true" : "false", onclick: () => ways.choose(action.action) }, action.action);
}

function link(text, query, ways, label, kind = "a") {
  return h(kind, {
    href: ways.href(query),
    onclick: (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      ways.step(query, label);
    },
  }, text);
}

function cost(payoffs, answer, action) {
  const best = action.best ?? action.action === answer.best;
  if (best) return h("span.badge.good", null, "best");
  if (action.toss_up) return h("span.badge.toss", null, "toss-up");
  const own = answer.to_act === null ? 0 : answer.to_act - 1;
  return payoffs.size(action.cost ?? answer.actions[0].value[own] - action.value[own]);
}

// --- what chance does -----------------------------------------------------------------------------

function outcomeSection(table, payoffs, answer, ways, action, outcomes) {
  const section = h("section");
  const title = action ? `What ${action.action} can bring` : "What can happen";
  section.setAttribute("aria-label", title);
  const draw = () => {
    const seen = view.player ?? answer.to_act ?? 1;
    const who = Math.min(seen, table.players) - 1;
    const before = (action ? action.value : answer.value)[who];
    fill(section, h("div.between", null, h("h2", null, title), seenBy(table, who, draw)),
      outcomeTable(table, payoffs, ways, action, outcomes, who, before));
  };
  draw();
  return section;
}

function seenBy(table, who, draw) {
  if (table.players < 2) return null;
  const name = newId("seen");
  return h("fieldset.choice", null, h("legend", null, "seen by"), answerPlayers(table).map((number) => h("label", null,
    h("input", {
      type: "radio", name, value: number, checked: number === who + 1,
      onchange: () => {
        view.player = number;
        draw();
        document.querySelector(`fieldset.choice input[value="${number}"]`)?.focus();
      },
    }), h("span", null, h("span.long", null, "player "), number))));
}

function answerPlayers(table) {
  return Array.from({ length: table.players }, (_, i) => i + 1);
}

function outcomeTable(table, payoffs, ways, action, outcomes, who, before) {
  const paid = outcomes.some((outcome) => rewardOf(outcome, who));
  const after = (outcome) => (outcome.value ? outcome.value[who] + rewardOf(outcome, who) : before);
  const most = Math.max(...outcomes.map((outcome) => Math.abs(after(outcome) - before)), 1e-12);
  const body = h("tbody");
  const short = shortened(outcomes);
  const put = (all) => fill(body, (all ? outcomes : outcomes.slice(0, FEW)).map((outcome) => h("tr", null,
    h("th", { scope: "row" }, link(short(outcome), outcome.query, ways, arrows(action ? `${action.action}: ${outcome.name}` : outcome.name)), outcome.over ? h("span.end", null, " the end") : null),
    h("td.n", { title: outcome.cases ? `${outcome.weight} of ${outcome.cases}` : null }, percent(outcome.chance)),
    paid ? h("td.n", null, payoffs.paid(rewardOf(outcome, who))) : null,
    h("td.n", null, outcome.value ? payoffs.show(outcome.value[who]) : "not known"),
    h("td.swing", null, outcome.value ? swing(payoffs, after(outcome) - before, most) : null))));
  put(outcomes.length <= FEW);
  const more = outcomes.length > FEW ? h("button", { type: "button", onclick: (event) => { event.target.remove(); put(true); } }, `Show all ${outcomes.length}`) : null;
  const note = table.outcome_note ? h("p.about", null, table.outcome_note) : null;
  return h("div.scroll", null, note, h(`table.outcomes${paid ? ".paid" : ""}`, null,
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "what happens"), h("th.n", { scope: "col" }, "chance"),
      paid ? h("th.n", { scope: "col" }, "pays") : null,
      h("th.n", { scope: "col" }, "then"), h("th.swing", { scope: "col" }, `against ${payoffs.text(before)}`))),
    body), more);
}

/** What a choice of player 1 meets: the other's choices, with their chances in his strategy. */
export function met(answer, action) {
  const [mine, theirs] = answer.strategies;
  return answer.outcomes.filter(({ pair }) => mine[pair[0]].action === action.action)
    .map((outcome) => ({ ...outcome, chance: theirs[outcome.pair[1]].chance * outcome.weight, cases: null }))
    .sort((a, b) => b.chance - a.chance);
}

/** The names of outcomes, without the player where it is always the same. */
function shortened(outcomes) {
  const who = /^player \d+: /.exec(outcomes[0]?.name)?.[0];
  const same = who && outcomes.every((outcome) => outcome.name.startsWith(who) && !outcome.name.includes("; "));
  return (outcome) => arrows(same ? outcome.name.slice(who.length) : outcome.name);
}

function arrows(text) {
  return text.replaceAll(" -> ", " → ");
}

function rewardOf(outcome, who) {
  return Array.isArray(outcome.reward) ? outcome.reward[who] ?? 0 : outcome.reward ?? 0;
}

/** A bar from the middle: better to the right, worse to the left. */
function swing(payoffs, change, most) {
  const near = Math.abs(change) < 1e-12;
  const piece = h(`span.${change < 0 ? "worse" : "better"}`);
  piece.style.setProperty("--long", String(near ? 0 : Math.abs(change) / most));
  return h("div.swinging", null, h("span.track", { "aria-hidden": true }, piece), h("span.n", null, near ? "±0" : payoffs.change(change)));
}

// --- both choose at once --------------------------------------------------------------------------

function strategies(table, answer) {
  const sure = answer.strategies.flat().every((bid) => bid.most - bid.least < 1e-4);
  return h("section", { "aria-label": "Optimal strategies" }, h("h2", null, "An optimal strategy of each"),
    h("p.about", null, sure ? "Each is the only one." : "The line beside a bar is what every other optimal strategy can give it."),
    h("div.sides", null, answer.strategies.map((side, i) => {
      const bids = side.filter((bid) => bid.chance > 1e-9 || bid.most > 1e-4);
      const never = side.length - bids.length;
      return h("div", null, h("h3", null, `Player ${i + 1}`), h("table.strategy", null,
        h("tbody", null, bids.map((bid) => h("tr", null, h("th", { scope: "row" }, bid.action), h("td.mix", null, mix(bid, i)),
          h("td.n", null, data(bid.chance), unsure(bid) ? h("span.span", null, `${percent(bid.least)} – ${percent(bid.most)}`) : null))))),
        never ? h("p.about", null, `${never} other choice${never > 1 ? "s" : ""}: never`) : null);
    })));
}

/** What each pair of choices pays, drawn by a module that other games do not need. */
function pairs(table, payoffs, answer, ways) {
  const place = h("section", { "aria-label": "What each pair of choices pays" });
  import("./matrix.js").then(({ matrix }) => fill(place, matrix(table, payoffs, answer, ways.href)));
  return place;
}

function unsure(bid) {
  return bid.most - bid.least >= 1e-4;
}

function data(chance) {
  const made = h("data", { value: String(chance) });
  made.textContent = percent(chance);
  return made;
}

function mix(bid, side) {
  const made = h(`div.mixed.p${side + 1}`, { "aria-hidden": true }, h("span.chance"), unsure(bid) ? h("span.range") : null);
  made.style.setProperty("--chance", String(bid.chance));
  made.style.setProperty("--least", String(bid.least));
  made.style.setProperty("--most", String(bid.most));
  return made;
}

// --- the main line --------------------------------------------------------------------------------

/** The best action and the likeliest outcome, again and again; asked for when it is opened. */
function mainLine(table, payoffs, ways) {
  const list = h("div", { "aria-live": "polite" });
  return h("details.mainline", {
    ontoggle: async (event) => {
      if (!event.target.open || list.childElementCount) return;
      fill(list, h("p.loading", null, "Looking ahead …"));
      try {
        const { line } = await ways.mainline();
        fill(list, line.length ? h("ol", null, line.map((step) => lineStep(table, payoffs, ways, step))) : h("p", null, "The game is over here."));
      } catch (error) {
        fill(list, sorry(error.message));
      }
    },
  }, h("summary", null, "Main line: the best action and the likeliest outcome, to the end"), list);
}

function lineStep(table, payoffs, ways, step) {
  const who = step.to_act ? `${capital(player(step.to_act, table.players))}: ` : "";
  const what = arrows([step.action, step.outcome].filter(Boolean).join(", then ")) || "the end";
  return h("li", null, link(`${who}${what}`, step.query, ways, "main line"),
    h("span.values.n", null, (step.value ?? []).map((value) => h("span", null, payoffs.text(value)))));
}
