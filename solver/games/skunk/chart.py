"""The chart of Skunk: for each pair of scores the chance to win and where rolling turns to holding.

A line is ``(mine,yours) chance - toggles``, at the start of a turn, as first printed in 1998::

    (0,0) .5195589 - 21
    (0,87) .0661453 - 33 44 100

The toggles: roll while the turn is below the first number, hold below the second, roll below the
third, and so on. At goal - mine the turn has won; the list ends there if the last word is roll.

A toggle can be **unreachable** for one who follows the chart: he has held before. Reachable turns
are those that a roll takes him to from one at which he rolls, the start of the turn first; a
toggle that changes the choice at no reachable turn can be left out. A turn is **uncertain** if
rolling and holding differ by less than what the table's error can account for: it is marked, and
the chart says hold there.

Source: docs/sources.md#gottahack-1998.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.games.skunk.rules import MOST, TABLES, TOTAL
from luckbase.solver.games.skunk.tiers import Race


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


def decisions(race: Race, payoffs: Floats, mine: int, yours: int) -> tuple[Floats, Floats]:
    """(roll, hold): the chance to win after each, float64 (goal - mine,), by the turn's points.

    payoffs: float64 (rows,), player 1's, as `solve_tier` leaves them. Hold is minus infinity before
    the first roll. Raises StateError for scores that are not on the board.
    """
    for name, score in (("mine", mine), ("yours", yours)):
        if not 0 <= score < race.goal:
            raise StateError(f"{name}: {score} is not a score of the chart; 0 to {race.goal - 1}")
    roll, hold = _decisions(race, payoffs, mine, np.array([yours]))
    return roll[0], hold[0]


def _decisions(race: Race, payoffs: Floats, mine: int, yours: Ints) -> tuple[Floats, Floats]:
    """The same for many scores of the other: float64 (n, goal - mine)."""
    ints, left = race.ints, race.goal - mine
    most, total = int(ints[MOST]), int(ints[TOTAL])
    turns = np.arange(left)

    def values(mine: Ints | int, yours: Ints | int, turn: Ints | int) -> Floats:
        columns = np.broadcast_arrays(mine, yours, turn, 1)
        states = np.column_stack([column.ravel() for column in columns])
        found: Floats = payoffs[race.locate(states)[1]].reshape(columns[0].shape)
        return found

    other = yours[:, None]
    v = np.hstack([values(mine, other, turns), np.ones((len(yours), most + 1))])
    ends = 1.0 - np.hstack([values(other, mine, 0), values(other, 0, 0)])
    roll = np.zeros((len(yours), left))
    first, later = ints[TABLES:].reshape(2, most + 3)
    for k in range(most + 3):
        worth = ends[:, [k]] if k < 2 else v[:, k - 2 : k - 2 + left]
        roll += np.where(turns > 0, later[k], first[k]) * worth
    hold = np.full((len(yours), left), -np.inf)
    if left > 1:
        hold[:, 1:] = 1.0 - values(other, mine + turns[1:], 0)
    return roll / total, hold


def entry(
    race: Race,
    payoffs: Floats,
    mine: int,
    yours: int,
    *,
    reachable: bool = False,
    tolerance: float | None = None,
) -> Entry:
    """The line of (mine, yours).

    reachable: leave out what one who follows the chart never comes to. tolerance: differences below
    it are uncertain; the game's tie tolerance if not given. Raises StateError as `decisions`.
    """
    roll, hold = decisions(race, payoffs, mine, yours)
    return _entry(race, payoffs, mine, yours, roll, hold, reachable, tolerance)


def chart(
    race: Race, payoffs: Floats, *, reachable: bool = False, tolerance: float | None = None
) -> Iterator[Entry]:
    """Every line, mine slowest."""
    for mine in range(race.goal):
        roll, hold = _decisions(race, payoffs, mine, np.arange(race.goal))
        for yours in range(race.goal):
            yield _entry(race, payoffs, mine, yours, roll[yours], hold[yours], reachable, tolerance)


def _entry(
    race: Race, payoffs: Floats, mine: int, yours: int, roll: Floats, hold: Floats,
    reachable: bool, tolerance: float | None,
) -> Entry:  # fmt: skip
    tolerance = race.tie_tolerance if tolerance is None else tolerance
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
    """For pictures, (goal, goal) by mine and yours: the hold point (goal - mine where he rolls to
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
    most = int(ints[MOST])
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
