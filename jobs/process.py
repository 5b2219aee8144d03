"""The process that a command runs in: its signals, its streams, and what it compiles.

SIGTERM and SIGHUP end a command as Ctrl+C does: what was solved is kept and is said to be.

What stdout or stderr cannot take is an error of ours that names the stream: an OSError without a
name would be taken for one of the results folder, and click takes a closed pipe for exit code 1,
which says "no" here.

That numba compiles is said where it takes longer than a moment: the first time on a machine. It
begins wherever a game's rules are imported, mostly before there is any progress to show, so a
thread watches for it while a command runs. numba is never imported here.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import Any, ClassVar, NoReturn, TextIO

from luckbase.solver.errors import LuckbaseError

SIGNALS = (signal.SIGTERM, signal.SIGHUP)

MOMENT_SECONDS = 1.0
"""Seconds of compiling after which a person is told."""
POLL_SECONDS = 0.1
COMPILING_TEXT = "compiling, the first time only …"


class Ended(KeyboardInterrupt):
    """A signal other than Ctrl+C's; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def exit_code(stop: BaseException) -> int:
    """The shell's code for a command that a signal ended: 130 for Ctrl+C, 143 for SIGTERM."""
    number: int = getattr(stop, "number", signal.SIGINT)
    return 128 + number


@contextmanager
def signals() -> Iterator[None]:
    """While this lasts, the signals raise `Ended`; not those that are ignored, as under nohup."""

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
        raise Ended(number)

    main = threading.current_thread() is threading.main_thread()  # no other thread may set them
    mine = [each for each in SIGNALS if main and signal.getsignal(each) == signal.SIG_DFL]
    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


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


def name_streams() -> None:
    """From now on stdout and stderr raise `StreamError`; for a process that is a command."""
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
    return io.TextIOWrapper(
        io.BufferedWriter(_Stream(stream.fileno(), called)), stream.encoding, stream.errors,
        line_buffering=called == "stderr" or stream.isatty(),
    )  # fmt: skip


class _Clock:
    """Seconds that this process has compiled for since it listens to numba, which compiles in one
    thread at a time; nested compilations count once."""

    def __init__(self) -> None:
        self.depth, self.began, self.total = 0, 0.0, 0.0

    def notify(self, event: Any) -> None:
        """What numba calls where a compilation begins and ends."""
        if event.is_start:
            self.began = self.began if self.depth else time.monotonic()
            self.depth += 1
        elif self.depth:  # else it had begun before anybody listened
            self.depth -= 1
            self.total += 0.0 if self.depth else time.monotonic() - self.began

    def seconds(self) -> float:
        """With those of what is compiled at this moment."""
        return self.total + (time.monotonic() - self.began if self.depth else 0.0)


_clock = _Clock()
compiling_seconds = _clock.seconds


@contextmanager
def watch_compiling() -> Iterator[None]:
    """While this lasts, it is said once that numba compiles, if that takes long."""
    over = threading.Event()
    before = compiling_seconds()

    def watch() -> None:
        said = False
        while not over.wait(POLL_SECONDS):
            if hasattr(sys.modules.get("numba"), "njit"):  # all of it is imported
                _listen(sys.modules["numba.core.event"])
            if not said and compiling_seconds() - before > MOMENT_SECONDS:
                print(COMPILING_TEXT, file=sys.stderr)
                said = True

    thread = threading.Thread(target=watch, name="luckbase compiling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@cache
def _listen(event: Any) -> None:
    """Have the clock listen to numba; event: its module, not imported from this thread, for two
    threads that import numba wait for each other."""
    event.Listener.register(_Clock)
    event.register("numba:compile", _clock)
