"""Ray's workers: what they submit again, keep and report, of a Ray that a test plays; which nodes
come and go and which versions they have; and addresses at which nobody answers."""

import os
import pickle
import shutil
import socket
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from luckbase.cluster.solve import nodes
from luckbase.cluster.solve import ray as ray_workers
from luckbase.cluster.solve.nodes import PACKAGE, Nodes, difference, source_files, versions
from luckbase.cluster.solve.ray import RETRIES, RayWorkers, _check_versions
from luckbase.cluster.solve.worker import (
    NotSeenError,
    PayoffPlace,
    PayoffsLostError,
    PayoffsReady,
    TableLocation,
    Task,
)
from luckbase.solver.errors import OptionError, WorkerError
from tests import solving
from tests.places import TINY
from tests.shared import python
from tests.solving import load_board

NODE = {
    "NodeID": "a", "Alive": True, "NodeManagerHostname": "host-a", "NodeManagerAddress": "::",
    "Resources": {"CPU": 1.0, "memory": 1e9},
}  # fmt: skip


class SomeRayError(Exception):
    """What all of Ray's errors are."""


class TaskError(SomeRayError):
    """What a task raised."""

    def __init__(self, cause):
        self.cause = cause

    def as_instanceof_cause(self):
        return self.cause


class LostError(SomeRayError):
    """An object that Ray cannot make again."""


class DiedError(SomeRayError):
    """A worker that died too often."""


class Results:
    """What a task yields."""

    def __init__(self, values):
        self.values = iter(values)

    def __next__(self):
        return next(self.values)


class SomeRay:
    """The part of Ray that `RayWorkers` uses: a task yields what comes next of `runs`."""

    exceptions = SimpleNamespace(
        RayTaskError=TaskError, ObjectLostError=LostError, RayError=SomeRayError,
        NodeDiedError=LostError, TaskUnschedulableError=LostError, GetTimeoutError=TimeoutError,
    )  # fmt: skip

    def __init__(self, *runs):
        self.runs, self.given, self.silent = list(runs), [], 0

    def remote(self, **how):
        return lambda function: self

    def options(self, **how):
        return SimpleNamespace(remote=self._begin)

    def _begin(self, *given):
        self.given.append(given)
        return Results(self.runs.pop(0))

    def put(self, value):
        return value

    def wait(self, waiting, **how):
        return waiting[:1], waiting[1:]

    def get(self, reference, timeout=0.0):
        if self.silent:
            self.silent -= 1
            raise TimeoutError
        if isinstance(reference, Exception):
            raise reference
        return reference


RECEIPT = SimpleNamespace(shard=7, stage_file="")
DONE = ["a", "payoffs", None, (RECEIPT, None)]


def task(*, keep=False, **more):
    return Task(7, "a job", 1, keep=PayoffPlace(7, (1,), (0, 1)) if keep else None, **more)


def workers_of(ray, table=Path("/nowhere")):
    there = Nodes([NODE], lambda text: None)
    return RayWorkers(ray, TableLocation(table, ""), there, 1)


def receipts(workers, task):
    workers.submit(task)
    result = []
    while not result or result[-1] is not RECEIPT:
        event = workers.wait_one(0.0)
        result += [event] if event is not None else []
    assert not workers._tasks
    return result


@pytest.mark.parametrize("ended", [DONE[:n] for n in range(4)], ids=len)
def test_a_task_that_ray_ends_half_way_is_submitted_again(ended):
    ray = SomeRay(ended, ended, DONE)
    workers = workers_of(ray)
    assert receipts(workers, task()) == [RECEIPT] and len(ray.given) == 3
    assert [node["shards_done"] for node in workers.activity()] == [1]


def test_payoffs_that_were_there_come_again_with_the_second_try():
    ray = SomeRay(["a", "lost"], DONE)
    workers = workers_of(ray)
    result = receipts(workers, task(keep=True))
    assert [type(each) for each in result] == [PayoffsReady, PayoffsReady, SimpleNamespace]
    assert workers._kept == {7: {0: "payoffs"}}


def test_a_task_that_ray_always_ends_is_a_sentence():
    ray = SomeRay(*[DONE[:1]] * (RETRIES + 1))
    with pytest.raises(WorkerError, match=f"stopped a task {RETRIES + 1} times; the solved"):
        receipts(workers_of(ray), task())
    assert len(ray.given) == RETRIES + 1


def test_parts_of_a_tier_are_references_of_their_own_with_their_numbers():
    ray = SomeRay(["a", "second half"], ["a", "first half"], DONE)
    workers = workers_of(ray)
    for part in (1, 0):
        place = PayoffPlace(5, (4,), (2 * part, 2 * part + 2), part, 2)
        workers.submit(Task(part, "a job", 1, keep=place))
    while len(workers._kept.get(5, {})) < 2:
        workers._next(list(workers._tasks)[-1])
        workers._next(next(iter(workers._tasks)))
    workers.submit(task(reads=(5,)))
    _, _, sent, parts, *inputs = ray.given[-1]
    (numbers,) = parts
    assert sent == () and dict(zip(numbers, inputs, strict=True)) == {
        0: "first half", 1: "second half",
    }  # fmt: skip
    workers.drop(5)
    assert not workers._kept


def test_a_node_that_does_not_see_the_table_is_sent_the_files(tmp_path):
    (tmp_path / "one.parquet").write_bytes(b"some rows")
    ray = SomeRay([TaskError(NotSeenError(("one.parquet",)))], DONE)
    workers = workers_of(ray, tmp_path)
    assert receipts(workers, task()) == [RECEIPT]
    assert [given[2] for given in ray.given] == [(), ("one.parquet",)]
    assert ray.given[1][4:] == (b"some rows",)


