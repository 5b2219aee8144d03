"""Workers of a Ray that a test plays: what they submit again, keep and report."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from luckbase.cluster.solve import nodes
from luckbase.cluster.solve.nodes import Nodes
from luckbase.cluster.solve.ray import RETRIES, RayWorkers
from luckbase.cluster.solve.worker import (
    NotSeenError,
    PayoffPlace,
    PayoffsLostError,
    PayoffsReady,
    TableLocation,
    Task,
)
from luckbase.solver.errors import OptionError, WorkerError

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
