"""The memory that a solve takes: of each process its own, and of each machine what they share.

Pages of files do not count: they are mapped where payoffs spill and where tables are read, and the
system takes them back when it is short. What processes share, Ray's object store, counts once a
machine. The system keeps no peak of these two, so a thread looks ten times a second.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STATUS, SHARED = Path("/proc/self/status"), Path("/dev/shm")
EVERY = 0.1
"""Seconds between two looks."""
LEAST_SHARED = 1 << 20
"""Bytes of shared memory that a process has which uses an object store."""


@dataclass(frozen=True)
class MemoryUsed:
    """The most that a process was seen to have. own: bytes of its own. shared: bytes of shared
    memory that its machine has had more than when it was first looked at; 0 where this process
    uses none."""

    own: int
    shared: int


def look_from_now() -> None:
    """Forget what this process had before: a solve begins."""
    _peak.begin()


def memory_used() -> MemoryUsed:
    """The most that this process has had since it was first looked at, or since a solve began."""
    return _peak.so_far()


def total(processes: Mapping[str, MemoryUsed]) -> int:
    """Bytes of processes, by name (`worker.process_name`), together."""
    shared: dict[str, int] = {}
    for name, used in processes.items():
        host = name.rpartition(" ")[0]
        shared[host] = max(shared.get(host, 0), used.shared)
    return sum(used.own for used in processes.values()) + sum(shared.values())


def resident_memory() -> int:
    """Bytes that this process has in memory now, files included."""
    return _status().get("VmRSS", 0)


def _status() -> dict[str, int]:
    """What the system says of this process's memory, in bytes; nothing where it is not Linux."""
    found = {}
    with suppress(OSError), open(STATUS, encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, words = line.partition(":")
            if words.endswith(" kB\n"):
                found[name] = int(words.split()[0]) << 10
    return found


class _Peak:
    """The most that this process has had."""

    def __init__(self) -> None:
        self.own = self.shared = 0
        self._lock, self._process = threading.Lock(), 0
        self._before = 0

    def begin(self) -> None:
        with self._lock:
            self._begin()

    def _begin(self) -> None:
        self.own, self.shared, self._before = 0, 0, _shared_on_machine()
        if self._process != os.getpid():  # the first time, also after a fork
            self._process = os.getpid()
            threading.Thread(target=self._go_on, daemon=True, name="luckbase memory").start()

    def so_far(self) -> MemoryUsed:
        with self._lock:
            if self._process != os.getpid():
                self._begin()
            self._look()
            return MemoryUsed(self.own, self.shared)

    def _go_on(self) -> None:
        while True:
            time.sleep(EVERY)
            with self._lock:
                self._look()

    def _look(self) -> None:
        said = _status()
        if not said:
            unit = 1 if sys.platform == "darwin" else 1024
            self.own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
            return
        self.own = max(self.own, said.get("RssAnon", 0))
        if said.get("RssShmem", 0) >= LEAST_SHARED:
            self.shared = max(self.shared, _shared_on_machine() - self._before)


def _shared_on_machine() -> int:
    """Bytes of shared memory in use on this machine."""
    try:
        said = os.statvfs(SHARED)
    except OSError:
        return 0
    return (said.f_blocks - said.f_bfree) * said.f_frsize


_peak = _Peak()
