"""The charts of Skunk, and of the Pig that is a race, as `solver.charts` has them.

``chart`` is the list of toggles, ``hold`` the picture of the strategy
(docs/sources.md#gottahack-1998): the hold point as colour over both scores, and the line beyond
which holding is no use. ``win`` is the chance to win at the start of a turn. ``card`` has the hold
points for scores in steps of a tenth of the goal. ``turn`` is the picture of
docs/sources.md#neller-and-presser-2004: my score across, the turn's points up, at one score of the
other; the line is where rolling turns to holding.

**The line.** At a score of mine, y is the least such that from y on every hold point is
goal - mine: all or nothing. A step lies between y - 1 and y; steps are joined.

**Even chances.** At a score of mine they are where the chance, straight between two scores of
yours, is a half.

**The list.** A line is ``(mine,yours) chance - toggles``, at the start of a turn, as first printed
in 1998::

    (0,0) .5195589 - 21
    (0,87) .0661453 - 33 44 100

The toggles: roll while the turn is below the first number, hold below the second, roll below the
third, and so on. At goal - mine the turn has won; the list ends there if the last word is roll.

A toggle can be **unreachable** for one who follows the chart: they held before. Reachable turns
are those that a roll takes them to from one at which they roll, the start of the turn first; a
toggle that changes the choice at no reachable turn can be left out. A turn is **uncertain** if
rolling and holding differ by less than what the table's error can account for: it is marked, and
the chart says hold there.

Source: docs/sources.md#gottahack-1998.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import (
    DECIMALS,
    ChartRequest,
    Heatmap,
    Kind,
    Line,
    Listing,
    Lookup,
    Words,
    outline,
    words_in,
)
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.layout import Race, race_of
from luckbase.solver.games.skunk.rules import MAX_POINTS, TABLES, TOTAL
from luckbase.solver.sentences import nearest

KINDS = (
    Kind("chart", "for each pair of scores the chance to win and where to roll and to hold"),
    Kind("hold", "hold points, and the line where they jump to all or nothing", picture=True),
    Kind("win", "the chance to win at the start of a turn", picture=True),
    Kind("card", "hold points for scores in steps of a tenth, to take along"),
    Kind(
        "turn", "roll or hold over my score and the turn, at one score of the other", picture=True
    ),
)
SCORES = ("mine", "yours")
MINE, YOURS = "my score, at the start of my turn", "opponent's score"
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)
NOTE = (
    "(mine,yours) chance to win - roll below the first number, hold below the second, roll below "
    "the third, …"
)


class RaceCharts(Charts):
    """The charts of a race (module docstring)."""

    kinds = KINDS

    def __init__(self, game: Game) -> None:
        self.game = game

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Listing | Heatmap:
        takes = {"chart": SCORES, "card": SCORES, "turn": ("yours",)}.get(name, ())
        all_of_them = f"the picture '{name}' shows all scores as they are"
        if request.fields and not takes:
            raise OptionError(f"FIELD=VALUE: {all_of_them}; leave it out")
        if name != "chart":
            request.refuse_reachable(all_of_them)
        race = race_of(self.game)
        _check_fields(race, request.fields, takes)
        mine, yours = (_scores(race, field, request.fields.get(field)) for field in SCORES)
        # Two payoffs may each be off by the error; below that no choice is called.
        tolerance = max(race.tie_tolerance, 2 * request.error)
        first = np.arange(race.rows(0) // 2)  # player 1's rows say all
        payoffs = np.ascontiguousarray(lookup(race.states_at(0, first))[:, 0])
        if name == "chart":
            lines = chart(
                race, payoffs, mine, yours, reachable=request.reachable, tolerance=tolerance
            )
            return _listing(list(lines), tolerance)
        if name == "card":
            steps = range(0, race.goal, max(1, race.goal // STEPS))
            mine, yours = (
                chosen if field in request.fields else steps
                for field, chosen in zip(SCORES, (mine, yours), strict=True)
            )
            return card(race, payoffs, mine, yours, tolerance)
        about = f"{self.game.board.game.capitalize()} to {race.goal}, both play optimally"
        if name == "turn":
            chosen = yours if request.fields else [3 * race.goal // 10]
            if len(chosen) > 1:
                raise StateError(f"yours: the picture is of one score; write yours={chosen[0]}")
            return turn_picture(race, payoffs, chosen[0], tolerance, about)
        points, values = hold_points(race, payoffs, tolerance=tolerance)
        return _hold(race, points, about) if name == "hold" else _win(race, values, about)


# --- the list ------------------------------------------------------------------------------------


def _check_fields(race: Race, fields: Mapping[str, str], takes: Sequence[str]) -> None:
    for name in fields:
        if name in race.game.columns and name not in SCORES:
            raise StateError(f"{name}: a line is for the start of a turn, by mine and yours only")
        if name in SCORES and name not in takes:
            raise StateError(f"{name}: this picture is over it; leave it out")
        if name not in SCORES:
            raise StateError(f"unknown field '{name}'; {nearest(name, SCORES)}")


def _scores(race: Race, name: str, text: str | None) -> Sequence[int]:
    if text is None:
        return range(race.goal)
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
        raise StateError(f"{name}: '{text[:30]}' is not a score or several, as in {name}=0,21")
    for score in map(int, text.split(",")):
        if score >= race.goal:
            raise StateError(f"{name}: {score} is not a score of the chart; 0 to {race.goal - 1}")
    return sorted({int(score) for score in text.split(",")})


def _listing(found: Sequence[Entry], tolerance: float) -> Listing:
    marked = sum(len(line.uncertain) for line in found)
    note = NOTE + (
        f"; {marked} turns after a ?: rolling and holding are closer than {tolerance:.1e}, and the "
        "chart says hold"
        if marked
        else f"; every choice is certain: none hangs on less than {tolerance:.1e}"
    )
    return Listing(
        tuple(map(str, found)),
        (*SCORES, "value", "toggles", "uncertain"),
        tuple(
            (line.mine, line.yours, round(line.value, DECIMALS), _spaced(line.toggles),
             _spaced(line.uncertain))
            for line in found
        ),
        note,
    )  # fmt: skip


def _spaced(turns: tuple[int, ...]) -> str:
    return " ".join(map(str, turns))


# --- the pictures --------------------------------------------------------------------------------


def all_or_nothing_from(points: Floats) -> list[int]:
    """For each score of mine the least score of yours from which on every hold point is the whole
    way to the goal; the goal where there is none. points: float64 (goal, goal)."""
    goal = len(points)
    found = []
    for mine, row in enumerate(points):
        short = np.flatnonzero(row != goal - mine)
        found.append(int(short[-1]) + 1 if len(short) else 0)
    return found


def _hold(race: Race, points: Floats, about: str) -> Heatmap:
    goal = race.goal
    jump = all_or_nothing_from(points)
    beyond = np.arange(goal)[None, :] >= np.array(jump)[:, None]
    short = points[~beyond & ~np.isnan(points)]
    title = f"Roll to {goal} whatever the scores"
    limits = None
    if len(short):
        low, high = int(short.min()), int(short.max())
        title = f"Hold at {low} to {high} points; past the line it is all or nothing"
        limits = (float(low), float(high))
    unsure = int(np.isnan(points).sum())
    if unsure:
        about += f"; blank below the line: too close to call ({unsure})"
    words = []
    across = [mine for mine in range(goal) if jump[mine] <= mine]  # beyond, on the diagonal
    if across:
        middle = min((across[0] + goal - 1) / 2, 0.88 * goal - 0.5)  # words are wide
        words.append(Words(f"all or nothing:\nroll to {goal}", middle, middle))
    return Heatmap(
        title, about, (*SCORES, "hold_point"), np.arange(goal), np.arange(goal), points,
        MINE, YOURS, "hold point (points in the turn)", beyond, limits,
        lines=_steps(jump, goal), words=tuple(words), rest={},
    )  # fmt: skip


def _steps(jump: list[int], goal: int) -> tuple[Line, ...]:
    """The line: over each score of mine the lower edge of its first score of yours.

    jump: what `all_or_nothing_from` gave. No line where it is all or nothing everywhere, or never.
    """
    inside = [mine for mine in range(goal) if 0 < jump[mine] < goal]
    if not inside:
        return ()
    mine = np.arange(inside[0], inside[-1] + 1)
    edge = np.array(jump)[mine] - 0.5
    xs = np.append(np.column_stack([mine - 0.5, mine + 0.5]).ravel(), mine[-1] + 0.5)
    ys = np.append(np.repeat(edge, 2), -0.5 if jump[-1] == 0 else edge[-1])
    return (Line("the hold point jumps to all or nothing", xs, ys),)


def _win(race: Race, values: Floats, about: str) -> Heatmap:
    goal = race.goal
    level = []
    for mine, row in enumerate(values):
        below = np.flatnonzero(row < 0.5)
        if len(below) and below[0] > 0:
            y = int(below[0])
            level.append((mine, y - 1 + (row[y - 1] - 0.5) / (row[y - 1] - row[y])))
    title = "Who has the dice is the favourite"
    lines: tuple[Line, ...] = ()
    if level:
        mine, yours = np.array(level).T
        behind = yours[0] - mine[0]
        title = "The dice in hand are worth less than a point"
        if behind >= 1:
            title = f"The dice in hand are worth a lead of about {_points(behind)}"
        lines = (Line("even chances", mine, yours),)
    return Heatmap(
        title, about, (*SCORES, "value"), np.arange(goal), np.arange(goal), values,
        MINE, YOURS, "my chance to win (probability)", None, (0.0, 1.0), LEVELS, lines, rest={},
    )  # fmt: skip


def _points(number: float) -> str:
    whole = round(number)
    return f"{whole} point" + "s" * (whole != 1)


@dataclass(frozen=True)
class Entry:
    """A line of the chart. value: the chance to win at the start of the turn. toggles: turn's
    points, ascending. uncertain: turns whose choice hangs on less than the tolerance."""

    mine: int
    yours: int
    value: float
    toggles: tuple[int, ...]
    uncertain: tuple[int, ...] = ()

    def __str__(self) -> str:
        """The line; the turns that are uncertain follow a question mark."""
        line = f"({self.mine},{self.yours}) {self.value:.7f}".replace(" 0.", " .")
        line += " - " + " ".join(map(str, self.toggles))
        return line + (f" ? {' '.join(map(str, self.uncertain))}" if self.uncertain else "")

    @property
    def hold(self) -> int:
        """The hold point: where the first stretch of rolling ends."""
        return self.toggles[0]


def decisions(
    race: Race, payoffs: Floats, mine: int, yours: Sequence[int]
) -> tuple[Floats, Floats]:
    """(roll, hold): the chance to win after each, float64 (n, goal - mine), by the other's score
    and the turn's points.

    payoffs: float64 (rows,), player 1's, as `solve_tier` leaves them. Hold is minus infinity before
    the first roll.
    """
    ints, left = race.ints, race.goal - mine
    most, total = int(ints[MAX_POINTS]), int(ints[TOTAL])
    turns = np.arange(left)

    def values(mine: Ints | int, yours: Ints | int, turn: Ints | int) -> Floats:
        columns = np.broadcast_arrays(mine, yours, turn, 1)
        states = np.column_stack([column.ravel() for column in columns])
        found: Floats = payoffs[race.locate(states)[1]].reshape(columns[0].shape)
        return found

    other = np.array(yours)[:, None]
    v = np.hstack([values(mine, other, turns), np.ones((len(yours), most + 1))])
    ends = 1.0 - np.hstack([values(other, mine, 0), values(other, 0, 0)])
    roll = np.zeros((len(yours), left))
    first, later = ints[TABLES:].reshape(2, most + 3)
    for k in range(most + 3):
        after = ends[:, [k]] if k < 2 else v[:, k - 2 : k - 2 + left]
        roll += np.where(turns > 0, later[k], first[k]) * after
    hold = np.full((len(yours), left), -np.inf)
    if left > 1:
        hold[:, 1:] = 1.0 - values(other, mine + turns[1:], 0)
    return roll / total, hold


def chart(
    race: Race,
    payoffs: Floats,
    mine: Sequence[int] | None = None,
    yours: Sequence[int] | None = None,
    *,
    reachable: bool = False,
    tolerance: float | None = None,
) -> Iterator[Entry]:
    """The lines of these scores, of all if not given, mine slowest.

    reachable: leave out what one who follows the chart never comes to. tolerance: differences below
    it are uncertain; the game's tie tolerance if not given.
    """
    least = race.tie_tolerance if tolerance is None else tolerance
    every = range(race.goal)
    others = every if yours is None else yours
    for score in every if mine is None else mine:
        rolls = zip(others, *decisions(race, payoffs, score, others), strict=True)
        for other, roll, hold in rolls:
            yield _entry(race, payoffs, score, other, roll, hold, reachable, least)


def _entry(
    race: Race, payoffs: Floats, mine: int, yours: int, roll: Floats, hold: Floats,
    reachable: bool, tolerance: float,
) -> Entry:  # fmt: skip
    rolls = roll > hold + tolerance
    uncertain = np.abs(roll - hold) <= tolerance
    turns = np.flatnonzero(np.diff(rolls)) + 1  # where a stretch of equal choices begins
    if reachable:
        met = _met(race, rolls)
        uncertain &= met
        turns = _toggles_met(rolls, met)
    toggles = [int(t) for t in turns]
    if len(toggles) % 2 == 0:  # the last word is roll
        toggles.append(race.goal - mine)
    at = int(race.locate(np.array([[mine, yours, 0, 1]]))[1][0])
    marked = tuple(int(t) for t in np.flatnonzero(uncertain))
    return Entry(mine, yours, float(payoffs[at]), tuple(toggles), marked)


def hold_points(
    race: Race, payoffs: Floats, *, tolerance: float | None = None
) -> tuple[Floats, Floats]:
    """For pictures, (goal, goal) by mine and yours: the hold point (goal - mine where they roll to
    the end; NaN where it is uncertain), and the chance to win."""
    points, values = np.empty((2, race.goal, race.goal))
    for line in chart(race, payoffs, tolerance=tolerance):
        certain = line.hold not in line.uncertain
        points[line.mine, line.yours] = line.hold if certain else np.nan
        values[line.mine, line.yours] = line.value
    return points, values


def _met(race: Race, rolls: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(goal - mine,) the turns that one who rolls where `rolls` says so can come to."""
    ints, left = race.ints, len(rolls)
    most = int(ints[MAX_POINTS])
    met = np.zeros(left + most + 1, bool)
    met[0] = True
    for t in range(left):
        if met[t] and rolls[t]:
            table = TABLES + (most + 3 if t else 0)
            met[t : t + most + 1] |= ints[table + 2 : table + most + 3] > 0
    return met[:left]


