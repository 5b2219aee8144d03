"""The charts of Skunk, and of the Pig that is a race, as `solver.charts` has them.

**The list.** A line is ``(mine,yours) chance - toggles``, at the start of a turn, as first printed
in 1998::

    (0,0) .5195589 - 21
    (0,87) .0661453 - 33 44 100

The toggles: roll while the turn is below the first number, hold below the second, roll below the
third, and so on. At goal - mine the turn has won; the list ends there if the last word is roll.

A turn is **uncertain** if rolling and holding differ by less than the table's error can account
for: it is marked, and the chart says hold there.

Sources: docs/sources.md#gottahack-1998; ``turn`` is the picture of
docs/sources.md#neller-and-presser-2004.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luckbase.solver import charts
from luckbase.solver.charts import (
    DECIMALS,
    ChartField,
    ChartRequest,
    Heatmap,
    Kind,
    Listing,
    Lookup,
    Search,
)
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.kernel import Race, action_values, race_of, row_of
from luckbase.solver.sentences import many, nearest

EACH = (
    ChartField("mine", "My scores, one or several, as 0,21. All if you do not say."),
    ChartField("yours", "The opponent's scores, one or several. All if you do not say."),
)
OTHER = ChartField("yours", "The opponent's score. Three tenths of the goal if you do not say.")
KINDS = (
    Kind(
        "chart", "for each pair of scores the chance to win and where to roll and to hold",
        takes=EACH,
        reading="(0,67) .1635 - 28 96 100 means: with 0 against 67 a chance of .1635; roll below "
        "28 points of the turn, hold below 96, roll from there.",
    ),
    Kind(
        "hold", "hold points, and the line where they jump to all or nothing", picture=True,
        takes=(),
        reading="The colour is the points of the turn from which to hold; beyond the line one "
        "rolls on until the turn is won or lost.",
    ),
    Kind(
        "win", "the chance to win at the start of a turn", picture=True,
        takes=(),
        reading="The colour is the chance to win; along a line it is the same.",
    ),
    Kind(
        "card", "hold points for scores in steps of a tenth, to take along",
        takes=EACH,
        reading="My score by line, theirs by column; hold from so many points of the turn on; "
        "'all' means never hold.",
    ),
    Kind(
        "turn", "roll or hold over my score and the turn, at one score of the other", picture=True,
        takes=(OTHER,),
        reading="The colour is the chance to win; roll on one side of the line, hold on the other.",
    ),
)  # fmt: skip
SCORES = ("mine", "yours")
MINE, YOURS = "my score, at the start of my turn", "opponent's score"
CHANCE = "my chance to win (probability)"
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)
STEPS = 10
"""Scores of either on the card, unless they are chosen."""
NOTE = (
    "(mine,yours) chance to win - roll below the first number, hold below the second, roll below "
    "the third, …"
)


class RaceCharts(Charts):
    """The charts of a race (module docstring)."""

    kinds = KINDS
    searches = (
        Search("holding is best though behind", "best=hold mine<yours"),
        Search("rolling is best with 30 points or more at stake", "best=roll turn>=30"),
        Search("far behind, and still a chance of one in five", "mine<20 yours>=60 payoff_1>=0.2"),
    )

    def __init__(self, game: Game) -> None:
        self.game = game

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Listing | Heatmap:
        fields = request.fields
        takes = {"chart": SCORES, "card": SCORES, "turn": ("yours",)}.get(name, ())
        if fields and not takes:
            raise OptionError(
                f"FIELD=VALUE: the picture '{name}' shows all scores as they are; leave it out"
            )
        race = race_of(self.game)
        chosen = _chosen(race, fields, takes)
        first = np.arange(race.rows(0) // 2)  # player 1's rows say all
        payoffs = np.ascontiguousarray(lookup(race.states_at(0, first))[:, 0])
        # Two payoffs may each be off by the error; below that no choice is called.
        strategy = Strategy(race, payoffs, max(race.game.tie_tolerance, 2 * request.error))
        about = f"{self.game.board.game.capitalize()} to {race.goal}, both play optimally"
        if name in ("chart", "card"):
            steps = range(0, race.goal, max(1, race.goal // STEPS) if name == "card" else 1)
            mine, yours = (chosen.get(field, steps) for field in SCORES)
            if name == "card":
                return card(strategy, mine, yours)
            return _listing(strategy.entries(mine, yours), strategy.tolerance)
        if name == "turn":
            scores = chosen.get("yours", [3 * race.goal // 10])
            if len(scores) > 1:
                raise StateError(f"yours: the picture is of one score; write yours={scores[0]}")
            return turn_picture(strategy, scores[0], about)
        points, values = hold_points(strategy)
        return _hold(points, about) if name == "hold" else _win(values, about)


def _chosen(
    race: Race, fields: Mapping[str, str], takes: Sequence[str]
) -> dict[str, Sequence[int]]:
    """The scores that a person wants to see, ascending, by field; `takes`: which may be chosen."""
    for name in fields:
        if name in race.game.columns and name not in SCORES:
            raise StateError(f"{name}: a line is for the start of a turn, by mine and yours only")
        if name not in SCORES:
            raise StateError(f"unknown field '{name}'; {nearest(name, SCORES)}")
        if name not in takes:
            raise StateError(f"{name}: this picture is over it; leave it out")
    chosen: dict[str, Sequence[int]] = {}
    for name, text in fields.items():
        if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
            raise StateError(f"{name}: '{text[:30]}' is not a score or several, as in {name}=0,21")
        scores = [int(score) for score in text.split(",")]
        for score in scores:
            if score >= race.goal:
                why = f"{score} is not a score of the chart; 0 to {race.goal - 1}"
                raise StateError(f"{name}: {why}")
        chosen[name] = sorted(set(scores))
    return chosen


# --- the strategy --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A line of the chart. value: the chance to win at the start of the turn. toggles: turn's
    points, ascending. uncertain: turns whose choice hangs on less than the tolerance."""

    mine: int
    yours: int
    value: float
    toggles: tuple[int, ...]
    uncertain: tuple[int, ...]

    def __str__(self) -> str:
        """The line; the turns that are uncertain follow a question mark."""
        line = f"({self.mine},{self.yours}) {self.value:.7f}".replace(" 0.", " .")
        line += " - " + _spaced(self.toggles)
        return line + (f" ? {_spaced(self.uncertain)}" if self.uncertain else "")

    @property
    def hold(self) -> int:
        """The hold point: where the first stretch of rolling ends."""
        return self.toggles[0]


