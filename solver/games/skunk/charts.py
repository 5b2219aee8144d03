"""The charts of Skunk, and of Pig as a race, for `solver.charts`; the drawing of a state of these
games and of Pig by rounds.

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts, Drawing
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.kernel import Race, action_values, race_of, row_of
from luckbase.solver.games.skunk.rules import MINE, ROLL, TURN, YOURS, options_of, rounds_of
from luckbase.solver.scene import CHANCE, GONE, GOOD, QUIET, UP, Box, Die, Scene, Shape, Words
from luckbase.solver.sentences import NUMBERS, many, nearest

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
    chosen: dict[str, Sequence[int]] = {}
    for name, text in fields.items():
        if name in race.game.columns and name not in SCORES:
            raise StateError(f"{name}: a line is for the start of a turn, by mine and yours only")
        if name not in SCORES:
            raise StateError(f"unknown field '{name}'; {nearest(name, SCORES)}")
        chosen[name] = sorted(charts.numbers_in(name, text))
        if (most := chosen[name][-1]) >= race.goal:
            why = f"{most} is not a score of the chart; 0 to {race.goal - 1}"
            raise StateError(f"{name}: {why}")
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
    axis, label = np.arange(goal), "the hold point jumps to all or nothing"
    line = charts.outline(label, beyond, axis, axis, np.ones_like(beyond))
    return Heatmap(
        title, about, (*SCORES, "hold_point"), axis, axis, points,
        "my score, at the start of my turn", "opponent's score", "hold point (points in the turn)",
        beyond, limits, lines=() if line is None else (line,), words=tuple(words), rest={},
    )  # fmt: skip


# --- the drawing ---------------------------------------------------------------------------------

WIDE, LEFT, RIGHT, TRACK, ROW = 640.0, 104.0, 52.0, 34.0, 74.0
"""In units: the width of the sheet, the margins left and right of a track, the height of a track,
the distance between tracks."""
DIE, TICKS = 44.0, 10  # the size of a die in units; the number of labelled parts of a track
MIN_END = 50  # the least number of points that tracks without a goal show


def drawing(game: Game) -> Drawing:
    """Return the drawing of the states of a race, or of Pig by rounds, and the names of rolls."""
    return Drawing(partial(_draw, game), RollNames(game).of_children)


def _draw(game: Game, values: Ints) -> Scene:
    """Draw the rounds, if there are any, the tracks and the dice; values (fields,)."""
    options, rounds = options_of(game), rounds_of(game)
    at = dict(zip(game.columns, values.tolist(), strict=True))
    up, turn, lead = at["player"] - 1, at["turn"], at["mine"] + at["turn"] - at["yours"]
    banked = (at["mine"], at["yours"]) if up == 0 else (at["yours"], at["mine"])
    most, end = max(at["mine"] + turn, at["yours"]), options.goal
    over, wins = most >= end, f" {end} wins."
    shapes: list[Shape] = []
    top, about = 8.0, ""
    if rounds:
        over, end, wins = at["round"] > rounds, max(-(-most // MIN_END), 1) * MIN_END, ""
        shapes += _rounds(rounds, at["round"])
        top, about = 56.0, f"Round {min(at['round'], rounds)} of {rounds}. "
    winner = None if not over or lead == 0 else up if lead > 0 else 1 - up
    for i in range(2):
        role, does = ("", "waits") if over or i != up else (UP, "acts")
        role, does = (GOOD, "has won") if i == winner else (role, does)
        more = turn if i == up else 0
        shapes += _track(i, role, does, (banked[i], more), "mine" if i == up else "yours", end,
                         top + i * ROW)  # fmt: skip
        if wins:
            shapes.append(Words("wins", WIDE - RIGHT + 8, top + i * ROW + TRACK / 2, 15, "start"))
    y = top + 2 * ROW
    if over:
        title = "a draw" if winner is None else f"player {winner + 1} has won"
        about += f"Player 1 has {banked[0]}, player 2 has {banked[1]}: {title}."
    else:
        x = LEFT + options.dice * (DIE + 10)
        shapes += [Die(LEFT + i * (DIE + 10), y, DIE, None, options.sides, CHANCE)
                   for i in range(options.dice)]  # fmt: skip
        shapes.append(Words(f"the turn: {turn}", x + 12, y + DIE / 2, 22, "start", True))
        title = f"player {up + 1} has the dice"
        points = "at the start of a turn"
        if turn:
            rolled = f" in {many(at['rolls'], 'roll')}" if "rolls" in at else ""
            points = f"{many(turn, 'point')} in the turn{rolled}"
        about += f"Player 1 has {banked[0]} banked, player 2 {banked[1]}. "
        about += f"{title.capitalize()}, {points}.{wins}"
    shapes.append(Words(title, WIDE - 8, y + DIE / 2, 17, "end"))
    return Scene(title, about, WIDE, y + DIE + 8, tuple(shapes))


def _track(
    player: int, role: str, does: str, points: tuple[int, int], field: str, end: int, y: float
) -> Iterator[Shape]:
    """Yield a player's track up to `end`; points: banked, and in the turn."""
    (banked, turn), name = points, f"player {player + 1}"
    width = WIDE - LEFT - RIGHT
    yield Box("desk", 4, y, LEFT - 12, TRACK, (name,), role, 17, f"{name} {does}")
    labels = f"{name} has {banked}", field, str(banked)
    yield Box("track", LEFT, y, width, TRACK, (), QUIET, 16, *labels)
    reach, shown = width * min(banked / end, 1.0), f"{banked}"
    if banked:
        yield Box("bar", LEFT, y, reach, TRACK, (), "", 16, *labels)
    if turn:
        more = width * min((banked + turn) / end, 1.0) - reach
        labels = f"{many(turn, 'point')} of the turn, not banked", "turn", str(turn)
        yield Box("bar", LEFT + reach, y, more, TRACK, (), CHANCE, 16, *labels)
        shown += f" + {turn} = {banked + turn}"
    yield Words(shown, LEFT + 8, y + TRACK / 2, 20, "start", bold=True)
    for k in range(TICKS + 1):
        if end * k % TICKS == 0:
            yield Words(str(end * k // TICKS), LEFT + width * k / TICKS, y + TRACK + 11, 12,
                        role=QUIET)  # fmt: skip


def _rounds(count: int, now: int) -> Iterator[Shape]:
    """Yield the boxes of `count` rounds while round `now` is played."""
    width = min(40.0, (WIDE - LEFT - 8) / count)
    yield Words("round", 8, 22, 17, "start")
    for k in range(1, count + 1):
        role = UP if k == now else GONE if k < now else ""
        about = f"round {k}{' is played' if k == now else ' is over' if k < now else ''}"
        yield Box("plate", LEFT + (k - 1) * width, 6, width - 4, 32, (str(k),), role,
                  min(16.0, width * 0.5), about, "round", str(k))  # fmt: skip


MAX_LISTED = 3  # the most rolls that a name lists


class RollNames:
    """The names of the outcomes of rolls: ``a 1: the turn is lost``, ``7 points: 5 and 2, or 4 and
    3``."""

    def __init__(self, game: Game) -> None:
        board: Any = game.board
        self.options, self.player = options_of(game), game.columns.index("player")
        self.cut: int = board.solve.cut if rounds_of(game) else 0
        self.rolls: dict[tuple[bool, str, int], set[tuple[int, ...]]] = {}
        """(first roll of a turn, effect, points) -> the faces of such rolls, the highest first."""
        for first in (True, False):
            for faces, penalty, points in self.options.every_roll(first):
                same = self.rolls.setdefault((first, penalty, points), set())
                same.add(tuple(sorted(faces, reverse=True)))

    def of_children(self, state: Ints, action: int, children: Ints) -> list[str | None]:
        """Return the names of the states (n, fields) that an action leads to; None near the cut,
        where a terminal state does not show whether the turn was lost."""
        most = state[MINE] + state[TURN] + self.options.dice * self.options.sides
        if action != ROLL or (self.cut and most - state[YOURS] >= self.cut):
            return [None] * len(children)
        return [self._name(state.tolist(), child) for child in children.tolist()]

    def _name(self, state: list[int], child: list[int]) -> str:
        mine, turn, options = state[MINE], state[TURN], self.options
        first, goal = turn == 0, options.goal
        if child[self.player] != state[self.player]:
            costly = "score" in (options.some_ones, options.all_ones)
            both = mine == 0  # then losing the score costs only the turn
            return self._lost(first, costly and child[YOURS] != mine, both)
        if not self.cut and child[MINE] == goal:
            return self._at_least(first, goal - mine - turn) + ": the game is won"
        return self._points(first, child[TURN] - turn)

    def _lost(self, first: bool, score: bool, both: bool) -> str:
        """Return the name of a roll that loses the turn, or the score; both: of either kind."""
        penalties = ("turn", "score") if both else ("score",) if score else ("turn",)
        rolls = [self.rolls.get((first, penalty, 0), ()) for penalty in penalties]
        fewest = min(faces.count(1) for same in rolls for faces in same)
        ones = "a 1" if fewest == 1 else f"{NUMBERS[self.options.dice]} 1s"
        return f"{ones}: the {'score' if score else 'turn'} is lost"

    def _points(self, first: bool, points: int) -> str:
        """Return the name of the rolls that are worth this many points."""
        rolls = sorted(self.rolls[first, "points", points], reverse=True)
        if self.options.dice == 1 or len(rolls) > MAX_LISTED:
            return self._short(points)
        listed = ", or ".join(" and ".join(map(str, faces)) for faces in rolls)
        return f"{self._short(points)}: {listed}"

    def _at_least(self, first: bool, points: int) -> str:
        """Return the name of the rolls that are worth at least this many points."""
        points_of_rolls = [p for f, penalty, p in self.rolls if (f, penalty) == (first, "points")]
        reaching = [p for p in points_of_rolls if p >= points]
        return self._short(min(reaching)) + " or more" * (len(reaching) > 1)

    def _short(self, points: int) -> str:
        if self.options.dice == 1 and self.options.count == "faces":
            return f"a {points}"
        return many(points, "point")
