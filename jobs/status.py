"""``luckbase status``: what is complete, partial, stale or damaged, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.table.ledger import Ledger
    from luckbase.cluster.table.lines import Goal


def status(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE...", help="Directories or board files; all if not given."),
    ] = None,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> int:
    """Say of each table whether it is complete, partial, stale or damaged, and why (exit code 1 if
    not all are complete and fresh)."""
    found = [_status_of(path) for path in _chosen(tables or [], results, settings)]
    for one in found:
        if as_json:
            print(json.dumps(one))
            continue
        options_said = "".join(f" {name}={_word(v)}" for name, v in one["options"].items())
        of = "" if one["tiers"] == one["tiers_in_all"] else f"{one['tiers']} of "
        files = f"{of}{render.many(one['tiers_in_all'], 'tier')}, " if one["tiers_in_all"] else ""
        below = f"below {render.many(one['roots'], 'root')}, " if one["roots"] else ""
        print(
            f"{one['state']:9s} {one['table']}{options_said}  {files}{below}"
            f"{render.count(one['states'])} states, {render.size(one['bytes'])}"
        )
        for reason in one["why"]:
            print(f"          {reason}")
    if not found and not as_json:
        print(f"no tables under {results}")
    return 0 if all(one["state"] == "complete" for one in found) else 1


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _chosen(names: list[str], results: Path, settings: list[str] | None) -> list[Path]:
    """The folders of what was named: of a board file all tables, with ``--set`` the one with
    these rules."""
    from luckbase.cluster.table.find import find_table, tables_in, tables_of
    from luckbase.solver.board.file import read_board
    from luckbase.solver.errors import MissingTableError, OptionError

    if not names:
        return tables_in(results)
    chosen: list[Path] = []
    for name in names:
        if Path(name).is_dir():
            chosen.append(Path(name))
            continue
        if not Path(name).exists():
            raise OptionError(f"{name}: no such table or board file")
        chosen_options = options.read_settings(settings)
        if chosen_options:
            chosen.append(find_table(name, results, chosen_options).path)
            continue
        of_board = tables_of(read_board(Path(name)), results)
        if not of_board:
            raise MissingTableError(f"{name}: no table of this board under {results}")
        chosen += of_board
    return chosen


def _status_of(path: Path) -> dict[str, Any]:
    from luckbase.cluster.table.find import why_stale
    from luckbase.cluster.table.health import damaged_files
    from luckbase.cluster.table.ledger import read_ledger
    from luckbase.cluster.table.lines import TIERS
    from luckbase.cluster.table.storage import Folder
    from luckbase.cluster.table.table import furthest
    from luckbase.solver.board.identity import changed_options
    from luckbase.solver.errors import TableError

    try:
        storage = Folder(path)
        ledger = read_ledger(storage, path)
        stale, bad = why_stale(ledger), damaged_files(storage, path, ledger)
        goal = furthest(ledger)
        shown = changed_options(ledger.board({} if goal is None else goal.reach))
    except TableError as error:
        return {
            "table": str(path), "state": "damaged", "options": {}, "tiers": 0, "tiers_in_all": 0,
            "roots": 0, "states": 0, "bytes": 0, "why": [str(error)],
        }  # fmt: skip
    open_goals = [goal for goal in ledger.goals if not ledger.is_done(goal)]
    state = "stale" if stale else "complete" if ledger.goals and not open_goals else "partial"
    why = list(stale)
    for each in open_goals if state == "partial" else []:
        why.append(f"goes on with: {_again(each, ledger)}")
    if bad:
        parts = {ledger.files[name].part for name in bad}
        again = [_again(goal, ledger) for goal in ledger.goals if goal.part in parts]
        why = [*list(bad.values())[:5], *[f"and {len(bad) - 5} more"] * (len(bad) > 5),
               *(f"made again by: {each}" for each in dict.fromkeys(again))]  # fmt: skip
        state = "damaged"
    asked = [goal for goal in ledger.goals if goal.roots is not None]
    return {
        "table": str(path),
        "state": state,
        "options": shown | ({"margin": True} if ledger.margin else {}),
        "tiers": len(ledger.of_part(TIERS)),
        "tiers_in_all": 0 if goal is None else goal.files,
        "roots": len({json.dumps(start) for g in asked if g.roots for start in g.roots.start}),
        "states": ledger.rows,
        "bytes": ledger.bytes,
        "why": why,
    }


def _again(goal: Goal | None, ledger: Ledger) -> str:
    """The command that solves what a goal asked for."""
    from luckbase.cluster.table.find import command
    from luckbase.solver import load_game

    board, settings = _board_of(goal)
    said = command(f"{render.program()} solve", board, settings, ledger.head.game)
    if goal is None or goal.roots is None:
        return said
    start, order = goal.roots.start, load_game(ledger.board(goal.reach)).fields.names
    first = dict(sorted(start[0].items(), key=lambda item: order.index(item[0])))
    said += f" --from {render.fields(first)}"
    said += f" (and {len(start) - 1} more states)" if len(start) > 1 else ""
    if goal.roots.max_depth is not None:
        said += f" --max-depth {goal.roots.max_depth}"
    if goal.roots.using is not None:
        said += f" --using {goal.roots.using.table}"
    return said


def _board_of(goal: Goal | None) -> tuple[str, dict[str, str]]:
    """The board file of a goal and its options."""
    return ("BOARD", {}) if goal is None else (goal.board_file or "BOARD", goal.settings)
