"""The bench suite ``seats``: what a seat is worth at the start of round 2, by score and spins left.

The spins are those that the questions give (`solver.games.press_your_luck.start`); of each number
of spins in all the expected chance to win is taken, a seat. A table that goes so far is coarse:
`CASES` are solved one after the other, each in a folder that is removed, and beside every number
stands how far coarser tables were off where a finer one has the same states. What lies beyond the
deepest table, and the error beyond the finer ones, goes on along a straight line, and says so.
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
    from luckbase.solver.games.press_your_luck.start import Start

    found: dict[int, Fraction] = {}
    for chance, state in Start(scores=scores).states():
        spins = sum(state["earned"])
        found[spins] = found.get(spins, Fraction(0)) + chance
    return found


def seats(table: Any, scores: tuple[int, ...]) -> BySpins:
    """The expected chances to win by spins in all, as far as the table goes."""
    import numpy as np

    from luckbase.solver.games.press_your_luck.start import Start

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


def on_a_line(known: Mapping[int, Any], spins: int) -> Any:
    """What is known of so many spins, or lies there on the line through the last four that are."""
    import numpy as np

    if spins in known:
        return known[spins]
    last = sorted(known)[-4:]
    return np.polyval(np.polyfit(last, np.array([known[x] for x in last]), 1), spins)


def errors(found: list[dict[tuple[int, ...], BySpins]], spins: int) -> tuple[float, bool]:
    """How far the deepest table is off at so many spins, the largest of all seats and scores: a
    step from each table to the next finer one, added up; and whether that was measured whole."""
    total, measured = 0.0, True
    for fine, coarse in pairwise(found):
        known = {
            n: max(float(abs(fine[s][n] - coarse[s][n]).max()) for s in fine)
            for n in fine[SCORES[0]]
        }
        total += max(float(on_a_line(known, spins)), 0.0)
        measured &= spins in known
    return total, measured


def print_seats(found: list[dict[tuple[int, ...], BySpins]]) -> None:
    """A table for each of `SCORES`: by spins in all, then over all that the questions give."""
    deep = found[-1]
    heads = ("spins in all", "how often", "first", "second", "third", "off by at most about", "")
    for scores in SCORES:
        rows, mean, off = [], 0.0, 0.0
        likely = chance_of(scores)
        for spins in range(1, MOST + 1):
            value, (error, measured) = on_a_line(deep[scores], spins), errors(found, spins)
            value = value.clip(0, 1) / value.clip(0, 1).sum()
            mean, off = mean + float(likely[spins]) * value, off + float(likely[spins]) * error
            solved = "" if spins in deep[scores] else "extrapolated"
            error_said = f"{error:.3f}{'' if measured else ', extrapolated'}"
            rows.append((
                str(spins), f"{float(likely[spins]):.1%}", *(f"{x:.3f}" for x in value),
                error_said, solved,
            ))  # fmt: skip
        beyond = float(sum(c for spins, c in likely.items() if spins not in deep[scores]))
        rows.append((
            "all", "100%", *(f"{x:.3f}" for x in mean), f"{off:.3f}, extrapolated",
            f"{beyond:.0%} of it extrapolated",
        ))  # fmt: skip
        said = ", ".join(f"${each:,}" for each in scores)
        terminal.print_table(f"Scores {said}, by seat", heads, rows, sys.stdout)
