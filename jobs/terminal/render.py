"""People's text: numbers, progress, tables. On stderr, so that stdout stays data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.cluster.words import count as count
from luckbase.cluster.words import counted as counted
from luckbase.cluster.words import duration as duration
from luckbase.cluster.words import fields as fields
from luckbase.cluster.words import listed as listed
from luckbase.cluster.words import many as many
from luckbase.cluster.words import program as program
from luckbase.cluster.words import size as size
from luckbase.jobs.terminal import fitting
from luckbase.solver.errors import SearchLimitError

if TYPE_CHECKING:
    from luckbase.cluster.run.options import Progress
    from luckbase.cluster.table.search_answer import OnLevel
    from luckbase.cluster.table.table import Table

EVENT_SECONDS = 5.0
"""As JSON, an event of progress as often as this."""
LINE_SECONDS = 5.0
"""Off a terminal, a line of progress as often as this."""
A_MOMENT = 1.0
"""Seconds of a search after which a person is told of it."""
LEAST_SHARE = 0.01
"""Of the work, after which there is a pace to go by: the first shards are the smallest."""


def say(text: str = "") -> None:
    """A line for people."""
    print(text, file=sys.stderr)


def shown(path: Path) -> str:
    """A path as short as it can be typed here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


OFF_A_TERMINAL = 160
"""Columns of a table in a file or a pipe; one that needs more takes more."""


def width(out: Any) -> int | None:
    """The columns of a terminal; None where `out` is none."""
    from rich.console import Console

    return Console(file=out).width if out.isatty() else None


def has_colours(out: Any) -> bool:
    """Whether `out` is a terminal with colours of its own choice (NO_COLOR, TERM=dumb: not)."""
    from rich.console import Console

    return bool(out.isatty()) and Console(file=out).color_system in ("256", "truecolor")


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], out: Any) -> None:
    """A table for people; the first column to the left, the others to the right.

    No number is ever cut: on a narrow terminal text gets line breaks, or each row is a block.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    wide = width(out)
    fitted = fitting.fit(heads, rows, wide) if wide else (heads, rows)
    if title:
        print(title, file=out)
    if fitted is None:
        print("", *fitting.blocks(heads, rows, wide or OFF_A_TERMINAL), "", sep="\n", file=out)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for i, head in enumerate(fitted[0]):
        table.add_column(head, justify="left" if i == 0 else "right", no_wrap=True)
    for row in fitted[1]:
        table.add_row(*row)
    needed = Console(width=10_000).measure(table).maximum
    Console(file=out, width=max(needed, wide or OFF_A_TERMINAL), highlight=False).print(table)


def to_fit(text: str, out: Any) -> str:
    """Lines of text with breaks where a terminal would put them into a number; as they are where
    `out` is none."""
    wide = width(out)
    if wide is None:
        return text
    return "\n".join(fitting.fold(text.split("\n"), wide))


@contextmanager
def progress(label: str) -> Iterator[Callable[[Progress], None]]:
    """Shows a solve's progress: a bar on a terminal, a line every few seconds elsewhere."""
    if sys.stderr.isatty():
        with _bar(label) as show:
            yield show
    else:
        yield _lines(label)


@contextmanager
def _bar(label: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from luckbase.jobs.terminal import process

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[said]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None, said="")

        def show(now: Any) -> None:
            if now.compiling:  # most often it was compiled before, and this is not seen
                bar.update(task, said=process.COMPILING_TEXT)
                return
            done, total = _parts(now)
            bar.update(task, total=total, completed=done, said=_said(now))

        yield show


@contextmanager
def progress_events() -> Iterator[Callable[[Progress], None]]:
    """Prints a solve's progress as JSON, a line every few seconds."""
    import json

    last = [time.monotonic()]

    def show(now: Progress) -> None:
        if now.compiling or time.monotonic() - last[0] < EVENT_SECONDS:
            return
        last[0] = time.monotonic()
        print(json.dumps({"event": "progress", **now.as_json()}), flush=True)

    yield show


def _lines(label: str) -> Callable[[Progress], None]:
    from luckbase.jobs.terminal import process

    last, compiled = [time.monotonic()], [process.compiling_seconds()]

    def show(now: Progress) -> None:
        if time.monotonic() - last[0] < LINE_SECONDS:
            return
        last[0] = time.monotonic()
        if now.compiling:  # `process` says so where it takes long
            return
        if now.finding:
            say(f"{label}: {_said(now)}")
            return
        said = f"{label}: {100 * _share(now):.0f} %  {_said(now)}"
        left = left_seconds(now, process.compiling_seconds() - compiled[0])
        say(said if left is None else f"{said}, about {duration(left)} left")

    return show


def rows_progress(show: Callable[[Any], None]) -> Callable[[int, int], None]:
    """`show`, told of rows alone: (done, in all); with none done the clock is set anew."""
    from luckbase.cluster.run.options import Progress

    began = [time.monotonic()]

    def on_rows(done: int, total: int) -> None:
        if not done:
            began[0] = time.monotonic()
        show(Progress(0, 0, done, total, time.monotonic() - began[0]))

    return on_rows


def search_progress(table: Table, state: Mapping[str, Any], most: int) -> OnLevel:
    """Says how far a search above a table is, of at most so many states, once it takes long.

    What it gives raises SearchLimitError as soon as it can be told that there are far too many."""
    from luckbase.solver.graph.estimate import far_too_many

    last = time.monotonic() + A_MOMENT - LINE_SECONDS
    sizes = [1]

    def show(states: int, levels: int) -> None:
        nonlocal last
        sizes.append(states - sum(sizes))
        below = far_too_many(table.game, table.game.parse(state), sizes, most, table.holds)
        if below:
            raise SearchLimitError(
                f"more than {counted(below, 'state')} lie above the table; the search may meet "
                f"{count(most)} (--max-states)"
            )
        if time.monotonic() - last < LINE_SECONDS:
            return
        last = time.monotonic()
        found = f"{counted(states, 'state')} found in {many(levels, 'level')}"
        say(f"above the table, searching down to it: {found}, of at most {count(most)}")

    return show


def left_seconds(now: Progress, compiled: float) -> float | None:
    """Seconds that are left at the pace so far, those that it `compiled` left out; None before
    there is a pace."""
    done, total = _parts(now)
    working, new = now.seconds - compiled, done - (now.before if now.rows_total else 0)
    if not total or new < LEAST_SHARE * total or working <= 0:
        return None
    return working * (total - done) / new


def _share(now: Progress) -> float:
    done, total = _parts(now)
    return done / total if total else 0.0


def _parts(now: Progress) -> tuple[int, int]:
    """Done and in all: states, or shards where nobody knows how many states there are."""
    return (now.rows, now.rows_total) if now.rows_total else (now.shards, now.shards_total)


def found_so_far(states: int, about: int | None, finding: str) -> str:
    """How many states a search has found, of about so many if that is known, and where it is."""
    of = f" of about {count(about)}" if about else ""
    return f"{count(states)}{of} state{'s' * (bool(about) or states != 1)} found, {finding}"


def _said(now: Progress) -> str:
    rate = f"{now.rate / 1e6:.1f} M" if now.rate >= 1e5 else f"{now.rate:,.0f}"
    if now.finding:
        return f"{found_so_far(now.rows, now.about, now.finding)}, {rate} states/s"
    what = now.of if now.rows_total else "shards"
    shards = f", {now.shards} of {now.shards_total} {what}" if now.shards_total else ""
    return f"{rate} states/s{shards}"
