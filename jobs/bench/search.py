"""The bench suite ``search``: from the root with no table, states a second, overlap, speed-up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from luckbase.jobs.terminal import render

QUESTIONS = (
    ("five spins", 250, "next", {"scores": "0,2000,3500", "earned": "0,3,2"}),
    ("three spins", 250, "next", {"scores": "2000,3000,6000", "earned": "0,3,0"}),
    ("three spins between two", 250, "next", {"scores": "0,10000,7000", "earned": "0,2,1"}),
    ("six spins", 250, "next", {"scores": "0,8000,3000", "earned": "0,6,0"}),
    ("five spins at $500", 500, "next", {"scores": "0,2000,3500", "earned": "0,3,2"}),
)
"""(what it is, score_unit, tied_pass, fields); source: docs/sources.md#numbers-of-this-project."""


def search_suite(board: Path, results: Path) -> None:
    """Print both tables."""
    from luckbase import cluster, solver

    rows = []
    for i, (title, unit, tied, words) in enumerate(QUESTIONS):
        game = solver.load_game(solver.load_board(board, score_unit=unit, tied_pass=tied))
        root = game.parse(words).reshape(1, -1)
        found = [_search(game, root, results / f"search-{i}-{k}", 1, 0) for k in range(2)]
        best = min(found, key=lambda one: one.solve_seconds)
        with cluster.open_table(best.table) as table:
            answer = table.answers(root)[0]
        assert answer.to_act is not None
        worth = [f"{a.name} {a.value[answer.to_act - 1]:.6f}" for a in answer.actions]
        rules = _rules_seconds(game, table_states(best.table))
        seconds = best.solve_seconds / best.states
        rows.append(
            (
                f"{title}, ${unit}", render.count(best.states),
                f"{best.edges / best.states:.1f}", f"{1e-6 / seconds:.2f}",
                f"{seconds / rules:.1f}", f"{best.bytes_a_state:.0f}",
                render.duration(best.solve_seconds), ", ".join(worth),
            )
        )  # fmt: skip
    heads = (
        "from the root, no table", "states", "edges a state", "M states/s", "x rules", "bytes",
        "time", "chance of the player up",
    )  # fmt: skip
    render.print_table("Search, one worker (bytes a state while solving)", heads, rows, sys.stdout)
    _workers(board, results)


def _workers(board: Path, results: Path) -> None:
    from luckbase import solver

    title, unit, tied, words = QUESTIONS[0]
    game = solver.load_game(solver.load_board(board, score_unit=unit, tied_pass=tied))
    root = game.parse(words).reshape(1, -1)
    rows = []
    alone = None
    for workers in (1, 2):
        for depth in (0, 1, 2, 4, 8):
            where = results / f"workers-{workers}-{depth}"
            found = _search(game, root, where, workers, depth)
            alone = alone or found.seconds
            rows.append(
                (
                    f"{workers}, level {depth}", str(found.shards), f"{found.overlap:.2f}",
                    render.duration(found.seconds), f"{alone / found.seconds:.2f}",
                )
            )  # fmt: skip
    heads = ("workers, split", "shards", "overlap", "time", "speed-up")
    render.print_table(f"Sharded: {title}, ${unit}", heads, rows, sys.stdout)


def _search(game: Any, root: Any, results: Path, workers: int, depth: int) -> Any:
    from luckbase import cluster

    return cluster.solve_below(
        game.board, root, results=results, workers=workers, depth=depth, force=True
    )


def table_states(path: Path) -> Any:
    """Up to 50,000 states of a table, drawn evenly."""
    import numpy as np

    from luckbase import cluster

    with cluster.open_table(path) as table:
        return np.concatenate(list(table.draw(50_000, 0)))


def _rules_seconds(game: Any, states: Any) -> float:
    """Seconds that the rules take to expand a state."""
    from luckbase.jobs.bench.timing import best_of
    from luckbase.solver.graph.bellman import expand

    return best_of(3, lambda: expand(game, states)) / len(states)
