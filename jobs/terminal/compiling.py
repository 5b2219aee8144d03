"""Says that numba compiles, where that takes longer than a moment: the first time on a machine.

Compiling begins wherever a game's rules are imported, mostly before there is any progress to show,
so a thread watches for it while a command runs. numba is never imported here.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

A_MOMENT = 1.0
"""Seconds of compiling after which a person is told."""
LOOK_EVERY = 0.1
TEXT = "compiling, the first time only …"


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
seconds = _clock.seconds
"""Seconds that this process has spent compiling while it was watched."""


@contextmanager
def watch() -> Iterator[None]:
    """While this lasts, compiling is measured, and said once where it takes long."""
    over = threading.Event()
    listeners: list[Any] = []
    before = seconds()

    def listen() -> None:
        said = False
        while not over.wait(LOOK_EVERY):
            if not listeners and hasattr(sys.modules.get("numba"), "njit"):
                listeners.append(_listen(sys.modules["numba.core.event"]))
            if not said and seconds() - before > A_MOMENT:
                print(TEXT, file=sys.stderr)
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
