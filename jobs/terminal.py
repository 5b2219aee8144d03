"""Output on a terminal: lines, tables and progress, on stderr so that stdout contains only data.

Text is fitted to a width without cutting numbers. Tables that are too wide become narrower in their
text columns, states and names first, which break at spaces, commas and slashes; columns of numbers
do not break. A table that still does not fit is printed as a block for each row.

**Signals**: SIGTERM and SIGHUP end a command as Ctrl+C does: solved parts are kept, and a message
says so.

**Errors of stdout and stderr** are raised as our own errors that name the stream. An OSError
without a name would look like an error of the results folder, and click turns a closed pipe into
exit code 1, which means "no" here.

If compiling takes longer than a moment, as on the first use of a machine, a message is printed. A
thread watches for this while a command runs, because compiling can begin before there is progress
to show.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TextIO

from luckbase.solver.compiled import compiling_seconds
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.sentences import count, counted, duration, many

if TYPE_CHECKING:
    from luckbase.cluster.answers.lookup import OnLevel
    from luckbase.cluster.solve.progress import Progress

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 2.0
"""Seconds after which a message is printed if a signal has not been handled."""

MOMENT_SECONDS = 1.0
"""Seconds of compiling after which a message is printed."""
POLL_SECONDS = 0.1
COMPILING_TEXT = "compiling, the first time only …"


class Ended(KeyboardInterrupt):
    """Raised by signals, including Ctrl+C. number: of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def exit_code(stop: BaseException) -> int:
    """Return the exit code of a command ended by a signal: 130 for Ctrl+C, 143 for SIGTERM."""
    return 128 + int(getattr(stop, "number", signal.SIGINT))


@contextmanager
def signals(watched: bool = True) -> Iterator[None]:
    """Make signals raise `Ended` inside this context, except ignored ones, as under nohup.

    watched: print a message if compiled code delays a signal (`_watch`).
    """

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
        raise Ended(number)

    main = threading.current_thread() is threading.main_thread()  # only it may set handlers
    installed = {number: signal.getsignal(number) for number in SIGNALS if main}
    free = (signal.SIG_DFL, signal.default_int_handler)
    handled = {number: handler for number, handler in installed.items() if handler in free}
    for number in handled:
        signal.signal(number, end)
    writes, before = None, -1
    if handled and watched:
        reads, writes = os.pipe()
        os.set_blocking(writes, False)
        before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reads, end), daemon=True).start()
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        if writes is not None:
            signal.set_wakeup_fd(before)
            os.close(writes)


def _watch(reads: int, end: Callable[[int, FrameType | None], None]) -> None:
    """Print how to end the process if compiled code delays a signal: by sending another one.

    An endless loop in a user's rules never returns to Python, where handlers run.

    reads: a pipe with the number of each signal that has arrived.
    end: the handler.
    """
    warned = False
    with open(reads, "rb", buffering=0) as pipe:
        while byte := pipe.read(1):
            number = byte[0]
            if warned and signal.getsignal(number) is end:
                os._exit(128 + number)
            time.sleep(PATIENCE)
            if signal.getsignal(number) is end:
                warned = True
                name = "Ctrl+C" if number == signal.SIGINT else signal.Signals(number).name
                sentence = f"it stops when compiled code returns; {name} again ends it at once"
                os.write(2, f"\nluckbase: {sentence}\n".encode())


class StreamError(LuckbaseError):
    """Output could not be written."""


class ClosedPipe(StreamError):
    """The reader has closed the pipe, as ``| head -1`` does. Like other tools, print no message."""

    exit_code: ClassVar[int] = 128 + signal.SIGPIPE


class _Stream(io.FileIO):
    """An open descriptor that raises `StreamError`."""

    def __init__(self, number: int, called: str) -> None:
        super().__init__(number, "w", closefd=False)
        self._called = called

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())  # buffered data is written at exit
            os.close(nowhere)
            if error.errno == errno.EPIPE:
                raise ClosedPipe(f"{self._called}: closed") from None
            raise StreamError(
                f"{self._called}: cannot write the output: {error.strerror}"
            ) from None


class _Text(io.TextIOWrapper):
    """A text stream without control characters, except the colours of our own tables, because names
    and messages may come from strangers' files."""

    def write(self, text: str) -> int:
        return super().write(_ACTS.sub("?", text))


