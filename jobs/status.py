"""``luckbase status``: what is complete, partial or stale, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs import options, render


def status(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE...", help="Directories or board files; all if not given."),
    ] = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> int:
    """Say of each table whether it is complete, partial or stale, and why (exit code 1 if not all
    are complete and fresh)."""
    found = [_status_of(path) for path in _chosen(tables or [], results)]
    for one in found:
        if as_json:
            print(json.dumps(one))
            continue
        done = (
            f"{one['tiers']} of {one['tiers_in_all']} tiers, {render.count(one['states'])} states"
        )
        print(f"{one['state']:9s} {one['table']}  {done}, {render.size(one['bytes'])}")
        for reason in one["why"]:
            print(f"          {reason}")
    if not found and not as_json:
        print(f"no tables under {results}")
    return 0 if all(one["state"] == "complete" for one in found) else 1


def _chosen(names: list[str], results: Path) -> list[Path]:
    from solver.errors import MissingTableError, OptionError

    if not names:
        return options.tables_in(results)
    chosen: list[Path] = []
    for name in names:
        if Path(name).is_dir():
            chosen.append(Path(name))
            continue
        if not Path(name).exists():
            raise OptionError(f"{name}: no such table or board file")
        of_board = options.tables_of(Path(name), results)
        if not of_board:
            raise MissingTableError(f"{name}: no table of this board under {results}")
        chosen += of_board
    return chosen


def _status_of(path: Path) -> dict[str, Any]:
    from cluster.manifest import read_manifest
    from cluster.staleness import why_stale
    from solver.errors import CorruptTableError

    try:
        manifest = read_manifest(path)
    except CorruptTableError as error:
        return {
            "table": str(path), "state": "damaged", "tiers": 0, "tiers_in_all": 0, "states": 0,
            "bytes": 0, "why": [str(error)],
        }  # fmt: skip
    stale = why_stale(manifest)
    state = "stale" if stale else "complete" if manifest.complete else "partial"
    why = stale
    if state == "partial":
        words = "".join(f" --set {name}={value}" for name, value in manifest.settings.items())
        why = [f"goes on with: {render.program()} solve {manifest.board_file}{words}"]
    return {
        "table": str(path),
        "state": state,
        "tiers": len(manifest.files),
        "tiers_in_all": manifest.tiers,
        "states": manifest.rows,
        "bytes": manifest.bytes,
        "why": why,
    }
