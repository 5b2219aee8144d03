"""While workers start, threads of this process do what needs nothing of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from luckbase.cluster.run.starting import Starting, starting
from luckbase.cluster.run.worker import Result
from luckbase.solver.errors import WorkerError


@dataclass
class Others:
    """Workers that start when they are told, are warm when they are told, and do nothing but say
    what they were handed."""

    may_start: threading.Event = field(default_factory=threading.Event)
    may_be_warm: threading.Event = field(default_factory=threading.Event)
    warmed: list[int] = field(default_factory=list)
    handed: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    slots: int = 9

    @contextmanager
    def session(self) -> Iterator[Others]:
        self.threads.append(threading.get_ident())
        assert self.may_start.wait(10)
        yield self
        self.threads.append(threading.get_ident())

    def warm_up(self, task: Any) -> None:
        self.warmed.append(task.shard)
        assert self.may_be_warm.wait(10)

    def submit(self, task: Any) -> None:
        self.handed.append(task.shard)
        self.waiting.append(task.shard)

    def wait_one(self, seconds: float) -> Any:
        return SimpleNamespace(shard=self.waiting.pop(), by="others") if self.waiting else None

    def doing(self) -> list[dict[str, Any]]:
        return [{"node": "others", "slots": self.slots}]

    def drop(self, tier: int) -> None: ...
    def check_memory(self, needed: int, smaller: str) -> None: ...
    def forget(self) -> None: ...


def task(
    shard: int, *, keep: bool = False, reads: tuple[int, ...] = (),
    work: Callable[[], Any] = lambda: None,
) -> Any:  # fmt: skip
    def run(given: Any, out: Any, stop: Callable[[], bool]) -> Iterator[Any]:
        yield None
        work()
        yield Result(SimpleNamespace(shard=shard, by="threads"), None)  # type: ignore[arg-type]

    return SimpleNamespace(shard=shard, keep=keep, reads=reads, run=run)


def one_of(workers: Any, seconds: float = 10.0) -> tuple[int, str]:
    receipt = workers.wait_one(seconds)
    return receipt.shard, receipt.by


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_threads_work_until_the_others_are_warm_then_the_others_do() -> None:
    others = Others()
    with starting(others.session(), 2) as workers:
        workers.submit(task(1))
        assert one_of(workers) == (1, "threads") and workers.slots == 2
        assert workers.doing()[0]["node"] == "this process"
        others.may_start.set()
        until(lambda: others.warmed == [1])
        workers.submit(task(2))
        assert one_of(workers) == (2, "threads") and workers.slots == 2
        assert workers.wait_one(0.0) is None and not others.handed
        others.may_be_warm.set()
        until(lambda: workers.slots == 9)
        workers.submit(task(3))
        assert one_of(workers) == (3, "others") and others.handed == [3]
        assert workers.doing()[0]["node"] == "others"


def test_what_threads_have_begun_comes_among_what_the_others_do() -> None:
    others, go_on = Others(), threading.Event()
    with starting(others.session(), 1) as workers:
        workers.submit(task(1, work=lambda: go_on.wait(10)))
        others.may_start.set()
        others.may_be_warm.set()
        until(lambda: workers.slots == 9)
        workers.submit(task(2))
        assert one_of(workers) == (2, "others")
        assert workers.wait_one(0.0) is None
        go_on.set()
        assert one_of(workers) == (1, "threads")
        assert workers.wait_one(0.0) is None


@pytest.mark.parametrize("needs", [{"keep": True}, {"reads": (4,)}])
def test_a_task_that_needs_the_others_waits_for_them(needs: dict[str, Any]) -> None:
    others = Others()
    with starting(others.session(), 2) as workers:
        threading.Timer(0.05, others.may_start.set).start()
        workers.submit(task(1, **needs))
        assert others.handed == [1] and not others.warmed
        assert one_of(workers) == (1, "others")


def test_what_keeps_the_others_from_starting_is_said() -> None:
    @contextmanager
    def session() -> Iterator[Any]:
        raise WorkerError("no room for them")
        yield

    with pytest.raises(WorkerError, match="no room for them"), starting(session(), 1) as workers:
        while True:
            workers.wait_one(0.01)


def test_the_thread_that_starts_processes_lives_until_they_are_ended() -> None:
    """The system ends them with it (`PR_SET_PDEATHSIG`)."""
    others = Others()
    others.may_start.set()
    with starting(others.session(), 1) as workers:
        until(lambda: workers.slots == 9)
    assert len(others.threads) == 2 and len(set(others.threads)) == 1


def test_an_error_ends_all() -> None:
    others, stopped = Others(), threading.Event()
    others.may_be_warm.set()

    def wrong() -> None:
        raise WorkerError("a wrong task")

    with pytest.raises(WorkerError, match="a wrong task"), starting(others.session(), 1) as workers:
        assert isinstance(workers, Starting)
        workers.submit(task(1, work=wrong))
        threading.Timer(0.05, lambda: (others.may_start.set(), stopped.set())).start()
        workers.wait_one(10.0)
    assert stopped.is_set() and len(others.threads) == 2
