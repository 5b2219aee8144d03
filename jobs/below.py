"""What ``luckbase solve --from`` does: the search below some states, and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.search.solve import Searched
    from luckbase.solver.board.model import Board

Search = tuple[list[str] | None, str, int | None, str | None, int | None]
"""--from, --depth, --max-depth, --using, --max-states."""


def solve_below(
    board: Board,
    search: Search,
    results: Path,
    workers: int | None,
    address: str | None,
    force: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Solve what lies below the states of --from, or the start; print the table's directory."""
    from luckbase import cluster
    from luckbase.solver import load_game
    from luckbase.solver.errors import OptionError

    start, depth, max_depth, using, max_states = search
    if depth != "auto" and not (depth.isascii() and depth.isdigit() and len(depth) < 6):
        raise OptionError(f"--depth: '{depth[:30]}' is not auto or a whole number from 0")
    more: dict[str, Any] = {} if max_states is None else {"max_states": max_states}
    with render.progress(board.name) as on_progress:
        solved = cluster.solve_below(
            board,
            options.read_roots(load_game(board), start),
            depth=None if depth == "auto" else int(depth),
            max_depth=max_depth,
            using=None if using is None else _table_used(using, board, results),
            results=results,
            workers=workers,
            address=address,
            force=force,
            check=check,
            on_progress=on_progress,
            **more,
        )
    if as_json:
        print(json.dumps(as_values(solved)))
    else:
        _summary(solved)
        print(render.shown(solved.table))


def _table_used(name: str, board: Board, results: Path) -> Path:
    """The table that ``--using`` names: a directory, or the board file that is solved, whose table
    is the one with the same rules."""
    from luckbase.cluster.table.find import table_of

    source = board.source
    if (
        not Path(name).is_dir()
        and source is not None
        and Path(name).absolute() == Path(source.file)
    ):
        found = table_of(board, results)
        if found is not None:
            return found
    return options.find_table(name, results, None).path


def as_values(solved: Searched) -> dict[str, Any]:
    """The report as JSON values."""
    from luckbase.cluster.table.table import open_table

    ledger = solved.ledger
    with open_table(solved.table, named_by_board=True) as opened:
        said = opened.origin.as_json()
    return said | {
        "table": str(solved.table),
        "states": sum(entry.rows for entry in ledger.of_part(solved.goal.part)),
        "bytes": sum(entry.bytes for entry in ledger.of_part(solved.goal.part)),
        "kept": solved.kept,
        "solved_now": solved.states,
        "damaged": list(solved.damaged),
        "edges": solved.edges,
        "overlap": round(solved.overlap, 4),
        "depth": solved.depth,
        "shards": solved.shards,
        "seconds": round(solved.seconds, 3),
        "solve_seconds": round(solved.solve_seconds, 3),
        "bytes_a_state": round(solved.bytes_a_state, 1),
        "peak_memory": solved.peak_memory,
        "workers": solved.workers,
        "ray": solved.ray,
    }


def _summary(solved: Searched) -> None:
    ledger, say = solved.ledger, render.say
    name, roots = ledger.head.board, solved.goal.roots
    entries = ledger.of_part(solved.goal.part)
    assert roots is not None
    for fault in solved.damaged[:5]:
        say(f"{name}: damaged, and solved again: {fault}")
    if len(solved.damaged) > 5:
        say(f"{name}: and {len(solved.damaged) - 5} more")
    if not solved.states:
        table = render.shown(solved.table)
        say(f"{name}: nothing to do: all of it is there, {table}")
        return
    n = len(roots.start)
    below = "one state" if n == 1 else f"{n} states"
    cut = ""
    if roots.max_depth is not None:
        cut = f", cut {solved.depth} levels down, with bounds"
    say(f"{name}: {render.count(solved.states)} states below {below}{cut}")
    if solved.kept:
        say(f"  grown        kept {render.count(solved.kept)}, new {render.count(solved.states)}")
    how = f"{solved.workers} Ray workers" if solved.ray else f"{solved.workers} threads"
    say(f"  time         {render.duration(solved.seconds)} with {how}")
    if solved.solve_seconds:
        rate = solved.solved / solved.solve_seconds / 1e6
        per = solved.edges / max(solved.solved, 1)
        say(f"  speed        {rate:.2f} M states/s a worker in the search, {per:.1f} edges a state")
    say(
        f"  frontier     level {solved.depth}, {solved.shards} shards, overlap "
        f"{solved.overlap:.2f} (states solved over distinct states)"
    )
    stored = sum(entry.bytes for entry in entries)
    size = stored / max(sum(entry.rows for entry in entries), 1)
    say(f"  size         {render.size(stored)}, {size:.1f} bytes a state, Parquet")
    say(
        f"  memory       {render.size(solved.peak_memory)} at most, "
        f"{solved.bytes_a_state:.0f} bytes a state while solving"
    )
    if roots.max_depth is None:
        say(f"  accuracy     payoffs within {ledger.error(solved.goal.part):.1e}")