_ACTS = re.compile(
    r"\x1b(?!\[[0-9;]*m)|[\0-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def name_streams() -> None:
    """Make stdout and stderr raise `StreamError`, and print escapes for characters that their
    encoding lacks. Only for a process that runs a command."""
    if sys.stdin is None:  # closed from the beginning, as by <&-
        sys.stdin = open(os.devnull)  # noqa: SIM115 (stays open)
    sys.stdout = _named(sys.stdout, "stdout")
    sys.stderr = _named(sys.stderr, "stderr")


def leave(code: int) -> NoReturn:
    """End this process at once: the system frees its memory immediately, but Python takes 60 ms."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, StreamError):
            stream.flush()
    os._exit(code)


def _named(stream: TextIO | None, called: str) -> TextIO:
    if stream is None:  # closed from the beginning, as by >&-
        return open(os.devnull, "w")
    stream.flush()
    return _Text(
        io.BufferedWriter(_Stream(stream.fileno(), called)), stream.encoding,
        "backslashreplace" if stream.errors == "strict" else stream.errors,
        line_buffering=called == "stderr" or stream.isatty(),
    )  # fmt: skip


@contextmanager
def watch_compiling() -> Iterator[None]:
    """Print a message once if compiling takes long."""
    over = threading.Event()
    before = compiling_seconds()

    def watch() -> None:
        noted = False
        while not over.wait(POLL_SECONDS):
            if not noted and compiling_seconds() - before > MOMENT_SECONDS:
                print(COMPILING_TEXT, file=sys.stderr)
                noted = True

    thread = threading.Thread(target=watch, name="luckbase compiling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


LINE_SECONDS = 5.0
"""Seconds between lines of progress if stderr is not a terminal, and between JSON events."""
A_MOMENT = 1.0
"""Seconds of a search after which its progress is shown."""
OFF_A_TERMINAL = 160
"""Columns of a table in a file or a pipe; a table that needs more takes more."""


def say(text: str = "", unbroken: bool = False) -> None:
    """Print a line on stderr. unbroken: do not break it, because it is a command to copy."""
    print(text if unbroken else to_fit(text, sys.stderr), file=sys.stderr)


def print_json(*parts: Any) -> None:
    """Print results and mappings, merged, as a line of JSON on stdout."""
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part if isinstance(part, Mapping) else part.as_json()
    print(json.dumps(merged), flush=True)


def write_file(path: str | os.PathLike[str], content: bytes) -> int:
    """Write a file atomically. Return its number of bytes."""
    from luckbase.cluster.answers.files import whole_file

    with whole_file(os.fspath(path)) as file:
        file.write(content)
    return len(content)


def width(out: Any) -> int | None:
    """Return the columns of a terminal; None if `out` is not a terminal."""
    from rich.console import Console

    return Console(file=out).width if out.isatty() else None


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], out: Any) -> None:
    """Print a table, with the first column left-aligned and the others right-aligned. Numbers are
    never cut: on a narrow terminal, text is broken into lines, or each row becomes a block."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    columns = width(out)
    fitted = fit(heads, rows, columns) if columns else (heads, rows)
    if title:
        print(title, file=out)
    if fitted is None:
        print("", *blocks(heads, rows, columns or OFF_A_TERMINAL), "", sep="\n", file=out)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for i, head in enumerate(fitted[0]):
        table.add_column(head, justify="left" if i == 0 else "right", no_wrap=True)
    for row in fitted[1]:
        table.add_row(*row)
    needed = Console(width=10_000, markup=False, emoji=False).measure(table).maximum
    wide = max(needed, columns or OFF_A_TERMINAL)
    Console(file=out, width=wide, highlight=False, markup=False, emoji=False).print(table)


def print_to_fit(text: str, style: str = "", end: str = "\n") -> None:
    """Print lines of text on stdout, broken so that no number is split. style: a style of Rich
    ("bold", "dim"), for terminals only."""
    fitted = to_fit(text, sys.stdout)
    if style and sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, markup=False, emoji=False)
        console.print(fitted, style=style, end=end, soft_wrap=True)
    else:
        print(fitted, end=end, flush=end != "\n")


def print_entry(head: str, text: str) -> None:
    """Print a word and its description on stdout, side by side."""
    first, *rest = broken(text, (width(sys.stdout) or OFF_A_TERMINAL) - 11) or [""]
    print(f"{head:10} {first}", *(f"{'':10} {line}" for line in rest), sep="\n")


def to_fit(text: str, out: Any) -> str:
    """Return text with lines broken to the width of `out` so that no number is split; unchanged if
    `out` is not a terminal."""
    columns = width(out)
    return text if columns is None else "\n".join(fold(text.split("\n"), columns))


# --- progress ------------------------------------------------------------------------------------


