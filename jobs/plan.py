"""``luckbase plan``: what a solve will take, before the night."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render


def plan(
    board: Annotated[Path, typer.Argument(metavar="BOARD", help="A board file.")],
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Shards at once; all cores if not given.", min=1)
    ] = None,
    memory: options.Memory = None,
    as_json: options.Json = False,
) -> None:
    """Print tiers, states, bytes on disk, peak memory and time; refuse what will not fit."""
    allowed = options.read_memory(memory)
    found = luckbase.plan(
        options.board_of(board, settings), workers=workers, memory=allowed, results=results
    )
    if as_json:
        print(json.dumps(found.as_json()))
    else:
        rows = [
            (level.name, str(level.shards), render.count(level.states), render.size(level.memory))
            for level in found.levels
        ]
        rows.append(("all", str(found.shards), render.count(found.states), ""))
        render.print_table(
            f"The plan for {found.board}", ("", "shards", "states", "memory a shard"), rows,
            sys.stdout,
        )  # fmt: skip
        how = "Ray workers" if found.ray else "threads of this process"
        print(f"table on disk   about {render.size(found.table_bytes)}")
        fullest = render.size(found.kept_bytes)
        print(f"kept payoffs    about {fullest} at their fullest, for shards that read them")
        print(f"peak memory     {render.size(found.peak_memory)} with {found.workers} {how}")
        print(f"time            about {render.duration(found.seconds)}")
    found.check()