def test_a_stage_file_is_an_object_until_it_is_deleted():
    result = SimpleNamespace(shard=1, stage_file="f.arrow")
    ray = SomeRay(["a", None, b"states", (result, None)], DONE, [])
    workers = workers_of(ray)
    workers.submit(Task(1, "find", 1))
    assert [workers.wait_one(0.0)] == [result]
    receipts(workers, task(stage_file="f.arrow"))
    assert ray.given[1][2] == ("f.arrow",) and ray.given[1][4:] == (b"states",)
    workers.delete(["f.arrow"])
    with pytest.raises(PayoffsLostError, match="the same command resumes"):
        workers.submit(task(stage_file="f.arrow"))


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (LostError(), PayoffsLostError),
        (TaskError(LostError()), PayoffsLostError),
        (TaskError(OptionError("no")), OptionError),
        (TaskError(ZeroDivisionError()), ZeroDivisionError),
        (TaskError(KeyError("bug")), KeyError),
        (DiedError("out of memory"), WorkerError),
    ],
)
def test_what_a_task_raised_or_ray_lost_is_raised_here(raised, kind):
    with pytest.raises(kind) as result:
        receipts(workers_of(SomeRay([raised])), task())
    assert type(result.value) is kind


def test_an_object_is_not_waited_for_if_the_cluster_is_lost(monkeypatch):
    ray = SomeRay(DONE)
    ray.silent = 3
    workers = workers_of(ray)
    looked = []
    refresh = workers.nodes.refresh

    def look(*needed):
        looked.append(needed)
        if len(looked) == 10:
            raise WorkerError("lost")
        refresh(*needed)

    monkeypatch.setattr(workers.nodes, "refresh", look)
    assert receipts(workers, task()) == [RECEIPT] and looked.count(()) == 3
    ray.runs, ray.silent = [DONE], 100
    with pytest.raises(WorkerError, match="lost"):
        receipts(workers, task())


@dataclass(frozen=True)
class Job:
    """A job that notes what it gets."""

    location: TableLocation

    def compile(self):
        """Nothing."""

    def run(self, task, payoffs, out, stop):
        yield payoffs, self.location.read("f")
        self.location.keep("shards/f", b"states")
        yield SimpleNamespace(stage_file="shards/f", scratch=self.location.scratch), {"file": b""}


def test_a_task_gets_files_and_parts_and_leaves_nothing_on_its_node(monkeypatch):
    import ray

    context = SimpleNamespace(get_node_id=lambda: "a")
    monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
    inputs = b"file", "whole", "second", "first"
    done = nodes.run(
        nodes.versions(),
        pickle.dumps(Task(0, Job(TableLocation(Path("/nowhere"), "")), 1)),
        ("f",),
        ((0,), (1, 0)),
        *inputs,
    )
    node, own, stage_file, (receipt, content) = done
    assert node == "a" and own == (["whole", {1: "second", 0: "first"}], b"file")
    assert stage_file == b"states" and content == {"file": b""}
    assert not receipt.scratch.exists()


def test_a_node_that_joins_with_another_version_is_named():
    needed = {**versions(), "numba": "0.1"}
    with pytest.raises(WorkerError, match=r"node \S+ has numba \S+, not 0\.1; the solved parts"):
        next(nodes.run(needed, b"", (), ()))


@pytest.mark.parametrize(
    ("error", "alive"), [(LostError, False), (LostError, True), (TimeoutError, True)]
)
def test_only_a_node_that_lives_must_answer_the_probe_and_a_slow_one_later(error, alive):
    listed, notes = {**NODE, "NodeID": 28 * "0a", "Alive": alive}, []

    class Lost(SomeRay):
        def get(self, reference, timeout=0.0):
            raise error("the node is gone")

        def nodes(self):
            return [listed]

    refused = pytest.raises(OptionError, match="cannot do a task: the node is gone")
    with refused if alive and error is LostError else nullcontext():
        _check_versions(Lost([None]), Nodes([{**listed, "Alive": True}], notes.append))
    slow = [text for text in notes if "has started no worker for 60 s" in text]
    assert len(slow) == (error is TimeoutError)


# --- the nodes of a cluster ----------------------------------------------------------------------


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


# --- the address of a cluster --------------------------------------------------------------------


def test_a_cluster_that_does_not_answer_in_time_is_a_sentence(monkeypatch, capfd):
    monkeypatch.setattr(ray_workers, "CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OptionError, match=f"cluster at {address} has not answered for 1 s; is"):
            ray_workers.check_address(address)
    assert capfd.readouterr() == ("", "")


def test_a_node_with_another_version_is_named_before_anything_is_solved(
    tmp_path, ray_cluster, monkeypatch
):
    created = versions()
    monkeypatch.setattr(nodes, "versions", lambda: {**created, "numba": "0.1"})
    with pytest.raises(OptionError, match=r"address: node \S+ \(\S+\) has numba \S+, not 0.1$"):
        solving.solve_board(load_board(TINY), results=tmp_path, address=ray_cluster)
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_old_table_answers_if_the_cluster_does_not(table_of, command, monkeypatch):
    """Nor does an old address in RAY_ADDRESS matter, with which Ray would replace ``auto``."""
    table = table_of(TINY, frontier=2)
    words = ["solve", TINY, "--set", "frontier=2", "--results", table.parents[2]]
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    code, _, err = command(*words, "--force", "--address", "auto")
    assert code == 2 and err.count("\n") == 1, err
    assert "--address: the Ray cluster at auto does not answer" in err
    assert command(*words, "--address", "auto")[0] == 0  # complete
    code, out, err = command("query", table, "scores=0,1000,500", "earned=0,1,0")
    assert code == 0 and "play" in out, err
