"""A task that Ray ends half-way, without an error, is handed out again, a few times."""

import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from luckbase import solver
from luckbase.cluster.run import ray as ray_workers
from luckbase.cluster.run.ray import RETRIES, RayWorkers
from luckbase.cluster.run.schedule import BATCHES
from luckbase.cluster.run.worker import PayoffPlace, PayoffsReady, TableLocation, Task
from luckbase.solver.errors import WorkerError
from tests.places import BOARDS


class SomeRay:
    """As much of Ray as `RayWorkers` asks for: a task yields what comes next of `runs`."""

    exceptions = SimpleNamespace(
        RayTaskError=KeyError, ObjectLostError=KeyError, RayError=KeyError, NodeDiedError=KeyError,
        TaskUnschedulableError=KeyError, GetTimeoutError=TimeoutError,
    )  # fmt: skip
    silent = 0

    def __init__(self, *runs):
        self.runs, self.handed_out = list(runs), 0
        self.given = []

    def nodes(self):
        return [{
            "NodeID": "a", "Alive": True, "NodeManagerHostname": "a", "NodeManagerAddress": "::",
            "Resources": {"CPU": 1.0, "memory": 1e9},
        }]  # fmt: skip

    def remote(self, *function, **how):
        return self if function else lambda done: self if done.__name__ == "run" else None

    def options(self, **how):
        return SimpleNamespace(remote=self._begin)

    def _begin(self, *given):
        self.handed_out += 1
        self.given.append(given)
        return iter(self.runs.pop(0))

    def put(self, value):
        return value

    def wait(self, waiting, **how):
        return waiting[:1], waiting[1:]

    def get(self, reference, timeout=0.0):
        if self.silent:
            self.silent -= 1
            raise TimeoutError
        return reference


RECEIPT = SimpleNamespace(sent=False, node="a", shard=7, stage_file="")
SENT = SimpleNamespace(sent=True, node="a", stage_file="", arrived=lambda storage, files: RECEIPT)
"""Its files come behind it."""


def task(*, keep):
    return Task(7, "a job", 1, keep=PayoffPlace(7, (1,), (0, 1)) if keep else None)


def workers_of(ray):
    nowhere = TableLocation(Path("/nowhere"), "")
    return RayWorkers(ray, nowhere, lambda text: None, joined=False, max_slots=1)


def receipts(ray, *, keep):
    workers = workers_of(ray)
    workers.submit(task(keep=keep))
    said = []
    while not said or said[-1] is not RECEIPT:
        event = workers.wait_one(0.0)
        said += [event] if event is not None else []
    assert not workers._tasks
    return said


@pytest.mark.parametrize("ended", [[], [None], [None, "payoffs"], [None, "payoffs", SENT]], ids=len)
def test_it_is_done_again(ended):
    ray = SomeRay(ended, ended, [None, "payoffs", RECEIPT, None])
    said = receipts(ray, keep=False)
    assert said == [RECEIPT] and ray.handed_out == 3


def test_payoffs_that_were_there_come_again_with_the_second_try():
    ray = SomeRay([None, "lost"], [None, "payoffs", RECEIPT, None])
    said = receipts(ray, keep=True)
    assert [type(one) for one in said] == [PayoffsReady, PayoffsReady, SimpleNamespace]
    assert ray.handed_out == 2


def test_in_the_end_it_is_a_sentence():
    ray = SomeRay(*[[None]] * (RETRIES + 1))
    with pytest.raises(WorkerError, match=f"stopped a task {RETRIES + 1} times; what was"):
        receipts(ray, keep=False)
    assert ray.handed_out == RETRIES + 1


def test_the_board_of_all_tasks_is_the_same_one_there():
    ray, board = SomeRay([], []), solver.load_board(BOARDS / "press-your-luck/tiny.toml")
    workers = workers_of(ray)
    other = solver.load_board(BOARDS / "press-your-luck/tiny.toml", max_whammies=2)
    for number in range(2):
        job = SimpleNamespace(board=board, number=number, other=other)
        workers.submit(Task(number, job, 0))
    first, second = (pickle.loads(content) for _, content, *_ in ray.given)
    assert first.other == other != board
    assert (first.number, second.number) == (0, 1)
    assert first.board == board and first.board is second.board


def test_parts_of_a_tier_come_in_pieces_each_once():
    """Some at once, as they are solved: also one that comes twice."""
    ray = SomeRay(*[[]] * 100)
    brought = []
    workers = workers_of(ray)
    workers._gather = SimpleNamespace(remote=lambda batch: brought.append(batch) or batch)
    order = [*range(39, -1, -1)]
    for part in [*order[:7], order[3], *order[7:]]:
        place = PayoffPlace(5, (80,), (2 * part, 2 * part + 2), part, 40)
        workers._keep(place, np.array([2.0 * part, 2.0 * part + 1]), "a")
    assert len(brought) == BATCHES
    pieces = workers._payoffs(5, "")
    assert len(pieces) == BATCHES == len(brought)  # nothing is put together twice
    assert [part for numbers, _ in pieces for part in numbers] == order
    for numbers, parts in pieces:
        assert [of[0] for of in parts] == [2.0 * part for part in numbers]
    workers.drop(5)
    assert not workers._pieces and not workers._batches
    workers._keep(PayoffPlace(6, (1,), (0, 1)), "all", "a")
    assert workers._payoffs(6, "") == ("all",)


class LostError(Exception):
    """What the nodes say of a cluster that is gone."""


def test_what_does_not_come_is_not_waited_for_where_the_cluster_is_lost(monkeypatch):
    ray = SomeRay([None, "payoffs", RECEIPT, None])
    ray.silent = 3
    workers = workers_of(ray)
    workers.submit(task(keep=False))
    looked = []
    monkeypatch.setattr(workers.nodes, "refresh", lambda: looked.append(1))
    assert workers.wait_one(0.0) is RECEIPT and len(looked) == 3 + 3  # each time before it waits

    def lost():
        looked.append(1)
        if len(looked) == 7:
            raise LostError

    ray.runs, ray.silent = [[None, "payoffs", RECEIPT, None]], 100
    workers.submit(task(keep=False))
    monkeypatch.setattr(workers.nodes, "refresh", lost)
    with pytest.raises(LostError):
        workers.wait_one(0.0)
    assert len(looked) == 7


def test_nor_are_files_that_do_not_come_behind_their_receipt(monkeypatch):
    """As where the host that solved is lost between the two, with the head of the cluster."""
    ray, come = SomeRay([None, "payoffs", SENT, {}]), iter([True] * 3 + [False, False, True])
    monkeypatch.setattr(ray, "wait", lambda all_, **how: (all_, []) if next(come) else ([], all_))
    workers = workers_of(ray)
    workers.submit(task(keep=False))
    assert workers.wait_one(0.0) is None
    assert workers.wait_one(0.0) is RECEIPT


def test_in_the_end_what_does_not_come_is_a_sentence(monkeypatch):
    monkeypatch.setattr(ray_workers, "GET_SECONDS", 0.0)
    ray = SomeRay([None, "payoffs", RECEIPT, None])
    ray.silent = 100
    workers = workers_of(ray)
    workers.submit(task(keep=False))
    with pytest.raises(WorkerError, match="did not arrive within 0 s; what was solved stays"):
        workers.wait_one(0.0)
