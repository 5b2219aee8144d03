"""What a person sees on a terminal: lines, tables, progress. On stderr, so that stdout stays data.

Text is made to fit a width without ever cutting a number. A table that is too wide gets narrower in
its text columns, states and names first, which break at spaces, after commas and after slashes; a
column of numbers stays whole. What cannot be made to fit is printed as a block a row.

**The process** that a command runs in: SIGTERM and SIGHUP end a command as Ctrl+C does: what was
solved is kept and is said to be.

What stdout or stderr cannot take is an error of ours that names the stream: an OSError without a
name would be taken for one of the results folder, and click takes a closed pipe for exit code 1,
which says "no" here.

If compiling takes longer than a moment, as it does the first time on a machine, a line says so. A
thread watches for it while a command runs, because it can begin before there is progress to show.
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
    from luckbase.cluster.run.progress import Progress
    from luckbase.cluster.table.lookup import OnLevel

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 2.0
"""Seconds that a signal may take to be heard, until a person is told."""

MOMENT_SECONDS = 1.0
"""Seconds of compiling after which a person is told."""
POLL_SECONDS = 0.1
COMPILING_TEXT = "compiling, the first time only …"


class Ended(KeyboardInterrupt):
    """A signal, Ctrl+C's too; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def exit_code(stop: BaseException) -> int:
    """The shell's code for a command that a signal ended: 130 for Ctrl+C, 143 for SIGTERM."""
    number: int = getattr(stop, "number", signal.SIGINT)
    return 128 + number


@contextmanager
def signals(watched: bool = True) -> Iterator[None]:
    """While this lasts, the signals raise `Ended`; not those that are ignored, as under nohup.

    watched: what compiled code does not hear is said to be so (`_watch`)."""

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
        raise Ended(number)

    main = threading.current_thread() is threading.main_thread()  # no other thread may set them
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
    """Say of a signal that compiled code keeps from its handler `end` how to end it: by another.

    reads: a pipe with the number of each signal that has come. An endless loop in the rules of
    somebody's game never returns to Python, where handlers run."""
    said = False
    with open(reads, "rb", buffering=0) as pipe:
        while byte := pipe.read(1):
            number = byte[0]
            if said and signal.getsignal(number) is end:
                os._exit(128 + number)
            time.sleep(PATIENCE)
            if signal.getsignal(number) is end:
                said = True
                name = "Ctrl+C" if number == signal.SIGINT else signal.Signals(number).name
                sentence = f"it stops when compiled code returns; {name} again ends it at once"
                os.write(2, f"\nluckbase: {sentence}\n".encode())


class StreamError(LuckbaseError):
    """What was printed could not be written."""


class ClosedPipe(StreamError):
    """Nobody reads any more, as after ``| head -1``: nothing is said, as other tools do."""

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
            os.dup2(nowhere, self.fileno())  # what is left in buffers is written at exit
            os.close(nowhere)
            if error.errno == errno.EPIPE:
                raise ClosedPipe(f"{self._called}: closed") from None
            raise StreamError(
                f"{self._called}: what was printed cannot be written: {error.strerror}"
            ) from None


class _Text(io.TextIOWrapper):
    """Text on which no character acts, except the colours of our own tables: names and messages
    may come from files of strangers."""

    def write(self, text: str) -> int:
        return super().write(_ACTS.sub("?", text))


