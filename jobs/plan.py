"""``luckbase plan``: what a solve will take, before the night."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

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
    from luckbase.cluster.run.driver import MEMORY_SHARE
    from luckbase.cluster.run.opening import check_room, free_memory
    from luckbase.cluster.run.plan import make_plan
    from luckbase.cluster.table.ledger import table_directory
    from luckbase.cluster.table.storage import Folder
    from luckbase.solver import load_layout
    from luckbase.solver.board.file import read_board

    allowed = options.read_memory(memory)
    layout = load_layout(read_board(board, options.read_settings(settings)))
    count = workers or os.cpu_count() or 1
    made = make_plan(layout, count)
    budget = allowed if allowed is not None else int(free_memory() * MEMORY_SHARE)
    levels: dict[Any, list[int]] = {}
    tiers = layout.tiers()
    for shard, (index, _) in zip(made.shards, made.parts, strict=True):
        fields = layout.tier_fields(tiers[index])
        none = (layout.tier_name(tiers[index]), "")
        level = levels.setdefault(next(iter(fields.items()), none), [0, 0, 0])
        level[0] += 1
        level[1] += shard.rows
        level[2] = max(level[2], shard.memory)
    if as_json:
        said = {
            "board": layout.game.board.name,
            "tiers": len(tiers),
            "shards": len(made.shards),
            "states": made.rows,
            "table_bytes": made.table_bytes,
            "scratch_bytes": made.scratch_bytes,
            "peak_memory": made.peak_memory(count),
            "seconds": round(made.wall_seconds(count), 1),
            "workers": count,
            "ray": not made.in_process(count),
        }
        print(json.dumps(said))
    else:
        rows = [
            (f"{name} {value}".strip(), str(n), render.count(states), render.size(most))
            for (name, value), (n, states, most) in sorted(levels.items())
        ]
        rows.append(("all", str(len(made.shards)), render.count(made.rows), ""))
        render.print_table(
            f"The plan for {layout.game.board.name}",
            ("", "shards", "states", "memory a shard"), rows, sys.stdout,
        )  # fmt: skip
        how = "Ray workers" if not made.in_process(count) else "threads of this process"
        print(f"table on disk   about {render.size(made.table_bytes)}")
        fullest = render.size(made.scratch_bytes)
        print(f"scratch on disk about {fullest} at its fullest, gone at the end")
        print(f"peak memory     {render.size(made.peak_memory(count))} with {count} {how}")
        print(f"time            about {render.duration(made.wall_seconds(count))}")
    table = table_directory(results.absolute(), layout.game)
    there = set(Folder(table).list("tiers"))
    todo = [i for i, name in enumerate(made.files) if name not in there]
    check_room(made, budget, table, layout.smaller, todo)