def _spaced(turns: tuple[int, ...]) -> str:
    return " ".join(map(str, turns))


@dataclass(frozen=True)
class Strategy:
    """Where to roll and where to hold. payoffs: float64 (rows // 2,), player 1's rows of the table;
    tolerance: differences below it are uncertain."""

    race: Race
    payoffs: Floats
    tolerance: float

    def entries(self, mine: Sequence[int], yours: Sequence[int]) -> list[Entry]:
        """The lines of these scores, mine slowest."""
        return [self.entry(m, y) for m in mine for y in yours]

    def entry(self, mine: int, yours: int) -> Entry:
        """One of these lines."""
        hold, roll = action_values(self.race.ints, self.payoffs, mine, yours)
        rolls, uncertain = roll > hold + self.tolerance, np.abs(roll - hold) <= self.tolerance
        turns = np.flatnonzero(np.diff(rolls)) + 1  # where a stretch of equal choices begins
        toggles = turns.tolist()
        if len(toggles) % 2 == 0:  # the last word is roll
            toggles.append(self.race.goal - mine)
        value = float(self.payoffs[row_of(self.race.goal, mine, yours, 0)])
        return Entry(mine, yours, value, tuple(toggles), tuple(np.flatnonzero(uncertain).tolist()))


def hold_points(strategy: Strategy) -> tuple[Floats, Floats]:
    """For pictures, (goal, goal) by mine and yours: the hold point (goal - mine where they roll to
    the end; NaN where it is uncertain), and the chance to win."""
    goal = strategy.race.goal
    points, values = np.empty((2, goal, goal))
    for line in strategy.entries(range(goal), range(goal)):
        certain = line.hold not in line.uncertain
        points[line.mine, line.yours] = line.hold if certain else np.nan
        values[line.mine, line.yours] = line.value
    return points, values


# --- lists ---------------------------------------------------------------------------------------


def _listing(entries: Sequence[Entry], tolerance: float) -> Listing:
    marked = sum(len(line.uncertain) for line in entries)
    note = NOTE + (
        f"; {many(marked, 'turn')} after a ?: rolling and holding are closer than {tolerance:.1e}, "
        "and the chart says hold"
        if marked
        else f"; every choice is certain: none hangs on less than {tolerance:.1e}"
    )
    rows = tuple(
        (line.mine, line.yours, round(line.value, DECIMALS), _spaced(line.toggles),
         _spaced(line.uncertain))
        for line in entries
    )  # fmt: skip
    columns = (*SCORES, "value", "toggles", "uncertain")
    return Listing(tuple(map(str, entries)), columns, rows, note)


def card(strategy: Strategy, mine: Sequence[int], yours: Sequence[int]) -> Listing:
    """The hold points for my scores (lines) and the other's (columns)."""
    goal, entries = strategy.race.goal, strategy.entries(mine, yours)
    said = ["all" if entry.hold >= goal - entry.mine else str(entry.hold) for entry in entries]
    rows = [["mine", *map(str, yours)]]
    rows += [[str(m), *said[i * len(yours) : (i + 1) * len(yours)]] for i, m in enumerate(mine)]
    width = max(len(cell) for row in rows for cell in row) + 1
    lines = tuple("".join(cell.rjust(width) for cell in row) for row in rows)
    table = tuple((entry.mine, entry.yours, entry.hold) for entry in entries)
    note = (
        "hold at so many points in the turn: my score by line, the opponent's by column; all: roll "
        f"to {goal}"
    )
    return Listing(lines, (*SCORES, "hold_point"), table, note)


