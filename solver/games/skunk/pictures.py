"""The charts of Skunk, and of the Pig that is a race, as `solver.charts.model` has them.

``chart`` is the list of toggles (`solver.games.skunk.chart`), ``hold`` the picture of the strategy
(docs/sources.md#gottahack-1998): the hold point as colour over both scores, and the line
beyond which holding is no use. ``win`` is the chance to win at the start of a turn. ``card`` and
``turn`` are in `solver.games.skunk.turns`.

**The line.** At a score of mine, y is the least such that from y on every hold point is
goal - mine: all or nothing. A step lies between y - 1 and y; steps are joined.

**Even chances.** At a score of mine they are where the chance, straight between two scores of
yours, is a half.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from luckbase.solver.charts.model import DECIMALS, Heatmap, Kind, Line, Listing, Look, Wanted, Words
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.chart import Entry, chart, entry, hold_points
from luckbase.solver.games.skunk.tiers import Race, race_of
from luckbase.solver.games.skunk.turns import STEPS, card, turn_picture
from luckbase.solver.sentences import nearest, option

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

    def make(self, name: str, look: Look, wanted: Wanted) -> Listing | Heatmap:
        takes = {"chart": SCORES, "card": SCORES, "turn": ("yours",)}.get(name, ())
        if (wanted.fields and not takes) or (wanted.reachable and name != "chart"):
            what = "FIELD=VALUE" if wanted.fields and not takes else option("reachable")
            raise OptionError(
                f"{what}: the picture '{name}' shows all scores as they are; leave it out"
            )
        race = race_of(self.game)
        lines = _chosen(race, wanted.fields, takes or SCORES)
        # Two payoffs may each be off by the error; below that no choice is called.
        tolerance = max(race.tie_tolerance, 2 * wanted.error)
        first = np.arange(race.rows(0) // 2)  # player 1's rows say all
        payoffs = np.ascontiguousarray(look(race.states_at(0, first))[:, 0])
        if name == "chart":
            return _listing(race, payoffs, lines, wanted.reachable, tolerance)
        if name == "card":
            return card(race, payoffs, self._card(race, wanted.fields), tolerance)
        if name == "turn":
            yours = _scores(race, "yours", wanted.fields.get("yours", str(3 * race.goal // 10)))
            if len(yours) > 1:
                raise StateError(f"yours: the picture is of one score; write yours={yours[0]}")
            return turn_picture(race, payoffs, yours[0], tolerance, self._about(race))
        points, values = hold_points(race, payoffs, tolerance=tolerance)
        about = self._about(race)
        return _hold(race, points, about) if name == "hold" else _win(race, values, about)

    def _about(self, race: Race) -> str:
        return f"{self.game.board.game.capitalize()} to {race.goal}, both play optimally"

    def _card(self, race: Race, fields: Mapping[str, str]) -> tuple[Sequence[int], Sequence[int]]:
        """The scores of either: those that are chosen, or in steps."""
        steps = range(0, race.goal, max(1, race.goal // STEPS))
        mine, yours = (
            _scores(race, name, fields[name]) if name in fields else steps for name in SCORES
        )
        return mine, yours


# --- the list ------------------------------------------------------------------------------------


def _chosen(
    race: Race, fields: Mapping[str, str], takes: Sequence[str]
) -> list[tuple[int, int]] | None:
    """The pairs of scores that fields ask for (``mine=0 yours=86,87``); None for all of them."""
    for name in fields:
        if name in race.game.columns and name not in SCORES:
            raise StateError(f"{name}: a line is for the start of a turn, by mine and yours only")
        if name in SCORES and name not in takes:
            raise StateError(f"{name}: this picture is over it; leave it out")
        if name not in SCORES:
            raise StateError(f"unknown field '{name}'; {nearest(name, SCORES)}")
    if not fields:
        return None
    mine, yours = (_scores(race, name, fields.get(name)) for name in SCORES)
    return [(m, y) for m in mine for y in yours]


def _scores(race: Race, name: str, text: str | None) -> Sequence[int]:
    if text is None:
        return range(race.goal)
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
        raise StateError(f"{name}: '{text[:30]}' is not a score or several, as in {name}=0,21")
    for score in map(int, text.split(",")):
        if score >= race.goal:
            raise StateError(f"{name}: {score} is not a score of the chart; 0 to {race.goal - 1}")
    return sorted({int(score) for score in text.split(",")})


def _listing(
    race: Race,
    payoffs: Floats,
    pairs: list[tuple[int, int]] | None,
    reachable: bool,
    tolerance: float,
) -> Listing:
    found: list[Entry]
    if pairs is None:
        found = list(chart(race, payoffs, reachable=reachable, tolerance=tolerance))
    else:
        found = [
            entry(race, payoffs, *pair, reachable=reachable, tolerance=tolerance) for pair in pairs
        ]
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
