"""Workers that take seconds to start: until they are there, threads of this process do what they
can of the work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

from luckbase.cluster.run.session import Threads, Workers
from luckbase.cluster.run.worker import AnyTask

LOOK_SECONDS = 0.05
"""Between two looks at whether threads or the others have done something."""


class Started(Workers, Protocol):
    """Workers that were started."""

    def warm_up(self, task: AnyTask) -> None:
        """Have all of them load what tasks like this one need, before they are handed any; returns
        when they have."""


class Starting:
    """Workers on their way. A task that neither reads payoffs nor keeps any is done by threads
    here until the others have loaded what they need; any other task waits for them."""

    def __init__(self, session: AbstractContextManager[Started], count: int) -> None:
        """session: entered by a thread of its own. count: threads."""
        self._session, self._open = session, ExitStack()
        self._threads, self._in_threads = Threads(count, None), 0
        self._first: AnyTask | None = None
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="luckbase start")
        self._start: Future[Started] = self._starter.submit(self._enter)

    def _enter(self) -> Started:
        workers = self._open.enter_context(self._session)
        if self._first is not None:
            workers.warm_up(self._first)
        return workers

    @property
    def _there(self) -> Started | None:
        """The others, once they are there. Raises what kept them from it."""
        return self._start.result() if self._start.done() else None

    @property
    def slots(self) -> int:
        """Of the threads; then of the others."""
        there = self._there
        return self._threads.slots if there is None else there.slots

    def submit(self, task: AnyTask) -> None:
        """Hand out a task: to the others, if they are there, or it is nothing for threads."""
        if task.keep or task.reads or self._start.done():
            self._start.result().submit(task)
        else:
            self._first = self._first or task
            self._in_threads += 1
            self._threads.submit(task)

    def wait_one(self, seconds: float) -> Any:
        """As of `Workers`, of threads or of the others."""
        until = time.monotonic() + seconds
        while True:
            there, left = self._there, max(0.0, until - time.monotonic())
            if there is not None and not self._in_threads:
                return there.wait_one(left)
            event = self._threads.wait_one(min(left, LOOK_SECONDS))
            if event is not None:
                self._in_threads -= 1  # they keep nothing, so it is a receipt
            elif there is not None:
                event = there.wait_one(0.0)
            if event is not None or not left:
                return event

    def drop(self, tier: int) -> None:
        """Nobody reads the payoffs of the tier any more, which the others have."""
        self._start.result().drop(tier)

    def doing(self) -> list[dict[str, Any]]:
        """What the threads do; then what the others do."""
        there = self._there
        return self._threads.doing() if there is None else there.doing()

    def check_memory(self, needed: int, smaller: str) -> None:
        """Checked before (`opening.check_room`): all are on this machine."""

    def forget(self) -> None:
        """Let go of all tasks and payoffs, which only the others have when payoffs are lost."""
        self._start.result().forget()

    def close(self) -> None:
        """Stop tasks of threads between planes; then the others, which have to be there for it."""
        self._threads.close()
        with self._starter:  # processes that the system ends with the thread that started them
            self._starter.submit(self._open.close).result()


@contextmanager
def starting(session: AbstractContextManager[Started], count: int) -> Iterator[Workers]:
    """Workers of a session that is opened meanwhile; so many threads until it is."""
    workers = Starting(session, count)
    try:
        yield workers
    finally:
        workers.close()
