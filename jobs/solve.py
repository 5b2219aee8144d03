"""``luckbase solve``: solve what is missing of full tables, or of what lies below some roots.

Of several boards, folders or job files all are read first; ``--dry-run`` says what is due,
``--watch`` goes on with those that are saved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.options import read_results
from luckbase.jobs.terminal import render, solve_report

if TYPE_CHECKING:
    from luckbase.cluster.batch.requests import BoardName, BoardRequest
    from luckbase.cluster.batch.run import Outcome
    from luckbase.cluster.run.options import Progress, SolveOptions

POLL_SECONDS = 0.5
"""With --watch, files are looked at so often; one that was the same at two looks is saved."""


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
    from luckbase.cluster.batch.requests import is_many
    from luckbase.solver.errors import OptionError

    names, start = options.split_from(asked.boards, asked.start)
    if not names:
        raise OptionError("solve: name a board file, a folder of them or a job file")
    if not (asked.dry_run or asked.watch or is_many(names)):
        return _solve_one(names[0], start, asked)
    settings = options.read_settings(asked.settings)
    if asked.dry_run:
        return _dry_run(names, start, settings, asked)
    if asked.watch:
        _watch(names, start, settings, asked)
    outcomes = _solve_many(names, start, settings, asked)
    return _exit_code(names, [(each.request, each.exit_code) for each in outcomes])


def _solve_one(name: str, start: list[str] | None, asked: Solve) -> int:
    from luckbase.cluster.table.find import changed_since

    how = asked.as_options()
    board = options.board_of(name, asked.settings)
    before = changed_since(board, asked.folder)
    progress = render.progress_events() if asked.as_json else render.progress(board.name)
    with progress as on_progress:
        how["on_progress"] = on_progress
        solved = luckbase.solve(board, options.read_start(start), **how)
    if asked.as_json:
        solve_report.print_json({"event": "solved", **solve_report.as_json(solved)})
        return 0
    solve_report.say(solved, Path(name), before)
    print(render.shown(solved.table))
    return 0


def _dry_run(
    names: Sequence[str], start: list[str] | None, settings: Mapping[str, str], asked: Solve
) -> int:
    from luckbase.cluster.batch.plan import disk_shortages

    planned = luckbase.plan_all(
        *names, start=options.read_start(start), settings=settings, **asked.said()
    )
    if asked.as_json:
        for due in planned:
            solve_report.print_json(due.as_json())
    else:
        solve_report.print_due(planned)
    for sentence in disk_shortages(planned):
        (render.say if asked.as_json else print)(sentence)  # a line of JSON's stdout is a board
    codes = [(due.request, due.error.exit_code if due.error else 0) for due in planned]
    return _exit_code(names, codes)


def _watch(
    names: Sequence[str], start: list[str] | None, settings: Mapping[str, str], asked: Solve
) -> None:
    from luckbase.cluster.batch.run import SavedBoards

    saved = SavedBoards(names, settings, render.say)
    todo = saved.read_all()
    while True:
        if todo:
            _solve_many(todo, start, {}, asked)
            render.say(f"watching {render.many(saved.boards, 'board')}; Ctrl+C ends it")
        time.sleep(POLL_SECONDS)
        todo = saved.poll()


def _exit_code(names: Sequence[str], codes: Sequence[tuple[BoardRequest, int]]) -> int:
    """1 where a board failed, were it the only one of a folder or a job; of what was named alone,
    and is itself what failed, its own."""
    alone = len(names) == len(codes) == 1 and Path(names[0]) == Path(codes[0][0].file)
    return codes[0][1] if alone else int(any(code for _, code in codes))


def _solve_many(
    names: Sequence[BoardName], start: list[str] | None, settings: Mapping[str, str], asked: Solve
) -> list[Outcome]:
    """Solve all boards, saying of each what became of it, and of all at the end."""
    outcomes: list[Outcome] = []
    begun: list[BoardRequest] = []
    total = 0

    def show(
        request: BoardRequest, number: int, of: int
    ) -> AbstractContextManager[Callable[[Progress], None]]:
        nonlocal total
        total = of
        begun.append(request)
        label = request.board.name if request.board is not None else request.file
        return render.progress_events() if asked.as_json else render.progress(label)

    def on_outcome(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if asked.as_json:
            solve_report.print_json(solve_report.outcome_json(outcome))
            return
        solve_report.say_outcome(outcome, len(outcomes), total)
        if outcome.solved is not None:
            print(render.shown(outcome.solved.table), flush=True)

    try:
        luckbase.solve_all(
            *names, start=options.read_start(start), settings=settings, shown=show,
            on_outcome=on_outcome, **asked.said(),
        )  # fmt: skip
    finally:
        if begun and not asked.as_json:
            stopped = begun[-1].name if len(begun) > len(outcomes) else ""
            solve_report.say_outcomes(outcomes, total, stopped)
    return outcomes
