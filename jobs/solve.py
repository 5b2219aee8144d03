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
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

import luckbase
from luckbase.cluster.run.options import Options
from luckbase.jobs import options
from luckbase.jobs.terminal import render, solve_report

if TYPE_CHECKING:
    from luckbase.cluster.batch.requests import BoardName, BoardRequest
    from luckbase.cluster.batch.run import Outcome
    from luckbase.cluster.run.options import SolveOptions
    from luckbase.cluster.run.progress import Progress

POLL_SECONDS = 0.5
"""With --watch, files are looked at so often; one that was the same at two looks is saved."""


@dataclass(frozen=True)
class _Call:
    """What `luckbase.solve_all` is called with."""

    names: Sequence[str]
    start: list[str] | None
    settings: Mapping[str, str]
    how: SolveOptions
    """What was typed and no more: a job file may say the rest."""
    as_json: bool


@options.with_options_of(Options)
def solve(
    boards: Annotated[
        list[str],
        typer.Argument(
            metavar="BOARD...", help="Board files, folders of them, or job files (boards by night)."
        ),
    ],
    settings: options.Settings = None,
    start: options.From = None,
    results: options.ResultsOrJob = None,
    memory: options.Memory = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be solved, why and how long; no more.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on: solve again what is saved, until Ctrl+C.")
    ] = False,
    as_json: options.Json = False,
    **how: Any,
) -> int:
    """Solve what is missing of each board's full table; the same command goes on after a stop.

    With --from, or for a game that has no tiers: of all that lies below some states, by search.
    Prints the table's directory on stdout. Of several boards all are read first; one that can not
    be read or solved stops no other, and the exit code is 1.
    """
    from luckbase.cluster.batch.requests import is_many
    from luckbase.solver.errors import OptionError

    names, start = options.split_from(boards, start)
    if not names:
        raise OptionError("solve: name a board file, a folder of them or a job file")
    how |= {"results": results, "memory": options.read_memory(memory)}
    typed = {name: value for name, value in how.items() if value is not None and value is not False}
    call = _Call(
        names, start, options.read_settings(settings),
        cast("SolveOptions", {**typed, "on_note": render.say}), as_json,
    )  # fmt: skip
    folder = results or options.read_results("results")
    if dry_run:
        return _dry_run(call)
    if watch:
        _watch(call)
    if not is_many(names):
        return _solve_one(call, folder)
    outcomes = _solve_many(names, call.settings, call)
    return _exit_code(names, [(each.request, each.exit_code) for each in outcomes])


def _solve_one(call: _Call, folder: Path) -> int:
    from luckbase.cluster.table.find import changed_since

    (name,) = call.names
    board = luckbase.load_board(name, **call.settings)
    before = changed_since(board, folder)
    progress = render.progress_events() if call.as_json else render.progress(board.name)
    with progress as on_progress:
        how: SolveOptions = {**call.how, "on_progress": on_progress}
        solved = luckbase.solve(board, options.read_start(call.start), **how)
    if call.as_json:
        solve_report.print_json({"event": "solved", **solved.as_json()})
        return 0
    solve_report.say(solved, Path(name), before)
    print(render.shown(solved.table))
    return 0


def _dry_run(call: _Call) -> int:
    from luckbase.cluster.batch.plan import disk_shortages

    start = options.read_start(call.start)
    planned = luckbase.plan_all(*call.names, start=start, settings=call.settings, **call.how)
    if call.as_json:
        for due in planned:
            solve_report.print_json(due.as_json())
    else:
        solve_report.print_due(planned)
    for sentence in disk_shortages(planned):
        (render.say if call.as_json else print)(sentence)  # a line of JSON's stdout is a board
    codes = [(due.request, due.error.exit_code if due.error else 0) for due in planned]
    return _exit_code(call.names, codes)


def _watch(call: _Call) -> NoReturn:
    from luckbase.cluster.batch.run import SavedBoards

    saved = SavedBoards(call.names, call.settings, render.say)
    todo = saved.read_all()
    while True:
        if todo:
            _solve_many(todo, {}, call)
            render.say(f"watching {render.many(saved.boards, 'board')}; Ctrl+C ends it")
        time.sleep(POLL_SECONDS)
        todo = saved.poll()


def _exit_code(names: Sequence[str], codes: Sequence[tuple[BoardRequest, int]]) -> int:
    """1 where a board failed, were it the only one of a folder or a job; of what was named alone,
    and is itself what failed, its own."""
    alone = len(names) == len(codes) == 1 and Path(names[0]) == Path(codes[0][0].file)
    return codes[0][1] if alone else int(any(code for _, code in codes))


def _solve_many(
    names: Sequence[BoardName], settings: Mapping[str, str], call: _Call
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
        return render.progress_events() if call.as_json else render.progress(label)

    def on_outcome(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if call.as_json:
            solve_report.print_json(solve_report.outcome_json(outcome))
            return
        solve_report.say_outcome(outcome, len(outcomes), total)
        if outcome.solved is not None:
            print(render.shown(outcome.solved.table), flush=True)

    try:
        luckbase.solve_all(
            *names, start=options.read_start(call.start), settings=settings, shown=show,
            on_outcome=on_outcome, **call.how,
        )  # fmt: skip
    finally:
        if begun and not call.as_json:
            stopped = begun[-1].name if len(begun) > len(outcomes) else ""
            solve_report.say_outcomes(outcomes, total, stopped)
    return outcomes
