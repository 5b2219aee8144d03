"""The bench suite ``roofline``: what the dense kernel and the search need of the machine, beside
what the machine gives to loops that do nothing else; one core.

The floor of the kernel is the longer of its multiply-adds, at the rate of its inner loop on rows in
the second-level cache, and of its bytes, at the rate of a triad. The floor of a search is the rules
alone, and one read of memory in any order for each edge and each state, of a table as large as its
own, all under way at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.games.press_your_luck.kernel import CHUNK, add_taps
from luckbase.solver.games.press_your_luck.layout import Planes
from tests.bench.choosing import planes_of
from tests.bench.search import LARGE, _rules_seconds, large_search, table_states
from tests.bench.timing import best_of

RUNS = 5
TRIAD = 1 << 24
"""Elements of each of the three arrays, far beyond every cache."""
TAPS, ROWS, ROUNDS = 12, 64, 4000
"""Multiply-adds to an element, as many rows of 4 kB to take them from, and how often."""
WRITTEN, READ = 3 * 8 * 2, 8 * 2
"""Bytes of memory a state: two payoffs read and written, in a cache line that is fetched before,
and those of the tier below read once."""
SLOT = 12
"""Bytes of a state's key and number in the table of a search."""


def roofline_suite(board: Path, results: Path) -> None:
    """Print both tables."""
    rates = {"GB/s": _triad(), "ns a multiply-add": _multiply_add()}
    rows = [_kernel(unit, frontier, **rates) for unit, frontier in ((500, 3), (250, 3))]
    heads = ("largest tier", "multiply-adds", "their ns", "bytes", "their ns", "floor", "kernel",
             "of it")  # fmt: skip
    title = f"Kernel, ns a state; {rates['GB/s']:.1f} GB/s, {rates['ns a multiply-add']:.3f} ns"
    terminal.print_table(f"{title} a multiply-add", heads, rows, sys.stdout)
    terminal.print_table(
        "Search, ns a state",
        ("search", "states", "edges", "rules", "ns a read", "reads", "floor", "search", "of it"),
        list(_searches(board, results)),
        sys.stdout,
    )


def processor(work: Callable[[], object]) -> float:
    """The least processor seconds of `RUNS`."""
    return best_of(RUNS, work, time.process_time)


@njit(cache=True)
def _add(out: Floats, left: Floats, right: Floats) -> None:
    for i in range(out.size):
        out[i] = left[i] + 1.5 * right[i]


@njit(cache=True)
def _sum_taps(out: Floats, rows: Floats, weights: Floats, starts: Ints, rounds: int) -> None:
    for k in range(rounds):
        add_taps(out, rows, 0, out.size, starts[k % 8 :], weights, 0, weights.size)


@njit(cache=True)
def _gather(table: Ints, places: Ints) -> int:
    found = 0
    for place in places:
        found += table[place]
    return found


def _triad() -> float:
    """GB of memory a second; a line that is written is read before."""
    out, left, right = np.zeros(TRIAD), np.ones(TRIAD), np.ones(TRIAD)
    _add(out[:1], left, right)
    return 4 * out.nbytes / processor(lambda: _add(out, left, right)) / 1e9


def _multiply_add() -> float:
    """Nanoseconds of one in the kernel's own inner loop, on rows in the second-level cache."""
    rng = np.random.default_rng(0)
    out, rows = np.zeros(CHUNK), rng.random(ROWS * CHUNK)
    weights, starts = rng.random(TAPS) / TAPS, rng.permutation(ROWS)
    work = partial(_sum_taps, out, rows, weights, starts, ROUNDS)
    work()
    return processor(work) / (ROUNDS * TAPS * CHUNK) * 1e9


def _kernel(unit: int, frontier: int, **rates: float) -> tuple[str, ...]:
    """The largest tier, over random payoffs, whose kernel's time does not depend on them."""
    layout = planes_of("1985-02", score_unit=unit, frontier=frontier)
    layout.compile()
    tier = max(layout.tiers(), key=layout.rows)
    rng = np.random.default_rng(0)
    shapes = {child: layout.shape(child) for child in layout.children(tier)}
    below = {shape: rng.random(shape) / 2 for shape in set(shapes.values())}
    out = np.zeros(layout.shape(tier))
    work = partial(layout.solve_tier, tier, out, lambda child: below[shapes[child]], lambda: False)
    found = processor(work) / layout.rows(tier) * 1e9
    adds = 2 * layout.outcomes.distinct
    of_adds, size = adds * rates["ns a multiply-add"], WRITTEN + READ * _share_below(layout, tier)
    floor = max(of_adds, size / rates["GB/s"])
    return (
        f"${unit}, {sentences.count(layout.rows(tier))}", str(adds), f"{of_adds:.1f}",
        f"{size:.0f}", f"{size / rates['GB/s']:.1f}", f"{floor:.1f}", f"{found:.1f}",
        f"{floor / found:.0%}",
    )  # fmt: skip


def _share_below(layout: Planes, tier: Any) -> float:
    """Rows of the tier of a spin less for one of this."""
    return layout.rows(replace(tier, spins=tier.spins - 1)) / layout.rows(tier)


def _searches(board: Path, results: Path) -> Iterator[tuple[str, ...]]:
    from luckbase import solver

    game = solver.load_game(solver.load_board(board, score_unit=LARGE[1], tied_pass=LARGE[2]))
    rules = read = 0.0
    for name, how in (("in one piece", {"one_piece": 1 << 40}), ("by stages", {"one_piece": 0})):
        started = time.process_time()
        found = large_search(board, results / name.replace(" ", "-"), workers=1, **how)
        took = (time.process_time() - started) / found.states * 1e9
        if not read:
            rules = _rules_seconds(game, table_states(found.table)) * 1e9
            read = _read(found.states * SLOT * 2)
        reads = found.edges / found.states + 1
        floor = rules + reads * read
        yield (
            f"{LARGE[0]}, {name}", sentences.count(found.states), f"{reads - 1:.1f}",
            f"{rules:.0f}", f"{read:.1f}", f"{reads * read:.0f}", f"{floor:.0f}", f"{took:.0f}",
            f"{floor / took:.0%}",
        )  # fmt: skip


def _read(size: int) -> float:
    """Nanoseconds of a read anywhere in so many bytes, where none waits for another."""
    table = np.zeros(size // 8, np.int64)
    table[:] = 1
    places = np.random.default_rng(0).integers(0, table.size, 1 << 22)
    _gather(table, places[:1])
    return processor(lambda: _gather(table, places)) / places.size * 1e9
