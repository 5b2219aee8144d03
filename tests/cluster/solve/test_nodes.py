"""The nodes of a cluster: which come and go, and which versions they have."""

import os
import shutil
import subprocess
import sys

import pytest

from luckbase.cluster.solve import nodes
from luckbase.cluster.solve.nodes import PACKAGE, Nodes, difference, source_files, versions
from luckbase.solver.errors import WorkerError
from tests.shared import python


def node(name, *, cpus=2, alive=True, memory=1e9):
    return {
        "NodeID": name, "Alive": alive, "NodeManagerHostname": f"host-{name}",
        "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": cpus, "memory": memory},
    }  # fmt: skip


class Cluster:
    """The nodes that Ray lists, the notes about them, and a clock that a test moves."""

    def __init__(self, monkeypatch, *there):
        self.said, self.now = [], 0.0
        monkeypatch.setattr(nodes.time, "monotonic", lambda: self.now)
        self.nodes = Nodes(list(there), self.said.append)

    def later(self, seconds, *there, needs=(0, 1)):
        self.now += seconds
        self.nodes.hear(list(there))
        self.nodes.refresh(*needs)


def test_cores_are_those_of_the_living_and_who_comes_and_goes_is_noted(monkeypatch):
    a = Cluster(monkeypatch, node("a"), node("b", alive=False), node("c", cpus=0))
    assert [each.slots for each in a.nodes.by_id.values()] == [2]
    a.later(2, node("a"), node("d", cpus=5))
    assert sum(each.slots for each in a.nodes.by_id.values()) == 7
    a.later(2, node("d", cpus=5), node("a", alive=False))
    assert [text.split(";")[0] for text in a.said] == [
        "node host-d (10.0.0.1) has joined",
        "node host-a (10.0.0.1) is gone",
    ]


def test_without_a_node_for_a_minute_the_solve_ends(monkeypatch):
    a = Cluster(monkeypatch, node("a"))
    a.later(2)
    a.later(50)
    a.later(2, node("a"))
    a.later(2)
    a.later(57)
    with pytest.raises(WorkerError, match=r"no node .* is left .*the same command resumes"):
        a.later(4)


def test_a_task_that_fits_on_no_node_does_not_wait_for_ever(monkeypatch):
    a, needs = Cluster(monkeypatch, node("a", memory=2e9), node("b", memory=8e9)), (4 * 10**9, 1)
    a.nodes.refresh(*needs)
    for _ in range(40):  # b goes and comes again
        b = [node("b", memory=8e9)] if a.now == 40 else []
        a.later(2, node("a", memory=2e9), *b, needs=needs)
    a.later(2, node("a", memory=2e9))
    alone = r"no node .* has 4 GB and 1 core for a shard; the solved parts"
    with pytest.raises(WorkerError, match=alone):
        for _ in range(40):
            a.later(2, node("a", memory=2e9), needs=needs)


def test_a_head_that_is_silent_is_not_waited_for(monkeypatch):
    a = Cluster(monkeypatch, node("a"))
    a.now = nodes.HEAD_SECONDS - 1
    a.nodes.refresh()
    a.now += 2
    with pytest.raises(WorkerError, match=r"head of the cluster.*the same command resumes"):
        a.nodes.refresh()


# --- what a machine is made of -----------------------------------------------------------------


def test_what_differs_is_said():
    mine = versions()
    assert difference(mine, mine) == "" and {"Python", "numba", "luckbase"} <= mine.keys()
    for name, version in mine.items():
        assert difference(mine, {**mine, name: "0.1"}) == f"has {name} 0.1, not {version}"
        lacking = difference(mine, {**mine, name: ""})
        assert lacking == f"has no {name}; {version} is needed"


def test_it_is_known_without_importing_any_of_it():
    code = (
        "import sys; from luckbase.cluster.solve.nodes import versions; versions()\n"
        "print({'numba', 'numpy', 'pyarrow', 'ray', 'pydantic'} & set(sys.modules))"
    )
    assert python("-c", code).stdout.strip() == "set()"


def test_the_files_that_are_sent_are_the_package(tmp_path):
    """A process that has nothing but them runs the same code."""
    for name, path in source_files():
        (tmp_path / "luckbase" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, tmp_path / "luckbase" / name)
    rooms = {name.partition("/")[0] for name, _ in source_files()}
    assert {"solver", "cluster", "jobs", "__init__.py"} <= rooms
    assert not [name for name in rooms if name.startswith(("tests", "boards"))]
    code = (
        "import luckbase, luckbase.cluster.solve.worker, luckbase.solver.games.skunk.kernel\n"
        "from luckbase.cluster.solve.nodes import versions\n"
        "print(luckbase.__path__[0], versions()['luckbase'])"
    )
    done = python("-c", code, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path)
    assert done.stdout.split() == [str(tmp_path / "luckbase"), versions()["luckbase"]]
    assert PACKAGE.name == "luckbase"


ONE_FUNCTION = """
from luckbase.cluster.solve import nodes
from luckbase.solver.compiled import njit, types

@njit(types.int64(types.int64))
def twice(x):
    return 2 * x

with nodes.one_at_a_time():
    twice(1)
print(*twice.made.stats.cache_misses.values())
"""


def test_a_host_compiles_once_however_many_of_its_processes_come(tmp_path):
    script = tmp_path / "one_function.py"
    script.write_text(ONE_FUNCTION)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}
    started = [
        subprocess.Popen([sys.executable, script], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert sorted(process.communicate()[0].strip() for process in started) == ["", "1"]
