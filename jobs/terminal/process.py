"""The process that a command runs in: its signals, its streams, and what it compiles.

SIGTERM and SIGHUP end a command as Ctrl+C does: what was solved is kept and is said to be.

What stdout or stderr can not take is an error of ours that names the stream: an OSError without a
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
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar, TextIO

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
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
        raise Ended(number)

    main = threading.current_thread() is threading.main_thread()  # no other thread may set them
    mine = [number for number in SIGNALS if main and before[number] == signal.SIG_DFL]
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
                f"{self._called}: what was printed can not be written: {error.strerror}"
            ) from None


def name_streams() -> None:
    """From now on stdout and stderr raise `StreamError`; for a process that is a command."""
    if sys.stdin is None:  # closed from the beginning, as by <&-
        sys.stdin = open(os.devnull)  # noqa: SIM115 (stays open)
    sys.stdout = _named(sys.stdout, "stdout")
    sys.stderr = _named(sys.stderr, "stderr")


def _named(stream: TextIO | None, called: str) -> TextIO:
    if stream is None:  # closed from the beginning, as by >&-
        return open(os.devnull, "w")
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Stream(stream.fileno(), called)), stream.encoding, stream.errors,
        line_buffering=called == "stderr" or stream.isatty(),
    )  # fmt: skip


class _Clock:
    """Seconds that this process has compiled for; nested compilations count once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._began, self._total = 0, 0.0, 0.0

    def listen(self) -> None:
        """Begin anew: what a listener of before has not seen the end of is over."""
        with self._lock:
            if self._depth:
                self._total += time.monotonic() - self._began
            self._depth = 0

    def start(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._began = time.monotonic()

    def stop(self) -> None:
        with self._lock:
            if self._depth == 0:
                return  # it had begun before anybody listened
            self._depth -= 1
            if self._depth == 0:
                self._total += time.monotonic() - self._began

    def seconds(self) -> float:
        with self._lock:
            now = time.monotonic() - self._began if self._depth else 0.0
            return self._total + now


_clock = _Clock()
compiling_seconds = _clock.seconds
"""Seconds that this process has spent compiling while it was watched."""


@contextmanager
def watch_compiling() -> Iterator[None]:
    """While this lasts, compiling is measured, and said once where it takes long."""
    over = threading.Event()
    listeners: list[Any] = []
    before = compiling_seconds()

    def listen() -> None:
        said = False
        while not over.wait(POLL_SECONDS):
            if not listeners and hasattr(sys.modules.get("numba"), "njit"):
                listeners.append(_listen(sys.modules["numba.core.event"]))
            if not said and compiling_seconds() - before > MOMENT_SECONDS:
                print(COMPILING_TEXT, file=sys.stderr)
                said = True

    thread = threading.Thread(target=listen, name="luckbase compiling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for listener in listeners:
            sys.modules["numba.core.event"].unregister("numba:compile", listener)
        _clock.listen()


def _listen(event: Any) -> Any:
    """A listener to numba; event: its module `numba.core.event`, not imported from this thread, for
    two threads that import numba wait for each other."""

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            _clock.start()

        def on_end(self, event: Any) -> None:
            _clock.stop()

    listener = Listener()
    _clock.listen()
    event.register("numba:compile", listener)
    return listener
