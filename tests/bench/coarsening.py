"""The bench suites ``coarsen`` and ``far``: how far coarser tables are off, how large, how fast.

Each rough table is compared with a good one where both have the state, by spins left; where four
levels are known, a line goes on from them to more spins, and says so. ``far`` solves a coarse table
of many spins, and compares it with searches on the fine board from a few roots.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.jobs import terminal
from luckbase.solver import sentences

if TYPE_CHECKING:
    from tests.bench.apart import Apart

SAMPLE = 200_000
"""States drawn evenly from each level of a rough table, about."""
FAR = 8
"""Spins that the last line goes on to."""

LEVELS_TO_GO_ON_FROM = 4
"""With fewer than so many levels measured, nothing is said of more spins."""


@dataclass(frozen=True)
class Case:
    """A good table (its outcomes: `best`), and rough ones: (score_unit, outcomes)."""

    unit: int
    frontier: int
    rough: tuple[tuple[int, str], ...]
    best: str = "all"


CASES = (
    Case(250, 2, ((250, "12"), (250, "8"), (250, "5"), (250, "three"),
                  (500, "all"), (500, "12"), (500, "7"), (500, "5"),
                  (1000, "all"), (1000, "8"), (1000, "6"), (1000, "5"))),
    Case(1000, 4, ((1000, "6"), (1000, "5"), (1000, "three"), (1000, "all")), "8"),
)  # fmt: skip


SEARCHED = "scores=0,2000,4000 earned=0,3,2"
"""Where the searches begin: five spins in two hands."""
SEARCHES = ((250, "all"), (250, "12"), (250, "8"), (250, "5"), (500, "12"), (1000, "8"))
"""(score_unit, outcomes), the good one first."""


def coarsen_suite(board: Path, results: Path) -> None:
    """Print a table a case, and one of searches."""
    results.mkdir(parents=True, exist_ok=True)
    _searches(board, results)
    for case in CASES:
        _print(board, case, results)


def _searches(board: Path, results: Path) -> None:
    """One root by searches on coarser boards: states, edges, time, and what the root is worth."""
    from luckbase import cluster, solver
    from luckbase.jobs.app import read_fields

    rows: list[tuple[str, ...]] = []
    good: dict[str, float] = {}
    for unit, outcomes in SEARCHES:
        read = solver.load_board(board, score_unit=unit, outcomes=outcomes)
        fields = read_fields(SEARCHED.split())
        with tempfile.TemporaryDirectory(dir=results) as folder:
            state = solver.load_game(read).parse(fields).reshape(1, -1)
            found = cluster.solve_below(read, state, results=Path(folder), workers=1, force=True)
            with cluster.open_table(found.table) as table:
                answer = table.ask(fields)
        assert answer.to_act is not None
        own = {action.name: action.value[answer.to_act - 1] for action in answer.actions}
        good = good or own
        rows.append(
            (
                f"${unit}, {outcomes}", sentences.count(found.states), sentences.count(found.edges),
                sentences.duration(found.solve_seconds),
                *(f"{own[name]:.4f} ({own[name] - good[name]:+.4f})" for name in good),
            )
        )  # fmt: skip
    heads = ("board", "states", "edges", "time", *good)
    title = f"Searches from {SEARCHED}, one worker; chances of the player up"
    terminal.print_table(title, heads, rows, sys.stdout)


def _print(board: Path, case: Case, results: Path) -> None:
    from luckbase import cluster

    good = _solved(board, results, case.unit, case.frontier, case.best)
    heads = (
        "board", "spins left", "mean error", "99% below", "largest", "decides otherwise",
        "costs, mean", "at most", "states", "on disk", "time",
    )  # fmt: skip
    rows = [(f"${case.unit}, {case.best} (good)", f"1 to {case.frontier}", *[""] * 6, *_size(good))]
    with cluster.open_table(good.table) as exact:
        for unit, outcomes in case.rough:
            with tempfile.TemporaryDirectory(dir=results) as folder:  # one at a time on the disk
                rough = _solved(board, Path(folder), unit, case.frontier, outcomes)
                with cluster.open_table(rough.table) as table:
                    found = measured(exact, table, SAMPLE)
            name = f"${unit}, {outcomes}"
            for level, one in found.items():
                size = _size(rough) if level == case.frontier else ("", "", "")
                rows.append((name, str(level), *numbers(one), *size))
            if len(found) >= LEVELS_TO_GO_ON_FROM:
                rows.append((name, f"{FAR}, extrapolated", *beyond(found, FAR), *[""] * 3))
    title = f"Against ${case.unit} with {case.best} outcomes, frontier {case.frontier}"
    terminal.print_table(title, heads, rows, sys.stdout)


def _solved(board: Path, results: Path, unit: int, frontier: int, outcomes: str) -> Any:
    from luckbase import cluster, solver

    read = solver.load_board(board, score_unit=unit, frontier=frontier, outcomes=outcomes)
    return cluster.solve(read, results=results, force=True)


def _size(solved: Any) -> tuple[str, str, str]:
    files = solved.ledger.files.values()
    written = sum(entry.bytes for entry in files)
    return (
        sentences.count(solved.states),
        sentences.size(written),
        sentences.duration(solved.seconds),
    )


def measured(exact: Any, table: Any, sample: int) -> dict[int, Apart]:
    """How far a table is from an exact one, by level: about `sample` states of each are drawn from
    the one with fewer."""
    from tests.bench.apart import apart

    return apart(exact, table, drawn(table, exact, sample))


def drawn(table: Any, exact: Any, sample: int) -> Any:
    """States of a full table, about as many of each level, as the exact table's game has them."""
    import numpy as np

    layout = table.full.layout
    levels: dict[int, list[Any]] = {}
    for tier in layout.tiers():
        levels.setdefault(next(iter(layout.tier_fields(tier).values())), []).append(tier)
    rng = np.random.default_rng(0)
    for tiers in levels.values():
        ends = np.cumsum([layout.rows(tier) for tier in tiers])
        rows = np.sort(rng.integers(0, ends[-1], min(sample, int(ends[-1]))))
        owner = np.searchsorted(ends, rows, side="right")
        for i in np.unique(owner):
            own = rows[owner == i] - (ends[i] - layout.rows(tiers[i]))
            states = layout.states_at(tiers[i], np.unique(own))
            yield exact.game.known_states(table.game.fields.values(states))[0]


