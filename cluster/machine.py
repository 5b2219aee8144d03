"""This machine: the cores, memory and disk that this process may use, as its container and affinity
say, and the memory that processes have had.

Pages of files do not count as had: they are mapped where payoffs spill and where tables are read,
and the system takes them back when it is short. What processes share, Ray's object store, counts
once a machine. The system keeps no peak of these two, so a thread samples them ten times a second.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from luckbase.solver.errors import DiskLimitError
from luckbase.solver.sentences import size

MEMORY_SHARE = 0.7
"""Of the machine's free memory, what shards in flight may use by default."""
DISK_RESERVE, RESERVE_SHARE = 1 << 30, 0.05
"""Bytes that stay free on the disk, and the share of the disk that they are at most."""
PROCESS_BYTES = 300 << 20
"""Bytes of a process before it solves anything: Python, numba, pyarrow."""
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
    free = _sizes(MEMINFO).get("MemAvailable", _physical_memory() // 2)
    return min([free, *(max(0, limit - used) for limit, used in _limits())])


def memory_to_use() -> int:
    """Bytes that shards in flight may use by default."""
    return int(free_memory() * MEMORY_SHARE)


def memory_limit() -> int:
    """Bytes that this process may use in all: the machine's, or what its control groups allow."""
    return min([_physical_memory(), *(limit for limit, _ in _limits())])


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_disk(what: str, needed: int, table: Path, smaller: str) -> None:
    """Refuse a solve that does not fit on the disk.

    what: "solve" or "search". needed: bytes beside the files that exist. smaller: the change that
    would take less. Raises DiskLimitError.
    """
    disk = disk_of(table)
    if needed > disk.usable:
        raise DiskLimitError(
            f"disk: the {what} needs about {size(needed)} under {disk.room}; {smaller} takes less"
        )


class Disk(NamedTuple):
    """The disk that a table is on or will be on. folder: the nearest folder that exists. free:
    bytes. reserve: the bytes among these that stay free."""

    folder: Path
    free: int
    reserve: int

    @property
    def usable(self) -> int:
        """Bytes that a solve may write."""
        return self.free - self.reserve

    @property
    def room(self) -> str:
        """The folder and its free bytes, for a sentence."""
        kept = f", of which {size(self.reserve)} stays free" if self.reserve else ""
        return f"{self.folder} and {size(self.free)} is free{kept}"


def disk_of(table: Path) -> Disk:
    """Return the disk of a table; an object store has room without limit."""
    if "://" in str(table):
        return Disk(Path(tempfile.gettempdir()), sys.maxsize, 0)
    folder = table
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    return Disk(folder, usage.free, min(DISK_RESERVE, int(RESERVE_SHARE * usage.total)))


# --- control groups ------------------------------------------------------------------------------


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
        root = GROUPS / names if names else GROUPS
        root = root if root.is_dir() else GROUPS / controller
        group = root / path.lstrip("/")
        yield group
        yield from (above for above in group.parents if above.is_relative_to(root))


def _number(path: Path) -> int | None:
    """The number in a file; None where there is none, or no limit."""
    try:
        number = int(path.read_text())
    except (OSError, ValueError):  # "max", or not a file of this version
        return None
    return number if 0 <= number < _UNLIMITED else None


def _limits() -> Iterator[tuple[int, int]]:
    """(limit, bytes in use that can not be had back) of the control groups that have a limit."""
    for folder in _folders("memory"):
        for limit_file, usage, idle in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            limit = _number(folder / limit_file)
            if limit is None:
                continue
            reclaimable = 0
            with suppress(OSError, ValueError):
                statistics = dict(map(str.split, (folder / "memory.stat").read_text().splitlines()))
                reclaimable = int(statistics.get(idle, 0))
            yield limit, max(0, (_number(folder / usage) or 0) - reclaimable)


def _quotas() -> Iterator[tuple[int, int]]:
    """(quota, period) of the control groups that have a limit of processor time."""
    for folder in _folders("cpu"):
        with suppress(OSError, ValueError):  # "max", or not a file of this version
            quota, period = map(int, (folder / "cpu.max").read_text().split())
            yield quota, period
        quotas = [_number(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        if quotas[0] and quotas[1]:
            yield quotas[0], quotas[1]


# --- memory that processes have had --------------------------------------------------------------

STATUS, SHARED = Path("/proc/self/status"), Path("/dev/shm")
SAMPLE_SECONDS = 0.1
"""Seconds between two samples."""
MIN_SHARED = 1 << 20
"""Bytes of shared memory that a process has which uses an object store."""


@dataclass(frozen=True)
class MemoryUsed:
    """The peak of a process, as sampled. own: bytes of its own. shared: bytes of shared
    memory that its machine has had more than at the first sample; 0 where this process
    uses none."""

    own: int
    shared: int


def process_name() -> str:
    """This process among those of all machines."""
    return f"{socket.gethostname()} {os.getpid()}"


def total(processes: Mapping[str, MemoryUsed]) -> int:
    """Bytes of processes, by name, together."""
    shared: dict[str, int] = {}
    for name, used in processes.items():
        host = name.rpartition(" ")[0]
        shared[host] = max(shared.get(host, 0), used.shared)
    return sum(used.own for used in processes.values()) + sum(shared.values())


def resident_memory() -> int:
    """Bytes that this process has in memory now, files included."""
    return _sizes(STATUS).get("VmRSS", 0)


def _sizes(path: Path) -> dict[str, int]:
    """What the system says of memory in a file, in bytes; nothing where it is not Linux."""
    sizes = {}
    with suppress(OSError), path.open(encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, words = line.partition(":")
            if words.endswith(" kB\n"):
                sizes[name] = int(words.split()[0]) << 10
    return sizes


class _Peak:
    def __init__(self) -> None:
        self.own = self.shared = self._before = self._process = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Forget what this process had before: a solve begins."""
        with self._lock:
            self._begin()

    def _begin(self) -> None:
        self.own, self.shared, self._before = 0, 0, _shared_on_machine()
        if self._process != os.getpid():  # the first time, also after a fork
            self._process = os.getpid()
            threading.Thread(target=self._run, daemon=True, name="luckbase memory").start()

    def so_far(self) -> MemoryUsed:
        """The most since the first sample, or since a solve began."""
        with self._lock:
            if self._process != os.getpid():
                self._begin()
            self._sample()
            return MemoryUsed(self.own, self.shared)

    def _run(self) -> None:
        while True:
            time.sleep(SAMPLE_SECONDS)
            with self._lock:
                self._sample()

    def _sample(self) -> None:
        sizes = _sizes(STATUS)
        if not sizes:
            unit = 1 if sys.platform == "darwin" else 1024
            self.own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
            return
        self.own = max(self.own, sizes.get("RssAnon", 0))
        if sizes.get("RssShmem", 0) >= MIN_SHARED:
            self.shared = max(self.shared, _shared_on_machine() - self._before)


def _shared_on_machine() -> int:
    try:
        disk = os.statvfs(SHARED)
    except OSError:
        return 0
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


_peak = _Peak()

restart_memory_peak, memory_used = _peak.begin, _peak.so_far


def machine_id() -> str:
    """What only processes that see each other's numbers have in common; "" where the system does
    not say."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def started(process: int) -> str:
    """When a process of this machine began, in the system's count; "" where there is none."""
    with suppress(OSError, IndexError):
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else rest[18]
    return ""


def process_ended(record: dict[str, Any]) -> bool | None:
    """Whether the process that a lock's record names has ended; None where that is not known
    here."""
    machine = machine_id()
    if not machine or record.get("machine") != machine:
        return None
    return bool(started(record["process"]) != record["started"])
