"""The memory that a solve takes: of each process its own; what is shared once a machine."""

from pathlib import Path

import pytest

from luckbase.cluster.machine import MemoryUsed, total
from tests.shared import python

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
