"""Cores and memory that a process may use: its affinity and its control groups count."""

import os

import pytest

from luckbase.cluster import machine
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
