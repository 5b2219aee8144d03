"""``luckbase plan``: what a solve will take, before the night."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase import Planned, PlannedSearch


@options.with_options_of(luckbase.plan)
def plan(
    board: options.BoardFile,
    more: options.More = None,
    settings: options.Settings = None,
    start: options.From = None,
    results: options.Results = Path("results"),
    memory: options.Memory = None,
    as_json: options.Json = False,
    **how: Any,
) -> None:
    """Print states, bytes on disk, peak memory and time, of a table or a search; refuse what will
    not fit."""
    from luckbase.cluster.run.plan import Planned

    found = luckbase.plan(
        options.board_of(board, settings), options.read_start(start, more),
        memory=options.read_memory(memory), results=results, **how,
    )  # fmt: skip
    if as_json:
        render.print_json(found)
    elif isinstance(found, Planned):
        print_table(found)
    else:
        print_search(found)
    found.check()


def print_table(found: Planned) -> None:
    """Print the plan of a full table."""
    rows = [
        (level.name, str(level.shards), render.count(level.states), render.size(level.memory))
        for level in found.levels
    ]
    rows.append(("all", str(found.shards), render.count(found.states), ""))
    render.print_table(
        f"The plan for {found.board}", ("", "shards", "states", "memory a shard"), rows,
        sys.stdout,
    )  # fmt: skip
    print(f"table on disk   about {render.size(found.table_bytes)}")
    workers = render.many(found.workers, "thread")
    fullest = render.size(found.kept_bytes)
    print(f"kept payoffs    about {fullest} at their fullest, for shards that read them")
    print(f"peak memory     {render.size(found.peak_memory)} with {workers}")
    print(f"time            about {render.duration(found.seconds)}")


def print_search(found: PlannedSearch) -> None:
    """Print the plan of a search."""
    about = "" if found.exact else "more than " if found.at_least else "about "
    how = f"in {render.many(found.levels, 'level')}" if found.levels else "in one piece"
    how = "by levels" if found.levels is None else how
    print(f"The plan for a search on {found.board}")
    print(f"states          {about}{render.count(found.states)} {how}")
    print(f"table on disk   {about or 'about '}{render.size(found.table_bytes)}")
    if found.between_bytes:
        print(f"until it ends   {about or 'about '}{render.size(found.between_bytes)} more")
    workers = render.many(found.workers, "worker")
    print(f"peak memory     about {render.size(found.peak_memory)} with {workers}")
    print(f"time            {about or 'about '}{render.duration(found.seconds)}")