_ACTS = re.compile(
    r"\x1b(?!\[[0-9;]*m)|[\0-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def name_streams() -> None:
    """From now on stdout and stderr raise `StreamError`, and print a code for a letter that their
    encoding lacks; for a process that is a command."""
    if sys.stdin is None:  # closed from the beginning, as by <&-
        sys.stdin = open(os.devnull)  # noqa: SIM115 (stays open)
    sys.stdout = _named(sys.stdout, "stdout")
    sys.stderr = _named(sys.stderr, "stderr")


def leave(code: int) -> NoReturn:
    """End this process now, as the system frees its memory in no time; Python takes 60 ms."""
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
    """Print once that functions are being compiled, if that takes long."""
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
"""Off a terminal, a line of progress as often as this; as JSON, an event."""
A_MOMENT = 1.0
"""Seconds of a search after which a person is told of it."""
OFF_A_TERMINAL = 160
"""Columns of a table in a file or a pipe; one that needs more takes more."""


def say(text: str = "", whole: bool = False) -> None:
    """A line for people; whole: it is never broken, as what can be typed again is not."""
    print(text if whole else to_fit(text, sys.stderr), file=sys.stderr)


def print_json(*parts: Any) -> None:
    """A line of JSON on stdout: results and mappings, as one."""
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part if isinstance(part, Mapping) else part.as_json()
    print(json.dumps(merged), flush=True)


def write_file(path: str | os.PathLike[str], content: bytes) -> int:
    """Write a file, all of it or nothing; returns its bytes."""
    from luckbase.cluster.table.frames import whole_file

    with whole_file(os.fspath(path)) as file:
        file.write(content)
    return len(content)


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


def print_to_fit(text: str, end: str = "\n") -> None:
    """Lines of text on stdout, with breaks where a terminal would put them into a number."""
    print(to_fit(text, sys.stdout), end=end, flush=end != "\n")


def print_entry(head: str, text: str) -> None:
    """A word and what is to be said of it, on stdout: beside it, on as many lines as it takes."""
    first, *rest = broken(text, (width(sys.stdout) or OFF_A_TERMINAL) - 11) or [""]
    print(f"{head:10} {first}", *(f"{'':10} {line}" for line in rest), sep="\n")


def to_fit(text: str, out: Any) -> str:
    """Lines of text with breaks where a terminal would put them into a number; as they are where
    `out` is none."""
    columns = width(out)
    return text if columns is None else "\n".join(fold(text.split("\n"), columns))


# --- progress ------------------------------------------------------------------------------------


@contextmanager
def progress(label: str, as_json: bool = False) -> Iterator[Callable[[Progress], None]]:
    """Shows how far a solve is: a bar on a terminal, a line every few seconds elsewhere; or prints
    it as JSON."""
    if as_json:
        yield _seldom(lambda now: print_json({"event": "progress"}, now))
    elif not sys.stderr.isatty():
        compiled = compiling_seconds()
        yield _seldom(lambda now: say(_line(label, now, compiling_seconds() - compiled)))
    else:
        with _bar(label) as show:
            yield show


def _seldom(show: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """`show`, called every few seconds at most; of compiling `watch_compiling` speaks."""
    last = time.monotonic()

    def show_now(now: Progress) -> None:
        nonlocal last
        if not now.compiling and time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            show(now)

    return show_now


def _line(label: str, now: Progress, compiled: float) -> str:
    if now.finding:
        return f"{label}: {_rate_text(now)}"
    done, total = now.parts
    left = now.left(compiled)
    more = "" if left is None else f", about {duration(left)} left"
    return f"{label}: {100 * done / (total or 1):.0f} %  {_rate_text(now)}{more}"


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
    console = Console(file=sys.__stderr__)  # where the bar moves the cursor
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None, said="")

        def show(now: Any) -> None:
            if now.compiling:  # most often it was compiled before, and this is not seen
                bar.update(task, said=COMPILING_TEXT)
                return
            done, total = now.parts
            bar.update(task, total=total, completed=done, said=_rate_text(now))

        yield show


@contextmanager
def rows_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """The same of rows alone: (done, in all); with none done the clock is set anew."""
    from luckbase.cluster.run.progress import Progress

    began = time.monotonic()

    def on_rows(done: int, total: int) -> None:
        nonlocal began
        if not done:
            began = time.monotonic()
        show(Progress(0, 0, done, total, time.monotonic() - began))

    with progress(label) as show:
        yield on_rows


def search_progress(most: int) -> OnLevel:
    """Says how far a search above a table is, of at most so many states, once it takes long."""
    last = time.monotonic() + A_MOMENT - LINE_SECONDS

    def show(states: int, levels: int) -> None:
        nonlocal last
        if time.monotonic() - last < LINE_SECONDS:
            return
        last = time.monotonic()
        states_found = f"{counted(states, 'state')} found in {many(levels, 'level')}"
        say(f"above the table, searching down to it: {states_found}, of at most {count(most)}")

    return show


def found_so_far(states: int, finding: str) -> str:
    """How many states a search has found, and where it is."""
    return f"{count(states)} state{'s' * (states != 1)} found, {finding}"


def _rate_text(now: Progress) -> str:
    rate = count(now.rate)
    if now.finding:
        return f"{found_so_far(now.rows, now.finding)}, {rate} states/s"
    what = now.of if now.rows_total else "shards"
    total = many(now.shards_total, what.removesuffix("s"))
    shards = f", {now.shards} of {total}" if now.shards_total else ""
    return f"{rate} states/s{shards}"


# --- made to fit ---------------------------------------------------------------------------------

BETWEEN = 3
"""Characters that a column takes beside its cells."""
PIECE = r"\s*[^\s,/]*[,/]?\s*"
"""What a long word may be broken into: after commas and after slashes."""
NUMBER = r"[+\-−–$]?\.?\d|[–\-]?$"
"""How the cells of a column of numbers begin; they may be empty."""


def fit(
    heads: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> tuple[list[str], list[list[str]]] | None:
    """The heads and the cells with line breaks where the table would be wider than `width`; None
    where no line breaks make it fit."""
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
    while sum(widths) > room:  # what can give most gives first
        i = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
        widths[i] -= 1
    cells = [
        [cell if numbers[i] else "\n".join(broken(cell, widths[i])) for i, cell in enumerate(row)]
        for row in rows
    ]
    return ["\n".join(broken(head, widths[i])) for i, head in enumerate(heads)], cells


def blocks(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A block a row, lines ``head: value``, and an empty line between."""
    lines = []
    for row in rows:
        for head, cell in zip(heads, row, strict=True):
            if cell:
                lines += broken(f"{head}: {cell}" if head else cell, width, "    ")
        lines.append("")
    return lines[:-1]


def broken(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of a text of at most `width`, where its words are, or the pieces of a longer word;
    `indent` before all but the first. A piece that is longer has a line to itself."""
    lines, line = [], ""
    for word in re.findall(r"\s*\S+\s*", text):
        whole = len(indent) + len(word.strip()) <= width
        for piece in [word] if whole else filter(None, re.findall(PIECE, word)):
            if line.strip() and len(line) + len(piece.rstrip()) > width:
                lines.append(line.rstrip())
                line = indent + piece.lstrip()
            else:
                line += piece
    return [*lines, line.rstrip()]


def _pieces(texts: Iterable[str]) -> list[int]:
    """The lengths of what cannot be broken."""
    return [len(piece.strip()) for text in texts for piece in re.findall(PIECE, text)] or [0]


def fold(lines: Sequence[str], width: int) -> list[str]:
    """Lines of at most `width`: columns that all lines have are put below one another, the first
    one before each part; lines without such columns are broken."""
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
