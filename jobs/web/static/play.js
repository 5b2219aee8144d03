// A game against the optimal player or an agent. The server plays it again from its seed and the
// moves in the address, so back takes a move back, and the game can be sent to a friend.
import * as address from "./address.js";
import * as api from "./api.js";
import { drawing, fill, h, newId, sorry } from "./dom.js";
import { Payoffs, player } from "./format.js";
import { keys } from "./keys.js";

const RANDOM = "random";
let hints = false;

export function leave() {
  keys(null);
}

export async function show(main, asked) {
  const table = asked.data;
  keys(null);
  if (!asked.query.has("seed")) {
    fill(main, begin(table, asked.query));
    return "Play";
  }
  const game = gameOf(table, asked.query);
  let got;
  try {
    got = await api.play(table.id, [queryOf(game), hints && "hints=1"].filter(Boolean).join("&"));
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    if (!asked.current()) return "";
    fill(main, begin(table, asked.query, error.message));
    return "Play";
  }
  if (!asked.current()) return "";
  draw(main, table, { ...game, seat: got.seat }, got, asked.current);
  return got.over ? got.result ?? "The game is over" : "Play";
}

/** What an address says of a game. */
function gameOf(table, query) {
  const state = Object.fromEntries([...query].filter(([name]) => table.fields.some((field) => field.name === name)));
  return {
    seed: query.get("seed"), seat: query.has("seat") ? Number(query.get("seat")) : null, against: query.get("against") ?? null,
    state: Object.keys(state).length ? address.plain(state) : null, moves: query.getAll("move"),
  };
}

/** A game as the parameters of an address, of the page as of the server. */
function queryOf(game) {
  const own = address.plain({ seed: game.seed, seat: game.seat, against: game.against });
  return [own, game.state, ...game.moves.map((move) => address.plain({ move }))].filter(Boolean).join("&");
}

function to(table, game, more = {}) {
  return address.of(table.id, "play", queryOf({ ...game, ...more }));
}

// --- before ---------------------------------------------------------------------------------------

function begin(table, query, wrong = null) {
  const seats = [["", "who decides first"], ...Array.from({ length: table.players }, (_, i) => [i + 1, `player ${i + 1}`])];
  const agents = (table.agents ?? ["optimal", "random"]).map((agent) => (typeof agent === "string" ? [agent, agent] : [agent.name, agent.label ?? agent.name]));
  const starts = [...(table.begins ? [["", "the start"]] : []), [RANDOM, "a random state in which you decide"], ...(table.examples ?? []).map((example) => [address.plain(address.fields(example.state)), example.label])];
  const here = gameOf(table, query);
  if (here.state && !starts.some(([state]) => state === here.state)) starts.unshift([here.state, `the state you came from: ${here.state.replaceAll("&", " ")}`]);
  const seat = table.players > 1 ? row("you are", "seat", seats, here.seat ?? "") : null;
  const against = table.players > 1 ? row("against", "against", agents, here.against ?? "optimal") : null;
  const start = row("from", "start", starts, here.state ?? "");
  const seed = h("input", { type: "text", inputmode: "numeric", name: "seed", id: newId("seed"), value: query.get("seed") ?? Math.floor(Math.random() * 1e6) });
  const wrongs = h("div", null, wrong ? sorry(wrong) : null);
  const form = h("form.begin", {
    "aria-label": "A new game", novalidate: true,
    onsubmit: async (event) => {
      event.preventDefault();
      const chosen = form.elements;
      const [said, own, against] = [chosen.seed.value.trim() || "0", chosen.seat?.value || null, chosen.against?.value ?? null];
      const game = { seed: said, seat: own, against, moves: [], state: chosen.start.value || null };
      if (game.state === RANDOM) {
        try {
          const drawn = await api.train(table.id, address.plain({ seed: said }));
          Object.assign(game, { state: drawn.query, seat: own ?? drawn.seat });
        } catch (error) {
          if (!(error instanceof api.Refused)) throw error;
          return fill(wrongs, sorry(error.message));
        }
      }
      return address.go(to(table, game));
    },
  }, seat, against, start, h("div.row", null, h("label", { for: seed.id }, "seed of the dice"), seed),
  h("label.tick", null, h("input", { type: "checkbox", checked: hints, onchange: (event) => { hints = event.target.checked; } }), " Show what each action is worth"),
  h("div.bar", null, h("button.main", { type: "submit" }, "Begin")));
  return h("div.view.narrow", null, h("h1", { "data-head": true, tabindex: "-1" }, "Play"),
    h("p.lead", null, table.players > 1 ? "You decide for one player; afterwards you see what each decision cost." : "You play alone; afterwards you see what each decision cost."),
    wrongs, form);
}

function row(label, name, items, value) {
  const id = newId(name);
  const chosen = h("select", { id, name }, items.map(([key, text]) => h("option", { value: key }, text)));
  chosen.value = String(value);
  if (chosen.selectedIndex < 0) chosen.selectedIndex = 0;
  return h("div.row", null, h("label", { for: id }, label), chosen);
}