def _toggles_met(rolls: NDArray[np.bool_], met: NDArray[np.bool_]) -> Ints:
    """Where the stretches begin whose choice differs from that of the turns met before."""
    turns = np.flatnonzero(met)
    changed = turns[1:][np.diff(rolls[turns])]
    begins = np.concatenate([[0], np.flatnonzero(np.diff(rolls)) + 1])
    found: Ints = begins[np.searchsorted(begins, changed, side="right") - 1]
    return found


STEPS = 10
"""Scores of either on the card, unless they are chosen."""


def card(
    race: Race, payoffs: Floats, mine: Sequence[int], yours: Sequence[int], tolerance: float
) -> Listing:
    """The hold points for my scores (lines) and the other's (columns)."""
    points = [[*chart(race, payoffs, [m], yours, tolerance=tolerance)] for m in mine]
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
        (roll,), (hold,) = decisions(race, payoffs, mine, [yours])
        chances[mine, : goal - mine] = np.maximum(roll, hold)
        rolling[mine, : goal - mine] = roll > hold + tolerance
    known = ~np.isnan(chances)
    scores = np.arange(goal)
    line = outline("roll or hold", rolling, scores, scores, known)
    (first,) = (line.hold for line in chart(race, payoffs, [0], [yours], tolerance=tolerance))
    return Heatmap(
        f"Against {yours} points: " + (f"hold at {first} from 0" if first < goal else "never hold"),
        about, ("mine", "turn", "value"), scores, scores, chances,
        "my score, at the start of my turn", "points in the turn", "my chance to win (probability)",
        None, (0.0, 1.0), lines=() if line is None else (line,),
        words=words_in({"roll": rolling, "hold": known & ~rolling}, scores, scores),
        rest={"yours": str(yours)},
    )  # fmt: skip
