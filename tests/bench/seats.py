"""The bench suite ``seats``: what a seat is worth at the start of round 2, by score and spins left.

The spins are those that the questions give (`solver.games.press_your_luck.outcomes`); of each
number of spins in all the expected chance to win is taken, a seat. A table that goes far is coarse,
so `CASES` are solved one after the other, each in a folder that is removed, and each number is from
the finest that has it. How far a coarser one is off is measured where a finer one has the same
states, the largest of all seats and scores; beyond, where errors were getting smaller, the last one
measured stands. What lies beyond the deepest table is on a straight line, and says so.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.jobs import terminal

if TYPE_CHECKING:
    from luckbase.solver.game.arrays import Floats


@dataclass(frozen=True)
class Case:
    """A table: dollars between scores, outcomes of a spin, the highest score, spins in all."""

    unit: int
    outcomes: str
    cap: int
    frontier: int

    @property
    def name(self) -> str:
        return f"${self.unit:,}, {self.outcomes} outcomes, up to ${self.cap:,}"


CASES = (
    Case(500, "all", 20_000, 4), Case(1000, "8", 15_000, 8), Case(1500, "8", 15_000, 12),
)  # fmt: skip
"""The finest first; the last goes the farthest."""
SCORES = (
    (3000, 3000, 3000), (0, 3000, 3000), (3000, 3000, 6000), (0, 3000, 6000), (0, 0, 6000),
    (0, 6000, 6000),
)  # fmt: skip
"""On the grid of every case."""
MOST = 20
"""Spins that four questions can give."""

BySpins = dict[int, "Floats"]
"""Spins in all -> the chances to win, float64 (3,), by seat."""
Found = dict[tuple[int, ...], BySpins]
"""Of one table, by scores."""


def seats_suite(board: Path, results: Path) -> None:
    """Solve every case, and print a table for each of `SCORES`."""
    from luckbase import cluster, solver

    results.mkdir(parents=True, exist_ok=True)
    found = []
    for case in CASES:
        read = solver.load_board(
            board, score_unit=case.unit, outcomes=case.outcomes, score_cap=case.cap,
            frontier=case.frontier,
        )  # fmt: skip
        with tempfile.TemporaryDirectory(dir=results) as folder:
            solved = cluster.solve(read, results=Path(folder))
            with cluster.open_table(solved.table) as table:
                found.append({scores: seats(table, scores) for scores in SCORES})
    print_seats(found)


def chance_of(scores: tuple[int, ...]) -> Mapping[int, Fraction]:
    """The chance of each number of spins in all that the questions give."""
    from luckbase.solver.games.press_your_luck.outcomes import Start

    found: dict[int, Fraction] = {}
    for chance, state in Start(scores=scores).states():
        spins = sum(state["earned"])
        found[spins] = found.get(spins, Fraction(0)) + chance
    return found


def seats(table: Any, scores: tuple[int, ...]) -> BySpins:
    """The expected chances to win by spins in all, as far as the table goes."""
    import numpy as np

    from luckbase.solver.games.press_your_luck.outcomes import Start

    frontier, game = table.game.board.solve.frontier, table.game
    said = [(float(c), s) for c, s in Start(scores=scores).states() if sum(s["earned"])]
    said = [(chance, state) for chance, state in said if sum(state["earned"]) <= frontier]
    values, there = table.lookup(np.array([game.parse(state) for _, state in said]))
    assert there.all()
    totals: BySpins = {}
    weights: dict[int, float] = {}
    for (chance, state), value in zip(said, values, strict=True):
        spins = sum(state["earned"])
        totals[spins] = totals.get(spins, np.zeros(3)) + chance * value
        weights[spins] = weights.get(spins, 0.0) + chance
    return {spins: totals[spins] / weights[spins] for spins in sorted(totals)}


def on_a_line(known: BySpins, spins: int) -> Floats:
    """What lies at so many spins on the line through the last four that are known: three chances
    that add up to 1."""
    import numpy as np

    last = sorted(known)[-4:]
    values = np.polyval(
        np.polyfit(last, np.array([known[x] for x in last]), min(1, len(last) - 1)), spins
    )
    found: Floats = values.clip(0, 1) / values.clip(0, 1).sum()
    return found


def off(fine: Found, coarse: Found, spins: int) -> tuple[float, bool]:
    """How far a table is off a finer one at so many spins, the largest of all seats and scores; or
    where the finer one does not go so far, at the most that it does; and which of the two."""
    deepest = max(fine[SCORES[0]])
    at = min(spins, deepest)
    return max(float(abs(fine[s][at] - coarse[s][at]).max()) for s in fine), spins <= deepest


def seat_rows(found: list[Found], scores: tuple[int, ...]) -> list[tuple[str, ...]]:
    """The rows of a table: by spins in all, then over all that the questions give."""
    likely, rows, steps = chance_of(scores), [], list(pairwise(found))
    mean, sure = 0.0, 0.0
    for spins in range(1, MOST + 1):
        often = float(likely[spins])
        which = next((i for i, each in enumerate(found) if spins in each[scores]), None)
        if which is None:
            value, error, said = on_a_line(found[-1][scores], spins), "not measured", "extrapolated"
        else:
            value, sure = found[which][scores][spins], sure + often
            errors = [off(*pair, spins) for pair in steps[:which]]
            error = f"{sum(each for each, _ in errors):.3f}" * bool(errors)
            here = all(measured for _, measured in errors)
            said = CASES[which].name + "; error of fewer spins" * (not here)
        mean += often * value / float(1 - likely[0])
        chances = [f"{x:.3f}" for x in value]
        rows.append((str(spins), f"{often:.1%}", *chances, error, said))
    beyond = f"{1 - sure:.0%} of it extrapolated"
    return [*rows, ("all", "100%", *(f"{x:.3f}" for x in mean), "", beyond)]


def print_seats(found: list[Found]) -> None:
    """A table for each of `SCORES`; found: of each case, the finest first."""
    heads = ("spins in all", "how often", "first", "second", "third", "off by", "table")
    for scores in SCORES:
        said = ", ".join(f"${each:,}" for each in scores)
        title = f"Scores {said}: chance to win by seat"
        terminal.print_table(title, heads, seat_rows(found, scores), sys.stdout)
