"""``luckbase solve``: solve what is missing of a full table, or of what lies below some roots."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.folder import read_results
from luckbase.jobs.terminal import render, solved_report

if TYPE_CHECKING:
    from luckbase.cluster.run.options import SolveOptions
    from luckbase.solver.board.model import Board


@dataclass(frozen=True)
class Solve:
    """Which boards, how far, and how."""

    boards: Annotated[
        list[str],
        typer.Argument(
            metavar="BOARD...", help="Board files, folders of them, or job files (boards by night)."
        ),
    ]
    settings: options.Settings = None
    start: options.From = None
    using: Annotated[
        str | None, typer.Option(metavar="TABLE", help="A table at which a search may end.")
    ] = None
    max_states: Annotated[
        int | None, typer.Option(metavar="N", help="States that a search may meet.", min=1)
    ] = None
    results: options.ResultsOrJob = None
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Shards at once; all cores if not given.", min=1)
    ] = None
    address: Annotated[
        str | None, typer.Option(metavar="ADDR", help="A Ray cluster, or local: one here.")
    ] = None
    memory: options.Memory = None
    margin: Annotated[
        bool, typer.Option("--margin", help="Store what the second best action would cost.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Solve all of it again.")] = False
    check: Annotated[
        bool, typer.Option("--check", help="Read every byte first; solve again what has changed.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be solved, why and how long; no more.")
    ] = False
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on: solve again what is saved, until Ctrl+C.")
    ] = False
    as_json: options.Json = False

    def as_options(self) -> SolveOptions:
        """As `luckbase.solve` takes them."""
        return {
            "results": self.folder, "workers": self.workers, "address": self.address,
            "memory": options.read_memory(self.memory), "margin": self.margin,
            "force": self.force, "check": self.check,
            "using": self.using, "max_states": self.max_states,
            "on_note": render.say,
        }  # fmt: skip

    def said(self) -> SolveOptions:
        """The same, without what was not said: a job file may say it."""
        every = {**self.as_options(), "results": self.results}
        said = {name: v for name, v in every.items() if v is not None and v is not False}
        return cast("SolveOptions", said)

    @property
    def folder(self) -> Path:
        """Where tables are kept."""
        return read_results("results") if self.results is None else self.results


@options.takes(Solve)
def solve(asked: Solve) -> int:
    """Solve what is missing of each board's full table; the same command goes on after a stop.

    With --from, or for a game that has no tiers: of all that lies below some states, by search.
    Prints the table's directory on stdout. Of several boards all are read first; one that can not
    be read or solved stops no other, and the exit code is 1.
    """
    from luckbase.solver.errors import OptionError

    names, start = options.split_from(asked.boards, asked.start)
    if not names:
        raise OptionError("solve: name a board file, a folder of them or a job file")
    from luckbase.cluster.night.asked import is_many

    if asked.dry_run or asked.watch or is_many(names):
        return _solve_many(names, start, asked)
    path = Path(names[0])
    chosen = asked.as_options()
    _solve_one(path, options.board_of(names[0], asked.settings), start, chosen, asked)
    return 0


def _solve_many(names: list[str], start: list[str] | None, asked: Solve) -> int:
    from luckbase.jobs import night

    settings = options.read_settings(asked.settings)
    what = night.Night(names, start, settings, asked.said(), asked.as_json)
    if asked.dry_run:
        return night.dry_run(what)
    if asked.watch:
        night.watch(what)
    return night.solve(what)


def _solve_one(
    path: Path, board: Board, start: list[str] | None, chosen: SolveOptions, asked: Solve
) -> None:
    from luckbase.cluster.table.find import changed_since

    before = changed_since(board, asked.folder)
    shown = render.progress_events() if asked.as_json else render.progress(board.name)
    with shown as on_progress:
        how: SolveOptions = {**chosen, "on_progress": on_progress}
        solved = luckbase.solve(board, options.read_start(start), **how)
    if asked.as_json:
        print(json.dumps({"event": "solved", **solved_report.as_json(solved)}))
        return
    solved_report.say(solved, path, before)
    print(render.shown(solved.table))
