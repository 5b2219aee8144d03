"""What ``luckbase solve --from`` does: the search below some states, and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import options, render

if TYPE_CHECKING:
    from cluster.search import Searched
    from solver.board import Board

Search = tuple[list[str] | None, str, int | None, str | None, int | None]
"""--from, --depth, --max-depth, --using, --max-states."""


def solve_below(
    path: Path,
    board: Board,
    settings: dict[str, str],
    search: Search,
    results: Path,
    workers: int | None,
    address: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Solve what lies below the states of --from, or the start; print the table's directory."""
    import cluster
    from solver import load_game
    from solver.errors import OptionError

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
            using=None if using is None else options.find_table(using, results)[0],
            results=results,
            workers=workers,
            address=address,
            force=force,
            board_file=str(path.absolute()),
            settings=settings,
            on_progress=on_progress,
            **more,
        )
    if as_json:
        print(json.dumps(as_values(solved)))
    else:
        _summary(solved)
        print(render.shown(solved.table))


def as_values(solved: Searched) -> dict[str, Any]:
    """The report as JSON values."""
    manifest = solved.manifest
    return {
        "board": manifest.board,
        "table": str(solved.table),
        "states": manifest.rows,
        "bytes": manifest.bytes,
        "solved_now": solved.states,
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
    manifest, say = solved.manifest, render.say
    roots = manifest.roots
    assert roots is not None
    if not solved.states:
        table = render.shown(solved.table)
        say(f"{manifest.board}: nothing to do: the table is complete, {table}")
        return
    n = len(roots.start)
    below = "one state" if n == 1 else f"{n} states"
    cut = ""
    if roots.max_depth is not None:
        cut = f", cut {solved.depth} levels down, with bounds"
    say(f"{manifest.board}: {render.count(solved.states)} states below {below}{cut}")
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
    size = manifest.bytes / max(manifest.rows, 1)
    say(f"  size         {render.size(manifest.bytes)}, {size:.1f} bytes a state, Parquet")
    say(
        f"  memory       {render.size(solved.peak_memory)} at most, "
        f"{solved.bytes_a_state:.0f} bytes a state while solving"
    )
    if roots.max_depth is None:
        say(f"  accuracy     payoffs within {manifest.payoff_error:.1e}")
