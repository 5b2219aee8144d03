"""This machine: the cores and the memory that this process may use, as its container and affinity
say, and the memory that processes have had.

Pages of files do not count as had: they are mapped where payoffs spill and where tables are read,
and the system takes them back when it is short. What processes share, Ray's object store, counts
once a machine. The system keeps no peak of these two, so a thread looks ten times a second.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
MEMINFO = Path("/proc/meminfo")
_UNLIMITED = 1 << 60


def cores() -> int:
    """Cores that this process may keep busy: those it may run on, and what its control group's
    quota comes to; at least 1."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        count = os.cpu_count() or 1
    for quota, period in _quotas():
        count = min(count, max(1, math.ceil(quota / period)))
    return max(1, count)


def free_memory() -> int:
    """Bytes that this process may still use: the system's estimate, or half of all there is, and
    no more than its control groups leave it."""
    free = _available()
    for limit, used in _limits():
        free = min(free, max(0, limit - used))
    return free


def memory_limit() -> int:
    """Bytes that this process may use in all: the machine's, or what its control groups allow."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([total, *(limit for limit, _ in _limits())])


def _available() -> int:
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _folders(controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of those above it; version 2, then 1."""
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        home = GROUPS / names if names else GROUPS
        home = home if home.is_dir() else GROUPS / controller
        own = home / path.lstrip("/")
        yield own
        for above in own.parents:
            if above == home.parent:
                break
            yield above


def _number(path: Path) -> int | None:
    """The number in a file; None where there is none, or no limit."""
    try:
        found = int(path.read_text())
    except (OSError, ValueError):  # "max", or not a file of this version
        return None
    return found if 0 <= found < _UNLIMITED else None


def _limits() -> Iterator[tuple[int, int]]:
    """(limit, bytes in use that can not be had back) of the control groups that have a limit."""
    for folder in _folders("memory"):
        for limit, usage, idle in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            most, used = _number(folder / limit), _number(folder / usage)
            if most is not None:
                yield most, max(0, (used or 0) - _statistic(folder / "memory.stat", idle))


def _statistic(path: Path, name: str) -> int:
    try:
        found = dict(line.split() for line in path.read_text().splitlines())
        return int(found.get(name, 0))
    except (OSError, ValueError):
        return 0


def _quotas() -> Iterator[tuple[int, int]]:
    """(quota, period) of the control groups that have a limit of processor time."""
    for folder in _folders("cpu"):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            if quota != "max":
                yield int(quota), int(period)
        except (OSError, ValueError):
            pass
        quotas = [_number(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        if quotas[0] and quotas[1]:
            yield quotas[0], quotas[1]


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
