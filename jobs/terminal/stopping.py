"""SIGTERM and SIGHUP end a command as Ctrl+C does: what was solved is kept and is said to be."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


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
