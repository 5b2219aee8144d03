// Where both choose at once: what each pair of choices pays, as a heat map, with the strategy of
// each player as bars on its edges.
import { apart, scaleOf, span } from "./colours.js";
import { h } from "./dom.js";
import { exportBar } from "./export.js";
import { percent, capital } from "./format.js";
import { HeatMap } from "./heatmap.js";

/** The payoff matrix of an answer with strategies; null where the table does not know it all.
 * href(query): the address of a state. */
export function matrix(table, payoffs, answer, href) {
  const [mine, theirs] = answer.strategies;
  const pair = (i, j) => answer.outcomes.filter((way) => way.pair[0] === j && way.pair[1] === i);
  const paid = (ways) => (ways.every((way) => way.value) ? ways.reduce((sum, way) => sum + way.weight * (way.value[0] + way.reward[0]), 0) : null);
  const cells = theirs.map((_, i) => mine.map((__, j) => paid(pair(i, j))));
  if (cells.flat().every((value) => value === null)) return null;
  const middle = answer.value[0];
  const most = Math.max(...span(cells).map((value) => Math.abs(value - middle))) || 1e-12;
  const scale = scaleOf(apart, [middle - most, middle + most], (value) => payoffs.text(value));
  const data = {
    x: axisOf("player 2", theirs), y: axisOf("player 1", mine), cells, name: `${payoffs.name} of player 1`,
    names: ["player 2", "player 1", "payoff of player 1"], text: (i, j) => (cells[i][j] === null ? "" : payoffs.text(cells[i][j])),
    written: (i, j, decimals) => brief(payoffs, cells[i][j], decimals),
    margins: { x: theirs.map((bid) => bid.chance), y: mine.map((bid) => bid.chance) },
  };
  const tell = (i, j) => {
    const value = cells[i][j];
    if (value === null) return `Player 1: ${mine[j].action}, player 2: ${theirs[i].action}. What it pays is not known.`;
    const apartBy = value - middle;
    const than = Math.abs(apartBy) < 1e-9 ? "as much as this state" : `${payoffs.size(apartBy)} ${apartBy > 0 ? "more" : "less"} than this state`;
    return `Player 1: ${mine[j].action}, player 2: ${theirs[i].action}. ${capital(data.name)} ${payoffs.text(value)}, ${than}. They choose so ${percent(mine[j].chance * theirs[i].chance)} of the time.`;
  };
  const title = "What each pair of choices pays player 1";
  const about = `Blue is better for player 1 than this state, ${payoffs.text(middle)}; orange is worse. The bars say how often, in percent, each choice is made.`;
  const map = new HeatMap(data, {
    scale, tell, caption: title, what: "choices", colour: (i, j) => (cells[i][j] === null ? null : scale.colour(cells[i][j])),
    href: (i, j) => (pair(i, j).length === 1 && !pair(i, j)[0].over ? href(pair(i, j)[0].query) : null),
  });
  return [h("h2", null, title), h("p.about", null, about), scale.legend, map.element,
    exportBar({ name: `${table.game}-choices`, title, about: answer.text ?? "", ...map.kept })];
}

/** The choices of a player as an axis: what all their names begin with is said once. */
function axisOf(who, bids) {
  const names = bids.map((bid) => bid.action);
  const word = names[0].split(" ")[0];
  const same = names.length > 1 && names.every((name) => name.startsWith(`${word} `));
  return { label: same ? `${who}: ${word}` : who, values: same ? names.map((name) => name.slice(word.length + 1)) : names };
}

function brief(payoffs, value, decimals) {
  if (value === null) return "";
  return (payoffs.chance ? String(Math.round(100 * value)) : value.toFixed(decimals)).replace("-", "−");
}
