"""What this process may use of its machine: cores and memory, as its container and affinity say."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
MEMINFO = Path("/proc/meminfo")
_ENDLESS = 1 << 60


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
    return found if 0 <= found < _ENDLESS else None


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
