"""Many boards: what ``luckbase solve`` does with folders, job files and several boards, and with
``--dry-run`` and ``--watch``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import night_report, render

if TYPE_CHECKING:
    from luckbase.cluster.night.asked import Asked, Named
    from luckbase.cluster.night.outcome import Outcome
    from luckbase.cluster.run.options import Progress, SolveOptions

LOOK_SECONDS = 0.5
"""With --watch, files are looked at so often; one that was the same at two looks is saved."""


@dataclass(frozen=True)
class Night:
    """What is asked. names: of boards, folders, job files. start: what --from says. settings: what
    --set says. how: what else was said of the solve; a job file may say the rest."""

    names: Sequence[str]
    start: list[str] | None
    settings: Mapping[str, str]
    how: SolveOptions
    as_json: bool


def dry_run(asked: Night) -> int:
    """Say what would be solved; nothing is written. Returns the exit code."""
    from luckbase.cluster.night.due import too_much

    found = luckbase.plan_all(
        *asked.names, start=options.read_start(asked.start), settings=asked.settings, **asked.how
    )
    if asked.as_json:
        for one in found:
            night_report.print_json(one.as_json())
    else:
        night_report.print_due(found)
    for said in too_much(found):
        if asked.as_json:
            render.say(said)  # a line of stdout is a board
        else:
            print(said)
    codes = [0 if one.error is None else one.error.exit_code for one in found]
    return _exit_code(asked.names, [one.asked for one in found], codes)


def solve(asked: Night) -> int:
    """Solve all boards; returns the exit code."""
    found = _solve(asked.names, asked.settings, asked)
    return _exit_code(asked.names, [one.asked for one in found], [one.exit_code for one in found])


def watch(asked: Night) -> None:
    """Solve all boards, then those that are saved, until somebody ends it."""
    from luckbase.cluster.night.saved import Saved

    saved = Saved(asked.names, asked.settings, render.say)
    todo = saved.first()
    while True:
        if todo:
            _solve(todo, {}, asked)
            render.say(f"watching {render.many(saved.boards, 'board')}; Ctrl+C ends it")
        time.sleep(LOOK_SECONDS)
        todo = saved.look()


def _exit_code(names: Sequence[str], found: Sequence[Asked], codes: Sequence[int]) -> int:
    """1 where a board failed, were it the only one of a folder or a job; of what was named alone,
    and is itself what failed, its own."""
    alone = len(names) == len(found) == 1 and Path(names[0]) == Path(found[0].file)
    return codes[0] if alone else int(any(codes))


def _solve(names: Sequence[Named], settings: Mapping[str, str], asked: Night) -> list[Outcome]:
    """Solve all boards, saying of each what became of it, and of all at the end."""
    found: list[Outcome] = []
    begun: list[Asked] = []
    total = [0]

    def shown(
        one: Asked, number: int, of: int
    ) -> AbstractContextManager[Callable[[Progress], None]]:
        total[0] = of
        begun.append(one)
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

    try:
        luckbase.solve_all(
            *names, start=options.read_start(asked.start), settings=settings, shown=shown,
            on_outcome=on_outcome, **asked.how,
        )  # fmt: skip
    finally:
        if begun and not asked.as_json:
            stopped = begun[-1].name if len(begun) > len(found) else ""
            night_report.say_outcomes(found, total[0], stopped)
    return found
