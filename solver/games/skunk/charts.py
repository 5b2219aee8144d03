"""The charts of Skunk, and of Pig as a race, for `solver.charts`.

**The list.** A line is ``(mine,yours) chance - toggles``, at the start of a turn, as first printed
in 1998::

    (0,0) .5195589 - 21
    (0,87) .0661453 - 33 44 100

The toggles: roll while the turn is below the first number, hold below the second, roll below the
third, and so on. At goal - mine the turn has won; the list ends there if its last stretch is roll.

A turn is **uncertain** if the difference between rolling and holding is within the table's error.
It is marked, and the chart holds there.

Source: docs/numbers.md#gottahack-1998.
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
    ChartField("mine", "My scores, one or several, as 0,21 (default: all)."),
    ChartField("yours", "The opponent's scores, one or several (default: all)."),
)
KINDS = (
    Kind(
        "chart", "for each pair of scores the chance to win, and when to roll and to hold",
        takes=EACH,
        reading="(0,67) .1635 - 28 96 100 means: with 0 against 67 the chance to win is .1635; "
        "roll below 28 points of the turn, hold below 96, then roll again.",
    ),
    Kind(
        "hold", "hold points, and the line where they jump to all or nothing", picture=True,
        takes=(),
        reading="The colour is the points of the turn from which to hold. Beyond the line, roll on "
        "until the turn is won or lost.",
    ),
)  # fmt: skip
SCORES = ("mine", "yours")
MINE, YOURS = "my score, at the start of my turn", "opponent's score"
NOTE = (
    "(mine,yours) chance to win - roll below the first number, hold below the second, roll below "
    "the third, …"
)


class RaceCharts(Charts):
    kinds = KINDS
    searches = (
        Search("holding is best although the player is behind", "best=hold mine<yours"),
        Search("rolling is best with 30 points or more at stake", "best=roll turn>=30"),
        Search("far behind, with a chance of at least 20 %", "mine<20 yours>=60 payoff_1>=0.2"),
    )

    def __init__(self, game: Game) -> None:
        self.game = game

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Listing | Heatmap:
        fields = request.fields
        if fields and name == "hold":
            raise OptionError(
                "FIELD=VALUE: the picture 'hold' shows all scores as they are; leave it out"
            )
        race = race_of(self.game)
        chosen = _chosen(race, fields)
        first = np.arange(race.rows(0) // 2)  # player 1's rows suffice
        payoffs = np.ascontiguousarray(lookup(race.states_at(0, first))[:, 0])
        # Two payoffs may each be off by the error; closer choices are uncertain.
        strategy = Strategy(race, payoffs, max(race.game.tie_tolerance, 2 * request.error))
        if name == "chart":
            mine, yours = (chosen.get(field, range(race.goal)) for field in SCORES)
            return _listing(strategy.entries(mine, yours), strategy.tolerance)
        about = f"{self.game.board.game.capitalize()} to {race.goal}, both play optimally"
        return _hold(hold_points(strategy), about)


def _chosen(race: Race, fields: Mapping[str, str]) -> dict[str, Sequence[int]]:
    for name in fields:
        if name in race.game.columns and name not in SCORES:
            raise StateError(f"{name}: a line is for the start of a turn, by mine and yours only")
        if name not in SCORES:
            raise StateError(f"unknown field '{name}'; {nearest(name, SCORES)}")
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
    """A line of the chart."""

    mine: int
    yours: int
    value: float  # the chance to win at the start of the turn
    toggles: tuple[int, ...]  # the turn's points, ascending
    uncertain: tuple[int, ...]  # turns whose choice depends on less than the tolerance

    def __str__(self) -> str:
        """Return the line; uncertain turns follow a question mark."""
        line = f"({self.mine},{self.yours}) {self.value:.7f}".replace(" 0.", " .")
        line += " - " + _spaced(self.toggles)
        return line + (f" ? {_spaced(self.uncertain)}" if self.uncertain else "")

    @property
    def hold(self) -> int:
        """The hold point: the end of the first stretch of rolling."""
        return self.toggles[0]


def _spaced(turns: tuple[int, ...]) -> str:
    return " ".join(map(str, turns))


@dataclass(frozen=True)
class Strategy:
    """When to roll and when to hold."""

    race: Race
    payoffs: Floats  # (rows // 2,), player 1's rows of the table
    tolerance: float  # smaller differences are uncertain

    def entries(self, mine: Sequence[int], yours: Sequence[int]) -> list[Entry]:
        """Return the lines for these scores, mine slowest."""
        return [self.entry(m, y) for m in mine for y in yours]

    def entry(self, mine: int, yours: int) -> Entry:
        hold, roll = action_values(self.race.ints, self.payoffs, mine, yours)
        rolls, uncertain = roll > hold + self.tolerance, np.abs(roll - hold) <= self.tolerance
        turns = np.flatnonzero(np.diff(rolls)) + 1  # where the choice changes
        toggles = turns.tolist()
        if len(toggles) % 2 == 0:  # the last stretch is roll
            toggles.append(self.race.goal - mine)
        value = float(self.payoffs[row_of(self.race.goal, mine, yours, 0)])
        return Entry(mine, yours, value, tuple(toggles), tuple(np.flatnonzero(uncertain).tolist()))


def hold_points(strategy: Strategy) -> Floats:
    """Return the hold points for the picture, (goal, goal) by mine and yours; goal - mine means
    rolling to the end, NaN is uncertain."""
    goal = strategy.race.goal
    points = np.empty((goal, goal))
    for line in strategy.entries(range(goal), range(goal)):
        certain = line.hold not in line.uncertain
        points[line.mine, line.yours] = line.hold if certain else np.nan
    return points


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


# --- the picture ---------------------------------------------------------------------------------


def all_or_nothing_from(points: Floats) -> list[int]:
    """Return, by score of mine, the score of yours from which hold points (goal, goal) are goal -
    mine; the goal if there is none."""
    rolls_on = points == len(points) - np.arange(len(points))[:, None]
    starts: list[int] = charts.last_run(rolls_on).tolist()
    return starts


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
    across = [mine for mine in range(goal) if jump[mine] <= mine]  # on the diagonal
    if across:
        middle = min((across[0] + goal - 1) / 2, 0.88 * goal - 0.5)  # words are wide
        words.append(charts.Words(f"all or nothing:\nroll to {goal}", middle, middle))
    return Heatmap(
        title, about, (*SCORES, "hold_point"), np.arange(goal), np.arange(goal), points,
        MINE, YOURS, "hold point (points in the turn)", beyond, limits,
        lines=_steps(jump, goal), words=tuple(words), rest={},
    )  # fmt: skip


def _steps(jump: list[int], goal: int) -> tuple[charts.Line, ...]:
    """Return the stepped line below the first score of yours at which mine rolls to the end, if it
    is all or nothing at some scores only."""
    inside = [mine for mine in range(goal) if 0 < jump[mine] < goal]
    if not inside:
        return ()
    mine = np.arange(inside[0], inside[-1] + 1)
    edge = np.array(jump)[mine] - 0.5
    xs = np.append(np.column_stack([mine - 0.5, mine + 0.5]).ravel(), mine[-1] + 0.5)
    ys = np.append(np.repeat(edge, 2), -0.5 if jump[-1] == 0 else edge[-1])
    return (charts.Line("the hold point jumps to all or nothing", xs, ys),)
