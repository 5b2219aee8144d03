"""Workers: threads of this process, or Ray. Start, hand out tasks, wait, stop.

Both kinds run `worker.work` and nothing else, so a table's bytes do not depend on which. The
kernel and the Parquet writer let go of Python's lock, so threads use all cores.

Ray starts on this machine with no dashboard, on the loopback address, with a small object store
(results are receipts; tables go through the disk) that spills beside the table; it stops with the
solve. With an address, Ray is joined instead; every node must see the table's folder at the same
path, which is checked before the first task.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from luckbase.cluster.run.worker import SubtreesTask, Task, work
from luckbase.solver.errors import OptionError, WorkerError

OBJECT_STORE_BYTES = 100 << 20
RETRIES = 3
"""How often a task is tried again when its worker dies."""


class Workers(Protocol):
    """What the driver asks of workers."""

    def submit(self, task: Task | SubtreesTask) -> None:
        """Hand out a task."""

    def wait_one(self, seconds: float) -> Any:
        """A receipt, or None when none came in that time. Raises what the task raised."""


class Threads:
    """Workers in this process."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="luckbase")
        self._stop = threading.Event()
        self._tasks: set[Future[Any]] = set()

    def submit(self, task: Task | SubtreesTask) -> None:
        self._tasks.add(self._pool.submit(work, task, self._stop.is_set))

    def wait_one(self, seconds: float) -> Any:
        done, _ = wait(self._tasks, timeout=seconds, return_when=FIRST_COMPLETED)
        if not done:
            return None
        first = done.pop()
        self._tasks.remove(first)
        return first.result()

    def close(self) -> None:
        """Stop tasks between planes and wait for them."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)


class RayWorkers:
    """Workers that Ray places."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._solve = ray.remote(num_cpus=1, max_retries=RETRIES)(work)
        self._tasks: list[Any] = []

    def submit(self, task: Task | SubtreesTask) -> None:
        self._tasks.append(self._solve.remote(task))

    def wait_one(self, seconds: float) -> Any:
        done, rest = self._ray.wait(self._tasks, num_returns=1, timeout=seconds)
        if not done:
            return None
        self._tasks = rest
        try:
            return self._ray.get(done[0])
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:200]
            raise WorkerError(
                f"a worker died {RETRIES + 1} times over the same shard (out of memory?); what was "
                f"solved stays, and the same command goes on: {reason}"
            ) from None


@contextmanager
def threads(count: int) -> Iterator[Workers]:
    """Workers in this process for the length of a solve."""
    workers = Threads(count)
    try:
        yield workers
    finally:
        workers.close()


@contextmanager
def ray_session(count: int, scratch: Path, address: str | None = None) -> Iterator[Workers]:
    """Ray for the length of a solve: started here with `count` workers, or joined at `address`;
    spills into the folder `scratch`, which all nodes must see.

    Raises OptionError where the nodes of a cluster do not see the table's folder.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    on_term = signal.getsignal(signal.SIGTERM)
    if address:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = " ".join(str(error).split())[:120]
            raise OptionError(f"--address: no Ray cluster answers at {address}: {reason}") from None
    else:
        spill = scratch / "spill"
        spill.mkdir(parents=True, exist_ok=True)
        ray.init(
            address="local",  # not a cluster that runs here, or that RAY_ADDRESS names
            num_cpus=count,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            object_spilling_directory=str(spill),
            log_to_driver=False,
            logging_level=logging.ERROR,
            _node_ip_address="127.0.0.1",
        )
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_term)  # Ray has put its own in its place
    try:
        if address:
            _check_shared(ray, scratch)
        yield RayWorkers(ray)
    finally:
        ray.shutdown()


def check_address(address: str) -> None:
    """Whether anything listens at host:port; Ray itself takes minutes to say so.

    Raises OptionError. Other forms (``auto``, ``ray://…``) are left to Ray.
    """
    host, colon, port = address.rpartition(":")
    if not colon or "/" in address or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise OptionError(f"--address: nothing answers at {address}: {error}") from None


def _check_shared(ray: Any, scratch: Path) -> None:
    """Every node must see what this one writes, at the same path."""
    token = scratch / f"token-{os.getpid()}"
    token.parent.mkdir(parents=True, exist_ok=True)
    token.write_text("x")
    try:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for node in ray.nodes():
            if not node["Alive"] or not node["Resources"].get("CPU"):
                continue
            place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            sees = ray.remote(num_cpus=1, scheduling_strategy=place)(os.path.exists)
            if not ray.get(sees.remote(str(token))):
                raise OptionError(
                    f"--results: node {node['NodeManagerAddress']} does not see {scratch}; "
                    "give a folder that every node of the cluster shares"
                )
    finally:
        token.unlink(missing_ok=True)
