"""The machines of a cluster: who comes, who goes, who is left out; what each is made of."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from luckbase.cluster.run import nodes
from luckbase.cluster.run.nodes import PACKAGE, Head, Nodes, own_environment, source_files
from luckbase.solver.errors import WorkerError


def node(name, *, cpus=2, alive=True, memory=1e9):
    return {
        "NodeID": name, "Alive": alive, "NodeManagerHostname": f"host-{name}",
        "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": cpus, "memory": memory},
    }  # fmt: skip


class Cluster:
    """What Ray lists, and what is said of it; a clock that a test moves."""

    def __init__(self, monkeypatch, *there):
        self.listed, self.said, self.now = list(there), [], 0.0
        monkeypatch.setattr(nodes.time, "monotonic", lambda: self.now)
        self.nodes = Nodes(lambda: self.listed, self.said.append)

    said: list[str]

    def later(self, seconds, *there):
        self.now, self.listed = self.now + seconds, list(there)
        self.nodes.refresh()


def test_cores_are_those_of_the_living(monkeypatch):
    a = Cluster(monkeypatch, node("a"), node("b", alive=False), node("c", cpus=0))
    assert [each.slots for each in a.nodes.working] == [2]
    a.later(2, node("a"), node("d", cpus=5))
    assert sum(each.slots for each in a.nodes.working) == 7
    a.later(2, node("d", cpus=5), node("a", alive=False))
    assert [said.split(";")[0] for said in a.said] == [
        "node host-d (10.0.0.1) has joined",
        "node host-a (10.0.0.1) is gone",
    ]


def test_nobody_is_asked_twice_a_second(monkeypatch):
    a = Cluster(monkeypatch, node("a"))
    a.later(0.5, node("a"), node("b"))
    assert len(a.nodes.by_id) == 1
    a.later(0.6, node("a"), node("b"))
    assert len(a.nodes.by_id) == 2


def test_one_that_is_left_out_stays_so_and_the_last_one_ends_the_solve(monkeypatch):
    a = Cluster(monkeypatch, node("a"), node("b"))
    a.nodes.leave_out("a", "host-a", "has numba 0.1, not 0.68")
    a.nodes.leave_out("a", "host-a", "has numba 0.1, not 0.68")
    assert a.said == ["node host-a (10.0.0.1) is left out: it has numba 0.1, not 0.68"]
    a.later(2, node("a"), node("b"))
    assert a.nodes.refused == ["a"] and [each.name for each in a.nodes.working] == [
        "host-b (10.0.0.1)"
    ]
    with pytest.raises(WorkerError, match=r"no node .* is left .*: host-a .* has numba 0\.1, not"):
        a.nodes.leave_out("b", "host-b", "has no numba; 0.68 is needed")


def test_without_anybody_for_a_minute_the_solve_ends(monkeypatch):
    a = Cluster(monkeypatch, node("a"))
    a.later(2)
    a.later(50)
    a.later(2, node("a"))
    a.later(2)
    a.later(57)
    with pytest.raises(WorkerError) as found:
        a.later(4)
    assert "the last was host-a (10.0.0.1)" in str(found.value)
    assert "the same command goes on" in str(found.value)


def test_a_task_that_fits_on_no_node_does_not_wait_for_ever(monkeypatch):
    a = Cluster(monkeypatch, node("a", memory=2e9), node("b", memory=8e9))
    a.nodes.refresh_for(4_000_000_000, 1)
    for _ in range(40):  # b goes and comes again
        a.now, a.listed = a.now + 2, [node("a", memory=2e9)]
        if a.now == 40:
            a.listed.append(node("b", memory=8e9))
        a.nodes.refresh_for(4_000_000_000, 1)
    a.nodes.refresh_for(0, 1)
    alone = r"no node .* has 4 GB and 1 core for a shard; what was solved"
    with pytest.raises(WorkerError, match=alone):
        for _ in range(40):
            a.now += 2
            a.nodes.refresh_for(4_000_000_000, 1)


# --- what a machine is made of -----------------------------------------------------------------


def test_what_differs_is_said():
    mine = own_environment()
    assert mine.differs_from(mine) == ""
    for name, version in mine.versions:
        changed = tuple((n, "0.1" if n == name else v) for n, v in mine.versions)
        assert (
            mine.differs_from(replace(mine, versions=changed)) == f"has {name} 0.1, not {version}"
        )
        lacking = tuple((n, "" if n == name else v) for n, v in mine.versions)
        said = mine.differs_from(replace(mine, versions=lacking))
        assert said == f"has no {name}; {version} is needed"
    assert mine.differs_from(replace(mine, code="other")) == "runs other code of luckbase"


def test_it_is_known_without_importing_any_of_it():
    code = (
        "import sys; from luckbase.cluster.run.nodes import own_environment\n"
        "import luckbase.cluster.run.nodes; own_environment()\n"
        "print({'numba', 'numpy', 'pyarrow', 'ray', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_files_that_are_sent_are_the_package(tmp_path):
    """A process that has nothing but them runs the same code."""
    for name, path in source_files():
        (tmp_path / "luckbase" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, tmp_path / "luckbase" / name)
    rooms = {name.partition("/")[0] for name, _ in source_files()}
    assert {"solver", "cluster", "jobs", "__init__.py"} <= rooms
    assert not [name for name in rooms if name.startswith(("tests", "boards"))]
    code = (
        "import luckbase, luckbase.cluster.run.worker, luckbase.solver.games.skunk.kernel\n"
        "from luckbase.cluster.run.nodes import own_environment\n"
        "print(luckbase.__path__[0], own_environment().code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.split() == [str(tmp_path / "luckbase"), own_environment().code]
    assert PACKAGE.name == "luckbase"


def test_a_host_compiles_once_however_many_of_its_processes_come(tmp_path):
    code = (
        "from luckbase import solver; from luckbase.cluster.run import nodes\n"
        f"board = solver.load_board({str(PACKAGE.parent / 'boards/skunk/tiny.toml')!r})\n"
        "with nodes._one_at_a_time():\n"
        "    solver.load_layout(board).compile()\n"
        "from luckbase.solver.games.skunk.kernel import sweep\n"
        "print(*sweep.made.stats.cache_misses.values())\n"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert sorted(process.communicate()[0].strip() for process in started) == ["", "1"]


def test_a_machine_that_the_cluster_has_given_up_says_so(monkeypatch):
    a = Cluster(monkeypatch, node("a"), node("b"))
    a.nodes._own = "a"
    a.later(2, node("a"), node("b", alive=False))
    with pytest.raises(WorkerError, match=r"given up this machine.*the same command goes on"):
        a.later(2, node("a", alive=False), node("b"))


def test_a_head_that_answers_no_more_is_not_waited_for(monkeypatch):
    asked, answers = threading.Event(), threading.Event()

    def ask():
        if asked.is_set():
            answers.wait()
        asked.set()
        return ["a"]

    now = 0.0
    monkeypatch.setattr(nodes.time, "monotonic", lambda: now)
    head = Head(ask)
    assert head.nodes() == ["a"]
    now = nodes.HEAD_SECONDS - 1
    assert head.nodes() == ["a"]
    now += 2
    with pytest.raises(WorkerError, match=r"head of the cluster.*the same command goes on"):
        head.nodes()
    head.close()
    answers.set()