def numbers(one: Apart) -> tuple[str, ...]:
    """A level's numbers as they are printed."""
    return (
        f"{one.mean:.5f}", f"{one.high:.4f}", f"{one.most:.4f}",
        f"{one.others / max(1, one.decisions):.2%}", f"{one.cost:.6f}", f"{one.most_cost:.4f}",
    )  # fmt: skip


def beyond(found: dict[int, Apart], far: int) -> tuple[str, ...]:
    """The numbers at a level beyond those that were measured, on the straight line through the last
    two; only means, for the largest need not follow one."""
    last = max(found)
    means = []
    for name in ("mean", "cost"):
        now, then = getattr(found[last], name), getattr(found[last - 1], name)
        means.append(max(0.0, now + (now - then) * (far - last)))
    return f"{means[0]:.5f}", "", "", "", f"{means[1]:.6f}", ""


FAR_UNIT, FAR_OUTCOMES, FINE_UNIT = 1000, "8", 250
ROOTS = (
    "scores=3000,8000,5000 earned=0,8,0 whammies=2,2,2",
    "scores=5000,9000,7000 earned=3,3,2 whammies=2,3,2",
    "scores=2000,6000,9000 earned=0,5,3 whammies=3,2,2",
    "scores=6000,9000,8000 earned=0,0,8 whammies=3,1,2",
    "scores=3000,7000,4000 earned=2,6,0 whammies=3,2,3",
    "scores=6000,9000,0 earned=4,4,0 whammies=0,0,4",
    "scores=6000,4000,0 earned=2,6,0 whammies=1,0,4",
)
"""Eight spins in all; whammies keep a search from a root at 2 to 10 million states."""
LEVEL_HEADS = (
    "spins left", "states in both", "mean error", "99% below", "largest", "decides otherwise",
    "costs, mean", "at most",
)  # fmt: skip


def far_suite(board: Path, results: Path) -> None:
    """Print what the roots are worth by a coarse table and by searches, and both by spins left."""
    from luckbase import cluster

    heads = (
        "root", "player up", "by search", "by the coarse table", "apart", "search", "table",
        "costs", "states searched", "time",
    )  # fmt: skip
    rows, pieces = [], []
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=results) as folder:
        coarse = _solved(board, Path(folder), FAR_UNIT, FAR, FAR_OUTCOMES)
        with cluster.open_table(coarse.table) as table:
            for i, root in enumerate(ROOTS):
                with tempfile.TemporaryDirectory(dir=results) as own:
                    row, found = _root(board, Path(own), root, table)
                rows.append((f"{i + 1}", *row))
                pieces.append(found)
    size, written, seconds = _size(coarse)
    title = (
        f"${FAR_UNIT}, {FAR_OUTCOMES} outcomes, frontier {FAR}: {size} states, {written}, {seconds}"
        f"; against searches at ${FINE_UNIT}"
    )
    terminal.print_table(title, heads, rows, sys.stdout)
    for i, root in enumerate(ROOTS):
        print(f"{i + 1}: {root}")
    print()
    title = "All states of these searches that both have"
    terminal.print_table(title, LEVEL_HEADS, _by_level(pieces), sys.stdout)


def _root(board: Path, results: Path, root: str, table: Any) -> tuple[list[str], Any]:
    """A root's row, and how far the coarse table is from its search by level."""
    from luckbase import cluster, solver
    from luckbase.jobs.app import read_fields
    from tests.bench.apart import apart

    fields = read_fields(root.split())
    game = solver.load_game(solver.load_board(board, score_unit=FINE_UNIT))
    state = game.parse(fields).reshape(1, -1)
    found = cluster.solve_below(game.board, state, results=results, force=True)
    with cluster.open_table(found.table) as exact:
        fine, rough = exact.ask(fields), table.ask(fields)
        assert fine.to_act is not None
        chance = [answer.value[fine.to_act - 1] for answer in (fine, rough)]
        own = {action.name: action.value[fine.to_act - 1] for action in fine.actions}
        row = [
            str(fine.to_act), *(f"{one:.4f}" for one in chance), f"{chance[1] - chance[0]:+.4f}",
            str(fine.best), str(rough.best), f"{max(own.values()) - own[str(rough.best)]:.4f}",
            sentences.count(found.states), sentences.duration(found.seconds),
        ]  # fmt: skip
        return row, apart(exact, table, _on_grid(exact, FAR_UNIT // FINE_UNIT))


def _on_grid(exact: Any, times: int) -> Any:
    """All states of a search whose scores are whole units of a coarser grid, in pieces."""
    scores = [i for i, name in enumerate(exact.game.columns) if name.startswith("scores")]
    for states in exact.draw(exact.rows, 0):
        coarse = states[(states[:, scores] % times == 0).all(axis=1)]
        if len(coarse):
            yield coarse


def _by_level(pieces: list[dict[int, Apart]]) -> list[tuple[str, ...]]:
    from tests.bench.apart import together

    rows = []
    for level in sorted({level for piece in pieces for level in piece}):
        one = together(piece[level] for piece in pieces if level in piece)
        rows.append((str(level), sentences.count(one.states), *numbers(one)))
    return rows
