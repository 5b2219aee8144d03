"""The bench suites ``workers`` and ``replay``: Ray against threads; what more cores would give."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from luckbase.jobs import terminal
from luckbase.solver import sentences

UNIT, FRONTIER = 500, 5
CORES = (16, 128, 1024)
DRIVER_RATE = 0.5e9
"""Bytes a second that a disk of the driver takes."""
CASES: tuple[dict[str, object], ...] = (
    {"score_unit": UNIT, "frontier": FRONTIER},
    {"score_unit": 250, "frontier": 8},
    {"cards": 13},
    {"cards": 16},
)
"""Settings of which those are taken that the board has."""


def workers_suite(board: Path, results: Path) -> None:
    """One table by threads of this process and by Ray's workers on this machine, in turns, each
    where none is there yet and all that was written before is on the disk."""
    from luckbase import cluster, solver
    from luckbase.cluster.machine import cores

    read = solver.load_board(board, score_unit=UNIT, frontier=FRONTIER)
    count = max(2, cores())
    found: dict[str, list[tuple[float, float]]] = {"threads": [], "Ray": []}
    for _ in range(2):
        for kind in found:
            shutil.rmtree(results / "workers", ignore_errors=True)
            os.sync()
            began = time.perf_counter()
            solved = cluster.solve(
                read, results=results / "workers", workers=count,
                address=None if kind == "threads" else "local",
            )  # fmt: skip
            found[kind].append((time.perf_counter() - began, solved.peak_memory))
    least = {kind: min(runs) for kind, runs in found.items()}
    rows = [
        (
            kind,
            sentences.duration(wall),
            sentences.size(memory),
            f"{wall / least['threads'][0]:.2f}",
        )
        for kind, (wall, memory) in least.items()
    ]
    heads = ("workers", "time", "memory", "x threads")
    title = f"${UNIT}, frontier {FRONTIER}, {count} workers; the better of two, in turns"
    terminal.print_table(title, heads, rows, sys.stdout)


def replay_suite(board: Path, results: Path) -> None:
    """Times of shards, measured where there is a table under `results`, through the schedule."""
    from pydantic import BaseModel

    from luckbase import solver
    from luckbase.cluster.run.tiers import make_plan
    from tests.bench.replay import Costs, bound_by_rows, planned_seconds, replay

    known = {name: None for _, part in solver.load_board(board) if isinstance(part, BaseModel)
             for name, _ in part}  # fmt: skip
    cases = [case for case in CASES if case.keys() <= known.keys()] or [{}]
    rows = []
    for settings in cases:
        layout = solver.load_layout(solver.load_board(board, **settings))
        plan = make_plan(layout, faces=True)
        seconds = measured_seconds(layout, plan, results) or planned_seconds(layout, plan)
        bound = bound_by_rows(layout, plan)
        title = " ".join(f"{name}={value}" for name, value in settings.items())
        for count in CORES:
            run = replay(layout, plan, seconds, count)
            by_driver = replay(layout, plan, seconds, count, Costs(file_rate=DRIVER_RATE))
            rows.append(
                (f"{board.stem} {title}", str(count), sentences.duration(run.seconds),
                 sentences.duration(by_driver.seconds),
                 f"{run.work / run.seconds:.1f}", f"{run.efficiency:.0%}", run.limit,
                 f"{bound:.0f}")
            )  # fmt: skip
    heads = (
        "table",
        "cores",
        "time",
        "files by the driver",
        "times one core",
        "efficiency",
        "limit",
        "bound by rows",
    )
    terminal.print_table("Replayed: 16 cores a node, 10 Gbit/s", heads, rows, sys.stdout)
    _searches(board, results)


def _searches(board: Path, results: Path) -> None:
    """The same of a large search by stages, which is made."""
    from tests.bench.search import large_search
    from tests.bench.search_replay import print_replayed, recording

    with recording() as found:
        large_search(board, results)
    print_replayed(found[0], CORES)


def measured_seconds(layout: Any, plan: Any, results: Path) -> list[tuple[float, float]]:
    """Of each shard, as the ledger of the board's table has them; none where not all is there."""
    from luckbase.cluster.table.entries import read_ledger
    from luckbase.cluster.table.ledger import table_directory
    from luckbase.cluster.table.storage import Folder
    from luckbase.solver.errors import TableError

    path = table_directory(results.absolute(), layout.game)
    try:
        files = read_ledger(Folder(path), path).files
        taken = [[files[name].seconds for name in names] for names in plan.files]
        return [(sum(one["solve"] for one in of), sum(one["write"] for one in of)) for of in taken]
    except (TableError, KeyError):
        return []
