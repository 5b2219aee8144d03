"""Workers of a Ray cluster, which may already be running or is started here.

A shard is one task (`nodes.run`). It takes the payoffs that it reads as object references, and
yields its own payoffs first, so that other tasks can read them while it writes its files. A node
that can reach the table writes the files itself; otherwise their bytes are returned to the driver.
Ray chooses the node, moves objects, spills them to disk, and runs a task again if its node or its
objects are lost.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from luckbase.cluster.solve import nodes
from luckbase.cluster.solve.nodes import STAYS, Nodes
from luckbase.cluster.solve.worker import (
    NotSeenError,
    PayoffsLostError,
    PayoffsReady,
    TableLocation,
    Task,
    Workers,
)
from luckbase.cluster.store.storage import storage_at
from luckbase.solver.errors import LuckbaseError, MemoryLimitError, OptionError, WorkerError
from luckbase.solver.sentences import option, size

RETRIES = 3
"""How often a task is retried if its worker dies."""
POLL_SECONDS = 1.0


@dataclass
class _Running:
    """A running task."""

    task: Task
    sent: dict[str, Any] = field(default_factory=dict)  # the files sent with it, by name
    tries: int = 0
    seen: int = 0  # number of results received
    node: str = ""
    stage_file: Any = None


class RayWorkers:
    def __init__(self, ray: Any, location: TableLocation, nodes_: Nodes, max_slots: int) -> None:
        """max_slots: maximum number of slots; 0 for all cores of the cluster."""
        self._ray, self._location, self.nodes, self._max_slots = ray, location, nodes_, max_slots
        self._remote = ray.remote(num_returns="streaming", max_retries=RETRIES)(nodes.run)
        self._tasks: dict[Any, _Running] = {}
        self._kept: dict[int, dict[int, Any]] = {}
        """References to payoffs, by tier and part."""
        self._stage_files: dict[str, Any] = {}
        """References to stage files, by name."""

    @property
    def slots(self) -> int:
        """All cores, and one more task so that no core waits for the driver."""
        cores = sum(node.slots for node in self.nodes.by_id.values())
        return min(cores, self._max_slots or cores) + 1

    @property
    def widest(self) -> int:
        least = min((node.slots for node in self.nodes.by_id.values()), default=1)
        return min(least, self._max_slots or least)

    def activity(self) -> list[dict[str, Any]]:
        return [
            {"node": node.name, "slots": node.slots, "shards_done": node.shards}
            for node in self.nodes.by_id.values()
        ]

    def check_memory(self, needed: int, smaller: str) -> None:
        node = max(self.nodes.by_id.values(), key=lambda node: node.memory, default=None)
        if node is not None and needed > node.memory:
            raise MemoryLimitError(
                f"memory: the largest shard needs {size(needed)}, and the node that has "
                f"most, {node.name}, has {size(node.memory)}; {smaller} takes less"
            )

    def submit(self, task: Task) -> None:
        sent = {}
        if task.stage_file:
            if task.stage_file not in self._stage_files:
                raise PayoffsLostError(f"stage file {task.stage_file} was lost; {STAYS}")
            sent[task.stage_file] = self._stage_files[task.stage_file]
        self._submit(_Running(task, sent))

    def _submit(self, running: _Running) -> None:
        task, sent = running.task, running.sent
        read = [self._kept[tier] for tier in task.reads]
        inputs = [payoffs for parts in read for payoffs in parts.values()]
        results = self._remote.options(num_cpus=task.cores, memory=task.memory).remote(
            nodes.versions(), pickle.dumps(task), tuple(sent), tuple(map(tuple, read)),
            *sent.values(), *inputs,
        )  # fmt: skip
        self._tasks[results] = running

    def wait_one(self, seconds: float) -> Any:
        until = time.monotonic() + seconds
        while True:
            tasks = [running.task for running in self._tasks.values()]
            self.nodes.refresh(
                max((task.memory for task in tasks), default=0),
                max((task.cores for task in tasks), default=1),
            )
            timeout = max(0.0, until - time.monotonic())
            if not tasks:
                time.sleep(timeout)
                return None
            ready, _ = self._ray.wait([*self._tasks], timeout=timeout, fetch_local=False)
            if not ready:
                return None
            event = self._next(ready[0])
            if event is not None:
                return event

    def _next(self, results: Any) -> Any:
        """Take the next result of a task (`nodes.run`)."""
        running = self._tasks[results]
        task = running.task
        try:
            reference = next(results)
        except StopIteration:  # Ray 2.60 may end a task early on a busy host, without an error
            return self._again(results)
        running.seen += 1
        if running.seen == 1:
            try:
                running.node = self._get(reference)
            except NotSeenError as error:  # its node cannot reach the table: send the files
                storage = storage_at(self._location.table)
                running.sent |= {name: self._ray.put(storage.read(name)) for name in error.names}
                self._again(results)
            return None
        if running.seen == 2:
            if task.keep is not None:
                self._kept.setdefault(task.keep.tier, {})[task.keep.part] = reference
                return PayoffsReady(task.shard)
            return None
        if running.seen == 3:
            running.stage_file = reference
            return None
        del self._tasks[results]
        receipt, content = self._get(reference)
        if running.node in self.nodes.by_id:
            self.nodes.by_id[running.node].shards += 1
        if receipt.stage_file:
            self._stage_files[receipt.stage_file] = running.stage_file
        if content is None:
            return receipt
        return receipt.arrived(storage_at(self._location.table), content)

    def _again(self, results: Any) -> None:
        running = self._tasks.pop(results)
        if running.tries == RETRIES:
            raise WorkerError(f"Ray stopped a task {RETRIES + 1} times; {STAYS}")
        self._submit(_Running(running.task, running.sent, running.tries + 1))

    def _get(self, reference: Any) -> Any:
        """Return an object. Raises the exception of its task; PayoffsLostError if Ray cannot
        recover it; WorkerError as soon as the head of the cluster is silent."""
        errors = self._ray.exceptions
        lost = errors.ObjectLostError, errors.TaskUnschedulableError, errors.NodeDiedError
        while True:
            try:
                return self._ray.get(reference, timeout=POLL_SECONDS)
            except errors.GetTimeoutError:
                self.nodes.refresh()
            except errors.RayError as error:
                cause = getattr(error, "cause", None)
                if isinstance(cause, LuckbaseError | OSError | ArithmeticError):
                    raise cause from None
                if isinstance(error, lost) or isinstance(cause, lost):
                    raise PayoffsLostError(f"payoffs were lost with their node; {STAYS}") from None
                if isinstance(error, errors.RayTaskError):
                    raise error.as_instanceof_cause() from None
                died = f"a worker died {RETRIES + 1} times over the same shard (out of memory?)"
                raise WorkerError(f"{died}; {STAYS}: {_reason(str(error))}") from None

    def drop(self, tier: int) -> None:
        self._kept.pop(tier, None)

    def delete(self, names: Iterable[str] | None = None) -> None:
        if names is None:
            self._location.delete()
        for name in names or ():
            self._stage_files.pop(name, None)

    def forget(self) -> None:
        for results in self._tasks:
            with suppress(Exception):
                self._ray.cancel(results, force=False)
        self._tasks, self._kept, self._stage_files = {}, {}, {}


def _reason(text: str) -> str:
    return " ".join(text.split())[:200]


# --- to connect ----------------------------------------------------------------------------------

CONNECT_SECONDS, LEAVE_SECONDS = 60.0, 10.0
ENOUGH_MEMORY = 10**14
"""Bytes of memory that a Ray on this machine may give to tasks: the schedule limits them."""
LEAST_STORE = 100 << 20
"""Minimum bytes of an object store."""
DRIVER = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of tasks that are resubmitted
    "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1",  # the folder of `ray job submit` is not for workers
    "RAY_grpc_client_keepalive_time_ms": "60000",
    "RAY_grpc_client_keepalive_timeout_ms": "10000",
}
"""Settings of Ray in this process, unless the environment sets others. The last two break a silent
connection after 70 seconds; otherwise Ray would wait forever for a task on a disconnected node."""
CONNECT = "import ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR')"

REFUSED = "InvalidAuthToken|AuthenticationError|Unauthenticated"
"""Ray prints one of these; its last line may say only that it could not connect."""


@cache
def check_address(address: str) -> None:
    """Connect to a cluster in another process, because Ray may print, end its process, or block.
    Raises OptionError."""
    command = [sys.executable, "-P", "-c", CONNECT, address]
    environment = {**DRIVER, **os.environ}
    where = f"{option('address')}: the Ray cluster at {address}"
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=CONNECT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise OptionError(
            f"{where} has not answered for {CONNECT_SECONDS:.0f} s; is its head up, and can this "
            "machine reach it?"
        ) from None
    if done.returncode:
        output = done.stdout + done.stderr
        lines = [line for line in output.splitlines() if line.strip()]
        reason = _reason(lines[-1] if lines else f"exit code {done.returncode}")
        if re.search(REFUSED, output) or "token" in reason.lower():
            raise OptionError(
                f"{where} refuses this machine's token; copy ~/.ray/auth_token from its head, or "
                "set RAY_AUTH_TOKEN, with RAY_AUTH_MODE=token"
            )
        raise OptionError(f"{where} does not answer: {reason}")


@contextmanager
def ray_workers(
    address: str, location: TableLocation, on_note: Callable[[str], None], workers: int, store: int
) -> Iterator[Workers]:
    """Connect to the Ray cluster at an address, or start Ray here (``local``), for one solve.

    workers: maximum number; 0 for all cores of a cluster.
    store: bytes of the object store of a Ray that is started here.

    Raises OptionError if a node has other versions than this process.
    """
    local, settings = address == "local", dict[str, str]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="luckbase-")))
        if local:
            # Its workers import the package from where this process does, so that numba finds the
            # compiled functions of this path.
            address, settings = stack.enter_context(_ray_here(workers, location.spill, store))
        else:
            _copy_package(folder)
        # Workers would import from the current folder of this process without one of their own.
        code = {"working_dir": str(folder)}
        stack.enter_context(_environment({**DRIVER, **os.environ, **settings}))
        stack.enter_context(redirect_stdout(sys.stderr))  # Ray prints what happens to nodes
        import ray

        on_term = signal.getsignal(signal.SIGTERM)  # Ray sets its own
        try:
            ray.init(address, runtime_env=code, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise OptionError(f"{option('address')}: {_reason(str(error))}") from None
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_term)
        closed = threading.Event()
        list_nodes: Callable[[], Any] = ray.nodes
        try:
            there = Nodes(list_nodes(), on_note)
            _check_versions(ray, there)
            poll = threading.Thread(target=_poll, args=(list_nodes, there, closed), daemon=True)
            poll.start()
            yield RayWorkers(ray, location, there, workers)
        finally:
            closed.set()
            _leave(ray)


def _copy_package(folder: Path) -> None:
    """Copy the Python files of this package into a folder, without the links of a checkout."""
    for name, path in nodes.source_files():
        (folder / "luckbase" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / "luckbase" / name)


def _poll(list_nodes: Callable[[], Any], there: Nodes, closed: threading.Event) -> None:
    """List the nodes every second, in a thread, because a lost head does not answer."""
    while not closed.wait(POLL_SECONDS):
        with suppress(Exception):  # the same as no answer
            there.hear(list_nodes())


def _check_versions(ray: Any, there: Nodes) -> None:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe, wrong = ray.remote(num_cpus=0, max_retries=RETRIES)(nodes.probe), []
    probes = []
    for node_id, node in there.by_id.items():
        on = NodeAffinitySchedulingStrategy(node_id, soft=False)
        probes.append((node_id, node.name, probe.options(scheduling_strategy=on).remote()))
    for node_id, name, reference in probes:
        try:
            differs = nodes.difference(
                nodes.versions(), ray.get(reference, timeout=CONNECT_SECONDS)
            )
        except ray.exceptions.GetTimeoutError:  # `nodes.run` refuses other versions
            there.on_note(f"node {name} has started no worker for {CONNECT_SECONDS:.0f} s")
            continue
        except ray.exceptions.RayError as error:
            if not any(node["Alive"] for node in ray.nodes() if node["NodeID"] == node_id):
                continue  # it was lost before it answered
            differs = f"cannot do a task: {_reason(str(error))}"
        wrong += [f"node {name} {differs}"] if differs else []
    if wrong:
        raise OptionError(f"{option('address')}: {'; '.join(wrong)}")


def _leave(ray: Any) -> None:
    """Disconnect. Ray waits for a lost cluster until it ends this process, so wait in a thread."""
    thread = threading.Thread(target=ray.shutdown, daemon=True)
    thread.start()
    thread.join(LEAVE_SECONDS)
    if thread.is_alive():
        atexit.unregister(ray.shutdown)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, which Ray reads on import and when it connects. Restore the
    environment afterwards."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():  # Ray sets some too
            del os.environ[name]
        os.environ.update(before)


# --- Ray on this machine -------------------------------------------------------------------------

KEEPER = '"$@" > "$0" 2>&1 < /dev/null & read -r _; kill $! 2> "$0"; wait $!; rm -rf "${0%/*}"'
"""Run a command until the process that started it ends for any reason; then remove the folder."""


@cache
def _token() -> str:
    return secrets.token_hex(32)  # one per process: Ray keeps the first that it reads


@contextmanager
def _ray_here(workers: int, spill: Path, store: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Run Ray on this machine. Yield its address and the variables needed to connect. It listens
    only on the loopback device, and keeps its files in a private folder."""
    root = os.environ.get("RAY_TMPDIR", "/tmp")  # short, because it contains Ray's sockets
    folder = Path(tempfile.mkdtemp(prefix="luckbase-", dir=root))
    with open(os.open(folder / "token", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write(_token())
    spill.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": f"{folder}/token"}
    command = [
        sys.executable, "-P", "-m", "ray.scripts.scripts", "start", "--head", "--block",
        "--node-ip-address=127.0.0.1", f"--port={port}", f"--num-cpus={workers}",
        f"--memory={ENOUGH_MEMORY}", f"--object-store-memory={max(LEAST_STORE, store)}",
        f"--object-spilling-directory={spill}", f"--temp-dir={folder}/ray", "--no-monitor",
        "--include-dashboard=false", "--include-log-monitor=false", "--disable-usage-stats",
    ]  # fmt: skip
    python_path = [os.environ.get("PYTHONPATH", ""), str(nodes.PACKAGE.parent)]
    environment = {
        **DRIVER, "RAY_worker_niceness": "0", **os.environ, **settings,
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # one machine, on the loopback device
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
    }  # fmt: skip
    keeper = subprocess.Popen(
        ["sh", "-c", KEEPER, f"{folder}/log", *command], env=environment, stdin=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        _wait_until_open(port, folder / "log")
        # Ray replaces 127.0.0.1 by another address of this machine, but not this form.
        yield f"[::ffff:127.0.0.1]:{port}", settings
    finally:
        keeper.communicate()  # closing its input stops Ray


def _wait_until_open(port: int, log: Path) -> None:
    until = time.monotonic() + CONNECT_SECONDS
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    reason = _reason(lines[-1] if lines else "it printed nothing")
    raise WorkerError(f"Ray did not start within {CONNECT_SECONDS:.0f} s: {reason}")