// --- during ---------------------------------------------------------------------------------------

function draw(main, table, game, got, current) {
  const payoffs = new Payoffs(table);
  const seats = got.seats ?? [];
  const others = seats.filter((_, i) => i !== game.seat - 1);
  const log = h("ol.log", { "aria-label": "What happened", tabindex: "0" }, (got.said ?? []).map((line) => h("li", null, line.replaceAll(" -> ", " → "))));
  fill(main, h("div.view", null,
    h("h1", { "data-head": true, tabindex: "-1" }, got.over ? capital(got.result ?? "The game is over") : asks(got)),
    h("p.about", null, `${table.players > 1 ? `You are ${player(game.seat, table.players)}` : "You play alone"}${others.length ? ` against ${others.join(" and ")}` : ""} · seed ${game.seed}`),
    h("div.playing", null,
      h("section", { "aria-label": "The state" }, drawing(got.drawing, got.text ?? "the state"), got.over ? null : hand(table, payoffs, game, got, current)),
      h("section", { "aria-label": "What happened" }, h("h2", null, "So far"), log)),
    got.over ? after(table, payoffs, got) : null,
    h("div.bar.ends", null,
      game.moves.length ? h("a.button", { href: to(table, game, { moves: game.moves.slice(0, -1) }) }, "Take back") : null,
      h("a.button", { href: to(table, game, { moves: [], seed: Math.floor(Math.random() * 1e6) }) }, "Another game"),
      h("a.button", { href: address.of(table.id, "play", [address.plain({ seat: game.seat, against: game.against }), game.state].filter(Boolean).join("&")) }, "Change who plays"))));
  log.scrollTop = log.scrollHeight;
}

function asks(got) {
  return got.ask ? "Your move" : "Nobody asks you";
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A button an action; what it is worth beside it where that was asked for. */
function hand(table, payoffs, game, got, current) {
  if (!got.ask) return null;
  const act = (action) => current() && address.go(to(table, game, { moves: [...game.moves, action] }));
  keys(Object.fromEntries(got.ask.actions.slice(0, 9).map((action, i) => [String(i + 1), [action, () => act(action)]])));
  const worth = new Map((got.ask.hints ?? []).map((hint) => [hint.action, hint]));
  return h("div.hand", null,
    h("ul.moves", { "aria-label": "Your actions" }, got.ask.actions.map((action, i) => h("li", null,
      h("button.main.move", { type: "button", onclick: () => act(action) }, i < 9 ? h("kbd", { "aria-hidden": true }, String(i + 1)) : null, action),
      worth.has(action) ? hinted(payoffs, worth.get(action)) : null))),
    h("button", {
      type: "button", "aria-pressed": hints ? "true" : "false",
      onclick: () => {
        hints = !hints;
        address.go(location.hash, [], true);
      },
    }, hints ? "Hide what they are worth" : "Show what they are worth"));
}

function hinted(payoffs, hint) {
  return h("span.hinted", null, hint.value === null || hint.value === undefined ? null : payoffs.show(hint.value), hint.chance === undefined ? null : ` chance ${hint.chance.toFixed(3)}`,
    " ", hint.cost > 0 ? `costs ${payoffs.size(hint.cost)}` : h("span.badge.good", null, "best"));
}

// --- afterwards -----------------------------------------------------------------------------------

function after(table, payoffs, got) {
  const decisions = got.decisions ?? [];
  if (!decisions.length) return h("section", { "aria-label": "Your decisions" }, h("p.lead", null, "Nothing was yours to decide."));
  const wrong = decisions.filter((decision) => decision.cost > 0);
  const total = got.cost ?? wrong.reduce((sum, decision) => sum + decision.cost, 0);
  const head = wrong.length ? `${wrong.length} of ${decisions.length} not the best; they cost ${payoffs.size(total)} in all.` : `No mistake in ${decisions.length} decision${decisions.length > 1 ? "s" : ""}.`;
  const most = Math.max(...decisions.map((decision) => decision.cost), 1e-12);
  return h("section", { "aria-label": "Your decisions" }, h("h2", null, "What your decisions cost"), h("p.lead", null, head),
    h("div.scroll", null, h("table.decisions", null,
      h("thead", null, h("tr", null, ["state", "you", "best"].map((name) => h("th", { scope: "col" }, name)), h("th.n", { scope: "col" }, "cost"))),
      h("tbody", null, decisions.map((decision) => h("tr", null,
        h("th", { scope: "row" }, decision.query ? h("a", { href: address.of(table.id, "state", decision.query) }, decision.text) : decision.text),
        h("td", null, decision.action), h("td", null, decision.best), h("td.n", null, decision.cost > 0 ? costly(payoffs, decision.cost, most) : "none")))))));
}

function costly(payoffs, cost, most) {
  const piece = h("span.worse");
  piece.style.setProperty("--long", String(cost / most));
  return h("span.costly", null, h("span.track", { "aria-hidden": true }, piece), payoffs.size(cost));
}
