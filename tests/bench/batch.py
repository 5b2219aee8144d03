"""The bench suite ``batch``: every action of random states, one at a time, in a batch, as JSON, and
of all rows in an export.

The table is that of suite ``probe``, 42.9 million states; its row groups do not all fit in what a
part remembers at first. States are drawn evenly from the whole table and asked in any order.
`PREDICTED` was written down before the first measurement on a machine that did nothing else.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.timing import best_of

PREDICTED = {"cold": 600, "warm": 2_000, "first": 10_000, "again": 110_000, "json": 20_000,
             "export": 170_000, "stored": 3_000_000}  # fmt: skip
"""States a second: of each line of the table."""
ONE_BY_ONE, MANY, ROWS = 2_000, 20_000, 1_500_000


def batch_suite(board: Path, results: Path) -> None:
    """Print the table."""
    import numpy as np

    from luckbase import cluster, solver

    solved = cluster.solve(solver.load_board(board, score_unit=500, frontier=2), results=results)
    rng = np.random.default_rng(0)
    with cluster.open_table(solved.table) as table:
        states = np.concatenate(list(table.draw(MANY, 0)))
        states = states[rng.permutation(len(states))]
        columns = table.game.state_columns(states)
        words = [table.game.describe(state) for state in states[:ONE_BY_ONE]]
        table.ask(words[0])
        table.parts[0].groups.close()
        ask = [_cpu(lambda: [table.ask(one) for one in words]) / len(words) for _ in range(2)]
        table.parts[0].groups.close()
        batch = _batch(columns)
        first = best_of(1, lambda: table.values(batch, actions=True)) / len(states)
        again = best_of(3, lambda: table.values(batch, actions=True)) / len(states)
        lines = best_of(2, lambda: [json.dumps(a.as_json()) for a in table.ask_all(batch)])
        seconds = {
            "cold": ask[0], "warm": min(ask), "first": first, "again": again,
            "json": lines / len(states), "export": _streamed(table.to_arrow(actions=True)),
            "stored": _streamed(table.to_arrow()),
        }  # fmt: skip
    shown = {
        "cold": "one question after the other, row groups not yet decoded (one core)",
        "warm": "the same questions again (one core)",
        "first": f"a batch of {MANY:,}, row groups not yet decoded",
        "again": "the same batch again",
        "json": "the same batch as JSON lines of full answers",
        "export": "rows of an export, every action",
        "stored": "rows of an export, only what is stored",
    }
    rows = [
        (text, f"{PREDICTED[name]:,}", f"{1 / seconds[name]:,.0f}") for name, text in shown.items()
    ]
    title = f"Every action of states of a table of {sentences.count(solved.ledger.rows)}"
    terminal.print_table(title, ("", "predicted, states/s", "states/s"), rows, sys.stdout)


def _batch(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(columns)


def _cpu(work: Callable[[], object]) -> float:
    """Processor seconds."""
    before = time.process_time()
    work()
    return time.process_time() - before


def _streamed(batches: Iterable[Any]) -> float:
    """Seconds a row of the first rows of a stream."""
    began, rows = time.perf_counter(), 0
    for batch in batches:
        rows += len(batch)
        if rows >= ROWS:
            break
    return (time.perf_counter() - began) / rows