# --- pictures ------------------------------------------------------------------------------------


def all_or_nothing_from(points: Floats) -> list[int]:
    """For each score of mine the least score of yours from which on every hold point is the whole
    way to the goal; the goal where there is none. points: float64 (goal, goal)."""
    goal = len(points)
    short = points != goal - np.arange(goal)[:, None]
    last = goal - np.argmax(short[:, ::-1], axis=1)
    return [int(x) for x in np.where(short.any(axis=1), last, 0)]


def _hold(points: Floats, about: str) -> Heatmap:
    goal, jump = len(points), all_or_nothing_from(points)
    beyond = np.arange(goal)[None, :] >= np.array(jump)[:, None]
    short = points[~beyond & ~np.isnan(points)]
    title = f"Roll to {goal} whatever the scores"
    limits = None
    if len(short):
        low, high = int(short.min()), int(short.max())
        title = f"Hold at {low} to {many(high, 'point')}; past the line it is all or nothing"
        limits = (float(low), float(high))
    unsure = int(np.isnan(points).sum())
    if unsure:
        about += f"; blank below the line: too close to call ({unsure})"
    words = []
    across = [mine for mine in range(goal) if jump[mine] <= mine]  # beyond, on the diagonal
    if across:
        middle = min((across[0] + goal - 1) / 2, 0.88 * goal - 0.5)  # words are wide
        words.append(charts.Words(f"all or nothing:\nroll to {goal}", middle, middle))
    return Heatmap(
        title, about, (*SCORES, "hold_point"), np.arange(goal), np.arange(goal), points,
        MINE, YOURS, "hold point (points in the turn)", beyond, limits,
        lines=_steps(jump, goal), words=tuple(words), rest={},
    )  # fmt: skip


def _steps(jump: list[int], goal: int) -> tuple[charts.Line, ...]:
    """The line: over each score of mine the lower edge of its first score of yours, steps joined;
    none where it is all or nothing everywhere, or never."""
    inside = [mine for mine in range(goal) if 0 < jump[mine] < goal]
    if not inside:
        return ()
    mine = np.arange(inside[0], inside[-1] + 1)
    edge = np.array(jump)[mine] - 0.5
    xs = np.append(np.column_stack([mine - 0.5, mine + 0.5]).ravel(), mine[-1] + 0.5)
    ys = np.append(np.repeat(edge, 2), -0.5 if jump[-1] == 0 else edge[-1])
    return (charts.Line("the hold point jumps to all or nothing", xs, ys),)


def _win(values: Floats, about: str) -> Heatmap:
    """The line of even chances is where the chance, straight between two scores of yours, is a
    half."""
    goal, level = len(values), []
    for mine, row in enumerate(values):
        below = np.flatnonzero(row < 0.5)
        if len(below) and below[0] > 0:
            y = int(below[0])
            level.append((mine, y - 1 + (row[y - 1] - 0.5) / (row[y - 1] - row[y])))
    title = "Who has the dice is the favourite"
    lines: tuple[charts.Line, ...] = ()
    if level:
        mine, yours = np.array(level).T
        behind = yours[0] - mine[0]
        title = "The dice in hand are worth less than a point"
        if behind >= 1:
            title = f"The dice in hand are worth a lead of about {many(round(behind), 'point')}"
        lines = (charts.Line("even chances", mine, yours),)
    return Heatmap(
        title, about, (*SCORES, "value"), np.arange(goal), np.arange(goal), values,
        MINE, YOURS, CHANCE, None, (0.0, 1.0), LEVELS, lines, rest={},
    )  # fmt: skip


def turn_picture(strategy: Strategy, yours: int, about: str) -> Heatmap:
    """Roll or hold over my score and the turn's points, at one score of the other."""
    goal = strategy.race.goal
    chances = np.full((goal, goal), np.nan)
    rolling = np.zeros((goal, goal), bool)
    for mine in range(goal):
        hold, roll = action_values(strategy.race.ints, strategy.payoffs, mine, yours)
        chances[mine, : goal - mine] = np.maximum(roll, hold)
        rolling[mine, : goal - mine] = roll > hold + strategy.tolerance
    known = ~np.isnan(chances)
    scores = np.arange(goal)
    line = charts.outline("roll or hold", rolling, scores, scores, known)
    first = strategy.entry(0, yours).hold
    return Heatmap(
        f"Against {many(yours, 'point')}: "
        + (f"hold at {first} from 0" if first < goal else "never hold"),
        about, ("mine", "turn", "value"), scores, scores, chances,
        MINE, "points in the turn", CHANCE,
        None, (0.0, 1.0), lines=() if line is None else (line,),
        words=charts.words_in({"roll": rolling, "hold": known & ~rolling}, scores, scores),
        rest={"yours": str(yours)},
    )  # fmt: skip