@contextmanager
def progress(label: str, as_json: bool = False) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows a solve's progress: as a bar on a terminal, as a line every few
    seconds elsewhere, or as JSON."""
    if not as_json and sys.stderr.isatty():
        with _bar(label) as show:
            yield show
        return
    compiled = compiling_seconds()

    def show_line(now: Progress) -> None:
        if now.compiling:  # reported by `watch_compiling`
            return
        if as_json:
            print_json({"event": "progress"}, now)
        else:
            say(_line(label, now, compiling_seconds() - compiled))

    yield _seldom(show_line, LINE_SECONDS)


def _seldom(show: Callable[..., None], first: float) -> Callable[..., None]:
    """Limit `show` to one call every few seconds, at the earliest after `first` seconds."""
    due = time.monotonic() + first

    def show_now(*given: Any) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + LINE_SECONDS
            show(*given)

    return show_now


def _line(label: str, now: Progress, compiled: float) -> str:
    if now.finding:
        return f"{label}: {now.text}"
    done, total = now.parts
    remaining = now.estimate(compiled)
    more = "" if remaining is None else f", about {duration(remaining)} left"
    return f"{label}: {100 * done / (total or 1):.0f} %  {now.text}{more}"


@contextmanager
def _bar(label: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[text]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    console = Console(file=sys.__stderr__)  # there the bar moves the cursor
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None, text="")

        def show(now: Any) -> None:
            if now.compiling:
                return
            done, total = now.parts
            bar.update(task, total=total, completed=done, text=now.text)

        yield show


@contextmanager
def rows_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) that shows progress in rows; 0 done restarts the clock."""
    from luckbase.cluster.solve.progress import Progress

    began = time.monotonic()

    def on_rows(done: int, total: int) -> None:
        nonlocal began
        if not done:
            began = time.monotonic()
        show(Progress(0, 0, done, total, time.monotonic() - began))

    with progress(label) as show:
        yield on_rows


def search_progress(most: int) -> OnLevel:
    """Return a function that shows the progress of a search above a table once it takes long. most:
    maximum number of states."""

    def show(states: int, levels: int) -> None:
        states_found = f"{counted(states, 'state')} found in {many(levels, 'level')}"
        say(f"above the table, searching down to it: {states_found}, of at most {count(most)}")

    return _seldom(show, A_MOMENT)


# --- made to fit ---------------------------------------------------------------------------------

BETWEEN = 3
"""Characters that a column takes in addition to its cells."""
PIECE = r"\s*[^\s,/]*[,/]?\s*"
"""A long word may be broken after commas and slashes."""
NUMBER = r"[+\-−–$]?\.?\d|[–\-]?$"
"""How cells in a column of numbers begin; they may be empty."""


def fit(
    heads: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> tuple[list[str], list[list[str]]] | None:
    """Return headings and cells, broken to fit `width`; None if that is impossible."""
    columns = [[row[i] for row in rows] for i in range(len(heads))]
    numbers = [all(re.match(NUMBER, cell) for cell in column) for column in columns]
    least = [
        max([*map(len, column)] if number else _pieces(column), default=0)
        for column, number in zip(columns, numbers, strict=True)
    ]
    least = [max(longest, *_pieces([head])) for longest, head in zip(least, heads, strict=True)]
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, columns, strict=True)]
    room = width - BETWEEN * len(heads) - 1
    if sum(least) > room:
        return None
    while sum(widths) > room:  # shrink the widest first
        i = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
        widths[i] -= 1
    cells = [
        [cell if numbers[i] else "\n".join(broken(cell, widths[i])) for i, cell in enumerate(row)]
        for row in rows
    ]
    return ["\n".join(broken(head, widths[i])) for i, head in enumerate(heads)], cells


def blocks(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a block for each row, with lines ``head: value``, separated by empty lines."""
    lines = []
    for row in rows:
        for head, cell in zip(heads, row, strict=True):
            if cell:
                lines += broken(f"{head}: {cell}" if head else cell, width, "    ")
        lines.append("")
    return lines[:-1]


def broken(text: str, width: int, indent: str = "") -> list[str]:
    """Break a text into lines of at most `width`, at spaces or within long words at `PIECE`.

    indent: for all lines but the first. A piece that is too long gets its own line.
    """
    lines, line = [], ""
    for word in re.findall(r"\s*\S+\s*", text):
        fits = len(indent) + len(word.strip()) <= width
        for piece in [word] if fits else filter(None, re.findall(PIECE, word)):
            if line.strip() and len(line) + len(piece.rstrip()) > width:
                lines.append(line.rstrip())
                line = indent + piece.lstrip()
            else:
                line += piece
    return [*lines, line.rstrip()]


def _pieces(texts: Iterable[str]) -> list[int]:
    """Return the lengths of the unbreakable pieces."""
    return [len(piece.strip()) for text in texts for piece in re.findall(PIECE, text)] or [0]


def fold(lines: Sequence[str], width: int) -> list[str]:
    """Fold lines to at most `width`. Columns that all lines share are placed below one another,
    each part with the first column in front; lines without such columns are broken."""
    if all(len(line) <= width for line in lines):
        return list(lines)
    most = max(map(len, lines))
    padded = [line.ljust(most) for line in lines]
    blank = [all(line[k] == " " for line in padded) for k in range(most)]
    gaps = [k for k in range(2, most) if blank[k - 2] and blank[k - 1] and not blank[k]]
    if len(lines) < 2 or len(gaps) < 2:
        return [part for line in lines for part in broken(line, width, "    ")]
    first = gaps[1] if blank[0] and gaps[0] == blank.index(False) else gaps[0]
    folded, start = [], first
    while start < most:
        ends = [k for k in [*gaps, most] if start < k <= start + width - first]
        end = ends[-1] if ends else min(k for k in [*gaps, most] if k > start)
        folded += [*((line[:first] + line[start:end]).rstrip() for line in padded), ""]
        start = end
    return folded[:-1]
