"""This machine: the cores, memory and disk space available to this process, and the peak memory of
processes.

Limits of the container and CPU affinity are respected. Pages of files do not count as used memory:
spilled payoffs and tables are mapped, and the system evicts their pages if memory is short. Memory
shared between processes (Ray's object store) counts once a machine. The system records no peak of
these two, so a thread samples them ten times a second.
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
"""Share of the free memory that running shards may use by default."""
DISK_RESERVE, RESERVE_SHARE = 1 << 30, 0.05
"""Bytes to keep free on the disk, and the maximum share of the disk that this may be."""
PROCESS_BYTES = 300 << 20
"""Bytes of a process before it solves anything: Python, numba, pyarrow."""
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
MEMINFO = Path("/proc/meminfo")
_UNLIMITED = 1 << 60


def cores() -> int:
    """Return how many cores this process may use, by CPU affinity and control groups."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        count = os.cpu_count() or 1
    for quota, period in _quotas():
        count = min(count, max(1, math.ceil(quota / period)))
    return max(1, count)


def free_memory() -> int:
    """Return how many bytes this process may still use: the system's estimate or half of the
    physical memory, limited by control groups."""
    free = _sizes(MEMINFO).get("MemAvailable", _physical_memory() // 2)
    return min([free, *(max(0, limit - used) for limit, used in _limits())])


def memory_to_use() -> int:
    """Return how many bytes running shards may use by default."""
    return int(free_memory() * MEMORY_SHARE)


def memory_limit() -> int:
    """Return how many bytes this process may use in total, by memory and control groups."""
    return min([_physical_memory(), *(limit for limit, _ in _limits())])


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_disk(what: str, needed: int, table: Path, smaller: str) -> None:
    """Check that a solve fits on the disk.

    what: "solve" or "search".
    needed: bytes in addition to existing files.
    table: the table's folder or URI.
    smaller: a change that would take less.

    Raises DiskLimitError.
    """
    disk = disk_of(table)
    if needed > disk.usable:
        raise DiskLimitError(
            f"disk: the {what} needs about {size(needed)} under {disk.room}; {smaller} takes less"
        )


class Disk(NamedTuple):
    """The disk that a table is on, or will be on."""

    folder: Path  # the nearest existing folder
    free: int  # free bytes
    reserve: int  # bytes of these to keep free

    @property
    def usable(self) -> int:
        return self.free - self.reserve

    @property
    def room(self) -> str:
        """The folder and its free bytes, as part of a sentence."""
        kept = f", of which {size(self.reserve)} stays free" if self.reserve else ""
        return f"{self.folder} and {size(self.free)} is free{kept}"


def disk_of(table: Path) -> Disk:
    """Return the disk of a table. An object store has unlimited room."""
    if "://" in str(table):
        return Disk(Path(tempfile.gettempdir()), sys.maxsize, 0)
    folder = table
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    return Disk(folder, usage.free, min(DISK_RESERVE, int(RESERVE_SHARE * usage.total)))


# --- control groups ------------------------------------------------------------------------------


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control group and its parents, for versions 2 and 1."""
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
    try:
        number = int(path.read_text())
    except (OSError, ValueError):  # "max", or not a file of this version
        return None
    return number if 0 <= number < _UNLIMITED else None


def _limits() -> Iterator[tuple[int, int]]:
    """Yield (limit, bytes in use that cannot be reclaimed) of control groups with a limit."""
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
    """Yield (quota, period) of the control groups with a processor limit."""
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
"""A process with at least this many bytes of shared memory uses an object store."""


@dataclass(frozen=True)
class MemoryUsed:
    """The sampled peak memory of a process."""

    private: int  # bytes of private memory
    shared: int
    """Increase of the machine's shared memory since the first sample, in bytes; 0 if the process
    uses none."""


def process_name() -> str:
    """Return a name of this process that is unique among all machines."""
    return f"{socket.gethostname()} {os.getpid()}"


def total(processes: Mapping[str, MemoryUsed]) -> int:
    """Return the total bytes of processes, given by name."""
    shared: dict[str, int] = {}
    for name, used in processes.items():
        host = name.rpartition(" ")[0]
        shared[host] = max(shared.get(host, 0), used.shared)
    return sum(used.private for used in processes.values()) + sum(shared.values())


def resident_memory() -> int:
    """Return the resident bytes of this process, including mapped files."""
    return _sizes(STATUS).get("VmRSS", 0)


def _sizes(path: Path) -> dict[str, int]:
    """Return the sizes in a file of the system, in bytes; empty if the system is not Linux."""
    sizes = {}
    with suppress(OSError), path.open(encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, words = line.partition(":")
            if words.endswith(" kB\n"):
                sizes[name] = int(words.split()[0]) << 10
    return sizes


class _Peak:
    def __init__(self) -> None:
        self.private = self.shared = self._before = self._process = 0
        self._lock = threading.RLock()

    def begin(self) -> None:
        """Reset the peak at the beginning of a solve."""
        with self._lock:
            self.private, self.shared, self._before = 0, 0, _shared_on_machine()
            if self._process != os.getpid():  # on the first call and after a fork
                self._process = os.getpid()
                threading.Thread(target=self._run, daemon=True, name="luckbase memory").start()

    def so_far(self) -> MemoryUsed:
        """Return the peak since the first sample or the last reset."""
        with self._lock:
            if self._process != os.getpid():
                self.begin()
            self._sample()
            return MemoryUsed(self.private, self.shared)

    def _run(self) -> None:
        while True:
            time.sleep(SAMPLE_SECONDS)
            with self._lock:
                self._sample()

    def _sample(self) -> None:
        sizes = _sizes(STATUS)
        if not sizes:
            unit = 1 if sys.platform == "darwin" else 1024
            self.private = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
            return
        self.private = max(self.private, sizes.get("RssAnon", 0))
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
    """Return an id that is equal for processes that see each other's process ids; "" if unknown."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def started(process: int) -> str:
    """Return when a process of this machine started, in the system's units; "" if there is none."""
    with suppress(OSError, IndexError):
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else rest[18]
    return ""


def process_ended(record: dict[str, Any]) -> bool | None:
    """True if the process named in a lock's record has ended; None if this cannot be known here."""
    machine = machine_id()
    if not machine or record.get("machine") != machine:
        return None
    return bool(started(record["process"]) != record["started"])
