"""Two more charts of a race: a card to take along, and the turn against my score.

``hold-at`` is the hold point for scores in steps of a tenth of the goal. ``turn`` is the picture of
docs/sources.md#neller-and-presser-2004: my score across, the turn's points up, at one score of the
other; the line is where rolling turns to holding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luckbase.solver.charts.model import Heatmap, Listing, outline, words_in
from luckbase.solver.game.arrays import Floats
from luckbase.solver.games.skunk.chart import decisions, entry
from luckbase.solver.games.skunk.tiers import Race

STEPS = 10
"""Scores of either on the card, unless they are chosen."""


def card(
    race: Race, payoffs: Floats, scores: tuple[Sequence[int], Sequence[int]], tolerance: float
) -> Listing:
    """The hold points for my scores (lines) and the other's (columns)."""
    mine, yours = scores
    points = [[entry(race, payoffs, m, y, tolerance=tolerance) for y in yours] for m in mine]
    rows = [["mine", *map(str, yours)]]
    for m, line in zip(mine, points, strict=True):
        rows.append([str(m), *(_said(race, each.hold, m) for each in line)])
    wide = max(len(cell) for row in rows for cell in row) + 1
    lines = tuple("".join(cell.rjust(wide) for cell in row) for row in rows)
    table = tuple(
        (m, y, each.hold)
        for m, line in zip(mine, points, strict=True)
        for y, each in zip(yours, line, strict=True)
    )
    note = (
        "hold at so many points in the turn: my score by line, the opponent's by column; all: roll "
        f"to {race.goal}"
    )
    return Listing(lines, ("mine", "yours", "hold_point"), table, note)


def _said(race: Race, hold: int, mine: int) -> str:
    return "all" if hold >= race.goal - mine else str(hold)


def turn_picture(race: Race, payoffs: Floats, yours: int, tolerance: float, about: str) -> Heatmap:
    """Roll or hold over my score and the turn's points, at one score of the other."""
    goal = race.goal
    chances = np.full((goal, goal), np.nan)
    rolling = np.zeros((goal, goal), bool)
    for mine in range(goal):
        roll, hold = decisions(race, payoffs, mine, yours)
        chances[mine, : goal - mine] = np.maximum(roll, hold)
        rolling[mine, : goal - mine] = roll > hold + tolerance
    known = ~np.isnan(chances)
    scores = np.arange(goal)
    line = outline("roll or hold", rolling, scores, scores, known)
    first = entry(race, payoffs, 0, yours, tolerance=tolerance).hold
    return Heatmap(
        f"Against {yours} points: " + (f"hold at {first} from 0" if first < goal else "never hold"),
        about, ("mine", "turn", "value"), scores, scores, chances,
        "my score, at the start of my turn", "points in the turn", "my chance to win (probability)",
        None, (0.0, 1.0), lines=() if line is None else (line,),
        words=words_in({"roll": rolling, "hold": known & ~rolling}, scores, scores),
        rest={"yours": str(yours)},
    )  # fmt: skip
