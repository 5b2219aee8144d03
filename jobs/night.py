"""Many boards: what ``luckbase solve`` does with folders, job files and several boards, and with
``--dry-run`` and ``--watch``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import night_report, render

if TYPE_CHECKING:
    from luckbase.cluster.night.asked import Asked, Named
    from luckbase.cluster.night.outcome import Outcome
    from luckbase.cluster.run.options import Progress
    from luckbase.jobs.solve import Solve

LOOK_SECONDS = 0.5
"""With --watch, files are looked at so often; one that was the same at two looks is saved."""


def run(names: Sequence[str], start: list[str] | None, asked: Solve) -> int:
    """The exit code: 1 where a board failed, and 2 where it is the only one and is not right."""
    if asked.dry_run:
        return dry_run(names, start, asked)
    if not asked.watch:
        return exit_code(solve_all(names, start, asked))
    watch(names, start, asked)
    return 0


def exit_code(found: Sequence[Outcome]) -> int:
    """0 where every board has its table."""
    failed = [one.exit_code for one in found if one.failed]
    return failed[0] if len(found) == 1 and failed else int(bool(failed))


def dry_run(names: Sequence[str], start: list[str] | None, asked: Solve) -> int:
    """Say what would be solved; nothing is written."""
    found = luckbase.plan_all(
        *names, start=options.read_start(start), settings=options.read_settings(asked.settings),
        **asked.said(),
    )  # fmt: skip
    if asked.as_json:
        for one in found:
            night_report.print_json(one.as_json())
    else:
        night_report.print_due(found)
    failed = [one.error.exit_code for one in found if one.error is not None]
    return failed[0] if len(found) == 1 and failed else int(bool(failed))


def solve_all(
    names: Sequence[Named], start: list[str] | None, asked: Solve,
    settings: dict[str, str] | None = None,
) -> list[Outcome]:  # fmt: skip
    """Solve all boards, saying of each what became of it, and of all at the end."""
    found: list[Outcome] = []
    total = [0]

    def shown(
        one: Asked, number: int, of: int
    ) -> AbstractContextManager[Callable[[Progress], None]]:
        total[0] = of
        label = one.board.name if one.board is not None else one.file
        return render.progress_events() if asked.as_json else render.progress(label)

    def on_outcome(one: Outcome) -> None:
        found.append(one)
        if asked.as_json:
            night_report.print_json(night_report.as_json(one))
            return
        night_report.say_outcome(one, len(found), total[0])
        if one.solved is not None:
            print(render.shown(one.solved.table), flush=True)

    words = options.read_settings(asked.settings) if settings is None else settings
    try:
        luckbase.solve_all(
            *names, start=options.read_start(start), settings=words, shown=shown,
            on_outcome=on_outcome, **asked.said(),
        )  # fmt: skip
    finally:
        if found and not asked.as_json:
            night_report.say_outcomes(found, total[0])
    return found


def watch(names: Sequence[str], start: list[str] | None, asked: Solve) -> None:
    """Solve all boards, then those that are saved, until somebody ends it."""
    from luckbase.cluster.night.saved import Saved

    saved = Saved(names, options.read_settings(asked.settings), render.say)
    todo = saved.first()
    while True:
        if todo:
            solve_all(todo, start, asked, {})
            render.say(f"watching {render.many(saved.boards, 'board')}; Ctrl+C ends it")
        time.sleep(LOOK_SECONDS)
        todo = saved.look()
