"""Cores and memory that a process may use: its affinity and its control groups count. And what it
uses: of each process its own; what is shared once a machine."""

import os
from pathlib import Path

import pytest

from luckbase.cluster import machine
from luckbase.cluster.machine import MemoryUsed, total
from luckbase.cluster.solve.options import Options
from tests.shared import python

GB = 1 << 30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Control groups that a test writes; memory: 8 GB are free on the machine."""
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    (tmp_path / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {8 * GB >> 10} kB\n")
    return tmp_path


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_without_groups_it_is_the_machine_s(groups):
    assert (machine.cores(), machine.free_memory()) == (8, 8 * GB)


def test_version_two_the_tightest_of_all_groups_above_counts(groups):
    (groups / "own").write_text("0::/outer/inner\n")
    outer = groups / "cgroup/outer"
    write(outer / "inner", memory__max="max", cpu__max="max 100000")
    write(outer, memory__max=3 * GB, memory__current=2 * GB, cpu__max="250000 100000")
    write(outer, memory__stat=f"anon 5\ninactive_file {GB}")
    assert machine.free_memory() == 2 * GB  # what was read from files can be had back
    assert machine.cores() == 3
    write(outer / "inner", memory__max=GB, memory__current=0, cpu__max="50000 100000")
    assert machine.free_memory() == GB and machine.cores() == 1
    assert machine.memory_limit() == GB


def test_version_one(groups):
    (groups / "own").write_text("4:memory:/a\n2:cpu,cpuacct:/a\n")
    most = 1 << 62
    memory, cpu = groups / "cgroup/memory", groups / "cgroup/cpu,cpuacct"
    write(memory / "a", memory__limit_in_bytes=2 * GB, memory__usage_in_bytes=GB // 2)
    write(memory, memory__limit_in_bytes=most, memory__usage_in_bytes=3 * GB)
    write(cpu / "a", cpu__cfs_quota_us=400000, cpu__cfs_period_us=100000)
    write(cpu, cpu__cfs_quota_us=-1, cpu__cfs_period_us=100000)
    assert machine.free_memory() == 2 * GB - GB // 2
    assert machine.cores() == 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_a_process_that_may_run_on_one_core_has_one():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from luckbase.cluster.solve.options import Options; print(Options().slots)"
    )
    assert python("-c", code).stdout.strip() == "1"


def test_a_number_of_workers_that_is_given_stays():
    assert Options(workers=7).slots == 7


# --- the memory that a solve takes ---------------------------------------------------------------

MB = 1 << 20
WATCHED = """
import mmap, os, sys, time
from multiprocessing import shared_memory
import numpy as np
from luckbase.cluster import machine
from luckbase.cluster.machine import SAMPLE_SECONDS, restart_memory_peak, memory_used
sample, samples = machine._Peak._sample, []
machine._Peak._sample = lambda peak: samples.append(sample(peak))
before = memory_used()

def held(kind):
    if kind == "file":
        file = open(sys.argv[2], "rb")
        return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
    if kind == "own":
        return np.ones(200 << 20, np.uint8)
    block = shared_memory.SharedMemory(create=True, size=200 << 20)
    block.unlink()
    found = np.frombuffer(block.buf, np.uint8)
    found[:] = 1
    return block, found

there = held(sys.argv[1])
if sys.argv[1] == "file":
    there.sum()
seen = len(samples)
while len(samples) < seen + 2:
    time.sleep(SAMPLE_SECONDS)
if sys.argv[1] != "shared":
    del there
after = memory_used()
restart_memory_peak()
anew = memory_used()
sizes = after.private - before.private, after.shared, anew.private - before.private
print(*(size >> 20 for size in sizes))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
@pytest.mark.parametrize(
    ("kind", "own", "shared"),
    [("file", False, False), ("own", True, False), ("shared", False, True)],
)
def test_what_was_held_a_moment_counts_where_it_is_memory(kind, own, shared, on_disk):
    """Of a process alone: 200 MB each, of a file that it maps, of its own, of shared memory; what
    it lets go of before it is asked was seen."""
    file = on_disk / "file"
    with file.open("wb") as out:
        for _ in range(200):
            out.write(bytes(MB))
    done = python("-c", WATCHED, kind, file)
    mine, ours, again = map(int, done.stdout.split())
    assert again < 40, "a solve that begins does not answer for the one before"
    assert (180 <= mine <= 260) if own else mine < 40
    assert ours >= 180 if shared else ours == 0


def test_what_is_shared_counts_once_a_machine():
    processes = {
        "one host 1": MemoryUsed(100, 0), "one host 2": MemoryUsed(200, 1000),
        "one host 3": MemoryUsed(300, 900), "other 1": MemoryUsed(5, 10),
    }  # fmt: skip
    assert total(processes) == 605 + 1000 + 10
    assert total({}) == 0
