"""People's text: numbers, progress, tables. On stderr, so that stdout stays data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.driver import Progress

LINE_SECONDS = 5.0
"""Off a terminal, a line of progress as often as this."""


def say(text: str = "") -> None:
    """A line for people."""
    print(text, file=sys.stderr)


def program() -> str:
    """How this command was called, so that what we print can be typed again."""
    import shutil

    called = Path(sys.argv[0])
    found = shutil.which("luckbase")
    if called.name != "luckbase":
        return "luckbase"
    return "luckbase" if found and Path(found).resolve() == called.resolve() else str(called)


def shown(path: Path) -> str:
    """A path as short as it can be typed here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def fields(state: Mapping[str, Any], between: str = " ") -> str:
    """A state as it can be typed: ``scores=0,500,0 earned=1,0,0``."""
    return between.join(f"{name}={listed(value)}" for name, value in state.items())


def listed(value: Any) -> str:
    """A field's value as it can be typed."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def count(number: float) -> str:
    """``42.9 million``."""
    for size, word in ((1e9, " billion"), (1e6, " million")):
        if abs(number) >= size:
            return f"{number / size:.3g}{word}"
    return f"{number:,.0f}"


def size(number: float) -> str:
    """``1.2 GB``."""
    for unit, word in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(number) >= unit:
            return f"{number / unit:.3g} {word}"
    return f"{number:.0f} bytes"


def duration(seconds: float) -> str:
    """``1 h 12 min``, ``3 min 05 s``, ``2.4 s``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], out: Any) -> None:
    """A table for people; the first column to the left, the others to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, title_style="")
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    wide = Console(file=out).width if out.isatty() else 160
    Console(file=out, width=wide, highlight=False).print(table)


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
            done, total = _parts(now)
            bar.update(task, total=total, completed=done, said=_said(now))

        yield show


def _lines(label: str) -> Callable[[Progress], None]:
    last = [time.monotonic()]

    def show(now: Progress) -> None:
        if time.monotonic() - last[0] < LINE_SECONDS:
            return
        last[0] = time.monotonic()
        done, total = _parts(now)
        left = now.seconds * (total - done) / done if done else None
        tail = f", about {duration(left)} left" if left is not None else ""
        say(f"{label}: {100 * done / max(total, 1):.0f} %  {_said(now)}{tail}")

    return show


def _parts(now: Progress) -> tuple[int, int]:
    """Done and in all: states, or shards where nobody knows how many states there are."""
    return (now.rows, now.rows_total) if now.rows_total else (now.shards, now.shards_total)


def _said(now: Progress) -> str:
    rate = now.rows / now.seconds / 1e6 if now.seconds else 0.0
    what = "tiers" if now.rows_total else "shards"
    return f"{rate:.1f} M states/s, {now.shards} of {now.shards_total} {what}"
