"""Workers that Ray places: of a cluster that is joined, or of a Ray that is started here.

A task yields its payoffs, then its receipt and the bytes of its files, as objects of their own:
others read the payoffs while the files, which take longer, are still written. They take them as
references: Ray's object store carries payoffs from node to node, spills them to each node's disk
and makes lost ones again from the tasks that made them. Parts of a tier come to each node while
others are solved, some at once, which are put together there (`tiers.payoffs_of`). Of a
full table each task goes to the node on which it begins soonest, which is mostly the one that has
what it reads (`schedule.choose_node`). So no node needs to see the table; where one does, its files
go there. A stage file lies on the disk of the node that found it, which makes an object of it for
whoever reads it.

Started here (`--address local`), Ray listens on the loopback address only and stops with the solve.
Of a cluster (`--address ADDR`) the nodes get luckbase's code from here (`py_modules`), are left out
by name where something else differs, and are counted anew all the time: one task more than they
have cores is on its way.

Ray's defaults leave a task hanging whose node was cut off: the driver asks its connections for a
sign of life (`KEEPALIVE`), so that they break within 70 s, and Ray tries elsewhere. Nodes that were
started with shorter times, as the guide gives them, pass those on by the environment.
"""

from __future__ import annotations

import atexit
import copyreg
import faulthandler
import io
import logging
import math
import os
import pickle
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from luckbase.cluster.run.nodes import (
    POLL_SECONDS,
    STAYS,
    Declined,
    Head,
    Nodes,
    board_of,
    own_environment,
    run,
    source_files,
    with_its_disk,
)
from luckbase.cluster.run.schedule import choose_node, is_batch
from luckbase.cluster.run.worker import (
    PayoffPlace,
    PayoffsLostError,
    PayoffsReady,
    TableLocation,
    Task,
    Workers,
)
from luckbase.cluster.table.storage import storage_at
from luckbase.solver.errors import LuckbaseError, MemoryLimitError, OptionError, WorkerError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.sentences import many, option, size

RETRIES = 3
"""How often a task is tried again when its worker dies."""
GET_SECONDS = 600.0
"""So long an object that is there may take to come here."""
Note = Callable[..., None]
"""note(text, tell=True): what happened; tell: whether a person should know, or the log only."""


@dataclass(eq=False)
class _Running:
    task: Task
    payoffs: tuple[tuple[Any, ...], ...]
    """Of each tier that it reads, all pieces where it is in parts."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The files that come with it, by name."""
    results: Any = None
    """What it yields,"""
    seen: int = 0
    """of which so much has been seen."""
    node: str = ""
    """Where it runs, or is to run."""
    receipt: Any = None
    tries: int = 0


class RayWorkers:
    """Workers that Ray places."""

    def __init__(
        self, ray: Any, location: TableLocation, on_note: Note, *, joined: bool, max_slots: int
    ) -> None:
        """joined: to a cluster, whose nodes are told apart. max_slots: however many there are; 0
        for all of a cluster."""
        self._ray, self._location, self._joined, self._max_slots = ray, location, joined, max_slots
        self._on_note = on_note
        self._needed: Any = None
        self._remote = ray.remote(num_returns="streaming", max_retries=RETRIES)(run)
        self._gather = ray.remote(num_cpus=0, max_retries=RETRIES)(_together)
        self._disks = ray.remote(num_cpus=0, max_retries=RETRIES)(with_its_disk)
        self._stage_files: dict[str, str] = {}
        """The node, by Ray's id, that has each; "" for this process's machine."""
        self._board: tuple[Any, bytes] = None, b""
        """That of all tasks, and the same pickled."""
        self._tasks: list[_Running] = []
        self._ready: list[_Running] = []
        """Those of them that have yielded something since they were last read."""
        self.bytes_here = 0
        """Of files that came to this process."""
        self._kept: dict[int, dict[int, Any]] = {}
        """Payoffs of tiers, by part,"""
        self._new: dict[int, list[int]] = {}
        """and the parts that go to no node yet."""
        self._batches: dict[int, list[Any]] = {}
        """Of tiers in parts: the numbers of some, and their payoffs."""
        self._at: dict[int, tuple[str, int]] = {}
        """The node that has those of a tier in one part, and how many bytes."""
        self._pieces: dict[tuple[int, int, str], Any] = {}
        """A batch of a tier, put together on a node."""
        self.head = Head(ray.nodes) if joined else None
        self.nodes = Nodes(ray.nodes, lambda text: None) if self.head is None else Nodes(
            self.head.nodes, on_note, ray.get_runtime_context().get_node_id()
        )  # fmt: skip

    @property
    def slots(self) -> int:
        """Cores of the nodes that work, and one task more, so that none waits for this process."""
        if not self._joined:
            return self._max_slots + 1
        cores = sum(node.slots for node in self.nodes.working) + 1
        return max(1, min(cores, self._max_slots or cores))

    @property
    def widest(self) -> int:
        least = min((node.slots for node in self.nodes.working), default=1)
        return max(1, min(least, self._max_slots or least))

    def close(self) -> None:
        """Ask the head no more; the log gets what came here."""
        self._on_note(f"{many(self.bytes_here, 'byte')} of files came to this machine", tell=False)
        if self.head:
            self.head.close()

    def doing(self) -> list[dict[str, Any]]:
        return [
            {"node": node.name, "slots": node.slots, "shards_done": node.shards}
            | ({"left_out": node.refused} if node.refused else {})
            for node in self.nodes.by_id.values()
        ]

    def check_memory(self, needed: int, smaller: str) -> None:
        node = max(self.nodes.working, key=lambda node: node.memory, default=None)
        if self._joined and node is not None and needed > node.memory:
            raise MemoryLimitError(
                f"memory: the largest shard needs {size(needed)}, and the node that has "
                f"most, {node.name}, has {size(node.memory)}; {smaller} takes less"
            )

    # --- tasks -------------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        node = self._choose(task)
        running = _Running(task, tuple(self._payoffs(t, node) for t in task.reads), node=node)
        if task.stage_file and self._joined:  # from disk to memory to memory, not by this process
            holder = self._stage_files.get(task.stage_file, "gone")
            if holder and holder not in self.nodes.by_id:
                raise _lost()
            running.sent[task.stage_file] = self._on(holder, "read", task.stage_file)
        self._submit(running)

    def _choose(self, task: Task) -> str:
        """The node on which a task is to run, by Ray's id; "" where Ray may choose."""
        if not self._joined or not task.seconds or self.nodes.refused:
            return ""
        load = dict.fromkeys(self.nodes.by_id, 0.0)
        for running in self._tasks:
            if running.node in load:
                seconds = running.task.seconds * running.task.cores
                load[running.node] += seconds / self.nodes.by_id[running.node].slots
        bytes_at = dict.fromkeys(load, 0)
        for tier in task.reads:
            node, size = self._at.get(tier, ("", 0))
            if node in load:
                bytes_at[node] += size
        return choose_node(load, bytes_at)

    def _affinity(self, node: str, soft: bool = True) -> dict[str, Any]:
        """The options of a task that is to run on a node; soft: elsewhere where that is gone."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=soft)}

    def _payoffs(self, tier: int, node: str) -> tuple[Any, ...]:
        """The payoffs of a tier that is kept, or the pieces of one in parts on a node."""
        if tier not in self._batches:
            return (self._kept[tier][0],)
        return tuple(self._piece(tier, i, node) for i in range(len(self._batches[tier])))

    def _piece(self, tier: int, batch: int, node: str) -> Any:
        """Some parts of a tier, put together once on each node, which takes each from where it was
        solved."""
        if (tier, batch, node) not in self._pieces:
            gather = self._gather.options(**self._affinity(node)) if node else self._gather
            self._pieces[tier, batch, node] = gather.remote(self._batches[tier][batch])
        return self._pieces[tier, batch, node]

    def _submit(self, running: _Running) -> None:
        """Hand a task out, maybe not for the first time."""
        job, sent = running.task.job, running.sent
        options: dict[str, Any] = {"num_cpus": running.task.cores}
        if self._joined:
            options["memory"] = running.task.memory
            excluded = self.nodes.refused
            if excluded:
                options["label_selector"] = {"ray.io/node-id": f"!in({','.join(excluded)})"}
            elif running.node:
                options |= self._affinity(running.node)
        if self._needed is None:
            self._needed = self._ray.put(own_environment())
        results = self._remote.options(**options).remote(
            self._needed, self._pickled(job), tuple(sent), tuple(map(len, running.payoffs)),
            *sent.values(), *chain.from_iterable(running.payoffs),
        )  # fmt: skip
        self._tasks.append(replace(running, results=results, seen=0))

    def _pickled(self, job: Any) -> bytes:
        """A job; most of it is its board, which is pickled once."""
        board, out = getattr(job, "board", None), io.BytesIO()
        if board is not self._board[0]:
            self._board = board, pickle.dumps(board)
        pickler = pickle.Pickler(out)
        pickler.dispatch_table = copyreg.dispatch_table | {
            type(board): lambda each: (
                (board_of, self._board[1:]) if each is board else each.__reduce_ex__(4)
            )
        }
        pickler.dump(job)
        return out.getvalue()

    def wait_one(self, seconds: float) -> Any:
        until = time.monotonic() + seconds
        while self._tasks:
            if not self._ready:
                self._wait(max(0.0, until - time.monotonic()))
            if not self._ready:
                return None
            event = self._next(self._ready.pop())
            if event is not None:
                return event
        self.nodes.refresh()
        time.sleep(seconds)
        return None

    def _wait(self, seconds: float) -> None:
        """Note of which tasks something has come: of all at once, for Ray goes through them all."""
        needed = max(running.task.memory for running in self._tasks)
        widest = max(running.task.cores for running in self._tasks)
        self.nodes.refresh_for(needed if self._joined else 0, widest)
        of = {id(running.results): running for running in self._tasks}
        waiting = [running.results for running in self._tasks]
        for count, timeout in ((len(waiting), 0.0), (1, seconds)):
            done, _ = self._ray.wait(waiting, num_returns=count, timeout=timeout, fetch_local=False)
            if done:
                break
        self._ready = [of[id(each)] for each in reversed(done)]

    def _next(self, running: _Running) -> Any:
        """What a task has yielded: see `nodes.run`."""
        task = running.task
        try:
            reference = next(running.results)
        except StopIteration:  # seen of Ray 2.60 on a busy host: a task that ended half-way
            self._again(running)
            return None
        running.seen += 1
        if running.seen == 1:
            answer = self._get(reference)
            if isinstance(answer, Declined):
                self._resubmit(running, answer)
                return None
            running.node = answer
            return None
        if running.seen == 2:
            if task.keep is None:
                return self._get(reference) if task.early else None
            self._keep(task.keep, reference, running.node)
            return PayoffsReady(task.shard)
        if running.seen == 3:
            running.receipt = self._get(reference)
            if running.receipt.sent:
                return None  # its files come next, unless their machine is lost
        self._tasks.remove(running)
        return self._finished(running, reference)

    def _again(self, running: _Running) -> None:
        """Hand a task out again that Ray has ended half-way. Raises WorkerError the last time."""
        self._tasks.remove(running)
        if running.tries == RETRIES:
            raise WorkerError(f"Ray stopped a task {RETRIES + 1} times; {STAYS}")
        self._submit(replace(running, tries=running.tries + 1))

    def _resubmit(self, running: _Running, declined: Declined) -> None:
        """Submit a task again that a node declined."""
        self._tasks.remove(running)
        if declined.why:
            self.nodes.leave_out(declined.node, declined.name, declined.why)
        else:
            storage = storage_at(self._location.table)
            running.sent |= {name: self._ray.put(storage.read(name)) for name in declined.files}
        self._submit(running)

    def _finished(self, running: _Running, files: Any) -> Any:
        """The receipt of a task, its files in their places in the table; None where their bytes
        were lost with their machine, and the shard is solved again."""
        receipt = running.receipt
        if receipt.sent:
            content = self._get(files)
            if content is None:  # made again on a machine that shares the folder
                self._submit(running)
                return None
            self.bytes_here += sum(map(len, content.values()))
            receipt = receipt.arrived(storage_at(self._location.table), content)
        if receipt.node in self.nodes.by_id:
            self.nodes.by_id[receipt.node].shards += 1
        if receipt.stage_file:
            self._stage_files[receipt.stage_file] = receipt.node
        return receipt

    # --- stage files -------------------------------------------------------------------------

    def _on(self, node: str, does: str, *arguments: Any) -> Any:
        """What one node does with those on its disk (`nodes.with_its_disk`), or this process."""
        if not node:
            return self._ray.put(with_its_disk(self._location, does, *arguments))
        affinity = self._affinity(node, soft=False)
        return self._disks.options(**affinity).remote(self._location, does, *arguments)

    @property
    def _with_disks(self) -> tuple[str, ...]:
        return ("", *self.nodes.by_id) if self._joined else ("",)

    def delete(self, names: Iterable[str] | None = None) -> None:
        if names is None:
            deletions = [self._on(node, "delete") for node in self._with_disks]
            self._ray.wait(deletions, num_returns=len(deletions), timeout=LEAVE_SECONDS)
            return
        of_node: dict[str, list[str]] = {}
        for name in names:
            node = self._stage_files.pop(name, "") if self._joined else ""
            of_node.setdefault(node, []).append(name)
        for node in of_node.keys() & set(self._with_disks):
            self._on(node, "delete", of_node[node])

    # --- what comes back ---------------------------------------------------------------------

    def _get(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        lost = errors.ObjectLostError, errors.TaskUnschedulableError, errors.NodeDiedError
        try:
            return self._get_in_time(reference)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, LuckbaseError | OSError | ArithmeticError):
                raise cause from None
            if isinstance(cause, lost):
                raise _lost() from None
            raise error.as_instanceof_cause() from None
        except lost:
            raise _lost() from None
        except errors.RayError as error:
            raise WorkerError(
                f"a worker died {RETRIES + 1} times over the same shard (out of memory?); {STAYS}: "
                f"{_reason(error)}"
            ) from None

    def _get_in_time(self, reference: Any) -> Any:
        """An object; WorkerError as soon as the cluster is known to be lost."""
        until = time.monotonic() + GET_SECONDS
        while True:
            try:
                return self._ray.get(reference, timeout=POLL_SECONDS)
            except self._ray.exceptions.GetTimeoutError:
                self.nodes.refresh()
                if time.monotonic() > until:
                    why = f"a worker's result did not arrive within {GET_SECONDS:.0f} s"
                    raise WorkerError(f"{why}; {STAYS}") from None

    # --- payoffs -----------------------------------------------------------------------------

    def _keep(self, kept: PayoffPlace, payoffs: Any, node: str) -> None:
        parts = self._kept.setdefault(kept.tier, {})
        again = kept.part in parts
        parts[kept.part] = payoffs
        if kept.parts == 1:
            self._at[kept.tier] = node, 8 * math.prod(kept.shape)
        elif not again:
            new = self._new.setdefault(kept.tier, [])
            new.append(kept.part)
            if is_batch(len(new), len(parts), kept.parts):
                self._bring(kept.tier)

    def _bring(self, tier: int) -> None:
        """Put together on each node what is new of a tier in parts."""
        numbers, batches = self._new.pop(tier), self._batches.setdefault(tier, [])
        parts = [self._kept[tier][part] for part in numbers]
        batches.append(self._ray.put((numbers, parts)))  # once, not for each node
        for node in self.nodes.by_id if self._joined else ("",):
            self._piece(tier, len(batches) - 1, node)

    def drop(self, tier: int) -> None:
        for payoffs in (self._kept, self._new, self._batches, self._at):
            payoffs.pop(tier, None)
        self._pieces = {of: piece for of, piece in self._pieces.items() if of[0] != tier}

    def forget(self) -> None:
        for running in self._tasks:
            with suppress(Exception):
                self._ray.cancel(running.results, force=False)
        self._tasks, self._ready, self._stage_files = [], [], {}
        self._kept, self._new, self._batches, self._at, self._pieces = {}, {}, {}, {}, {}


def _together(batch: tuple[list[int], list[Any]]) -> tuple[list[int], Floats]:
    """Parts of a tier behind one another, and their numbers; references to them, for Ray to fetch
    at once."""
    import ray

    numbers, parts = batch
    return numbers, np.concatenate([part.reshape(-1) for part in ray.get(parts)])


def _lost() -> PayoffsLostError:
    why = "payoffs or stage files were lost with the machines that held them"
    return PayoffsLostError(f"{why}; {STAYS}")


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


# --- Ray itself ----------------------------------------------------------------------------------

OBJECT_STORE_BYTES = 100 << 20
"""The least that an object store has."""
KEEPALIVE = {
    "RAY_grpc_client_keepalive_time_ms": 60_000,
    "RAY_grpc_client_keepalive_timeout_ms": 10_000,
}
"""Milliseconds until the driver asks a silent connection for a sign of life, and waits for one.
Ray's servers refuse to be asked more often than once a minute unless they are told to."""
ANSWER_SECONDS = 5.0
JOIN_SECONDS = 60.0
LEAVE_SECONDS = 10.0
_nowhere: list[Any] = []


@contextmanager
def _ray(environment: dict[str, int]) -> Iterator[Any]:
    """Ray, which reads the environment when it is imported, as do the processes that it starts; the
    environment is as before afterwards, for the processes that somebody else starts."""
    always = {
        "RAY_USAGE_STATS_ENABLED": 0,
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": 0,
        "RAY_IGNORE_UNHANDLED_ERRORS": 1,
    }  # of tasks that are handed out again
    new = {**always, **environment}.keys() - os.environ.keys()
    os.environ.update({name: str({**always, **environment}[name]) for name in new})
    try:
        import ray

        yield ray
    finally:
        for name in new:
            os.environ.pop(name, None)


@contextmanager
def _on_the_loopback() -> Iterator[None]:
    """While this lasts, Ray listens on the loopback address alone: a switch that this process reads
    when Ray is imported, and the processes that Ray starts in the environment."""
    from ray._private import ray_constants

    name, constant = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    variable = os.environ.get(name)
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = constant
        os.environ.pop(name)
        os.environ.update({} if variable is None else {name: variable})


@contextmanager
def ray_here(
    count: int, location: TableLocation, store: int, on_note: Note = lambda text, tell=True: None
) -> Iterator[Workers]:
    """Ray on this machine for the length of a solve, with `count` workers and an object store of so
    many bytes, which spills beside the table; it listens on the loopback address only."""
    # Ray's niceness of 15 lets all else come first. The times are read but once, and this process
    # may join a cluster later.
    settings = {"RAY_worker_niceness": 0, **KEEPALIVE}
    location.spill.mkdir(parents=True, exist_ok=True)
    with _ray(settings) as ray, _on_the_loopback(), _words_to_the_log(on_note):
        with _own_signals():
            ray.init(
                address="local",  # not a cluster that runs here, or that RAY_ADDRESS names
                num_cpus=count,
                object_store_memory=max(OBJECT_STORE_BYTES, store),
                object_spilling_directory=str(location.spill),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _node_ip_address="127.0.0.1",
            )
        try:
            yield RayWorkers(ray, location, on_note, joined=False, max_slots=count)
        finally:
            ray.shutdown()


@contextmanager
def ray_cluster(
    address: str, location: TableLocation, on_note: Note, max_slots: int | None = None
) -> Iterator[Workers]:
    """The Ray cluster at an address for the length of a solve. Raises OptionError where there is
    none, or none that lets this process in."""
    if "RAY_AUTH_MODE" not in os.environ and Path("~/.ray/auth_token").expanduser().exists():
        os.environ["RAY_AUTH_MODE"] = "token"
    with _ray(KEEPALIVE) as ray, tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
        package = Path(folder) / "luckbase"
        for name, path in source_files():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, package / name)
        _join(ray, address, package)
        lost = False
        try:
            with _words_to_the_log(on_note):
                workers = RayWorkers(ray, location, on_note, joined=True, max_slots=max_slots or 0)
                with closing(workers):
                    yield workers
        except WorkerError:
            lost = True
            raise
        finally:
            _leave(ray, lost)


def _join(ray: Any, address: str, package: Path) -> None:
    """Join a cluster, in a thread: Ray may wait for ever."""
    errors: list[BaseException] = []

    def join() -> None:
        try:
            with _own_signals():
                ray.init(
                    address=address,
                    runtime_env={"py_modules": [str(package)]},
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
        except BaseException as error:  # raised in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=join, daemon=True, name="luckbase join")
    thread.start()
    thread.join(JOIN_SECONDS)
    where = f"the Ray cluster at {address}"
    if thread.is_alive():
        raise OptionError(
            f"{option('address')}: {where} has not let this process in for {JOIN_SECONDS:.0f} s; "
            "is its head up, and does it see this machine?"
        )
    for error in errors:
        reason = _reason(error)
        if "uthenticat" in type(error).__name__ or "token" in reason.lower():
            raise OptionError(
                f"{option('address')}: {where} wants its token; copy ~/.ray/auth_token from its "
                f"head, or set RAY_AUTH_TOKEN: {reason}"
            )
        if isinstance(error, ConnectionError | RuntimeError | ValueError | OSError):
            raise OptionError(f"{option('address')}: no Ray cluster answers at {address}: {reason}")
        raise error


def _leave(ray: Any, lost: bool) -> None:
    """Leave a cluster. One that is lost is not waited for: Ray would wait for it when this process
    ends, so it is ended from outside of Python soon after it has said why."""
    atexit.unregister(ray.shutdown)
    thread = threading.Thread(target=ray.shutdown, daemon=True, name="luckbase leave")
    thread.start()
    thread.join(LEAVE_SECONDS)
    if thread.is_alive() or lost:
        _nowhere.append(open(os.devnull, "w"))  # noqa: SIM115  # open until the end
        faulthandler.dump_traceback_later(LEAVE_SECONDS, exit=True, file=_nowhere[0])


@contextmanager
def _words_to_the_log(on_note: Note) -> Iterator[None]:
    """What Ray says of nodes and tasks goes to the log; it would print it among our own output."""
    from ray._private import worker

    printing = worker.print_to_stdstream

    def note(message: Any, ignore_prefix: bool) -> None:
        on_note("Ray: " + " ".join(" ".join(message["lines"]).split()), tell=False)

    worker.print_to_stdstream = note  # type: ignore[assignment]
    try:
        yield
    finally:
        worker.print_to_stdstream = printing


@contextmanager
def _own_signals() -> Iterator[None]:
    """SIGTERM stays what it was: Ray puts its own in its place."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def check_address(address: str) -> None:
    """Whether a Ray cluster may listen at host:port; Ray itself takes minutes to say so, and prints
    its own warnings meanwhile.

    Raises OptionError. Other forms (``auto``, ``ray://…``) are left to Ray.
    """
    host, colon, port = address.rpartition(":")
    if not colon or "/" in address or not port.isdigit():
        return
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS) as connection:
            answers = os.environ.get("RAY_USE_TLS", "0") != "0" or _speaks_http2(connection)
    except (OSError, OverflowError) as error:
        raise OptionError(f"{option('address')}: nothing answers at {address}: {error}") from None
    if not answers:
        raise OptionError(
            f"{option('address')}: what listens at {address} is not the head of a Ray cluster; "
            "expected its HOST:PORT, such as 10.0.0.1:6379"
        )


def _speaks_http2(connection: socket.socket) -> bool:
    """Whether what listens greets as HTTP/2, as gRPC does, before the socket's time is up: with a
    frame of its settings, whose kind is 4."""
    try:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        with connection.makefile("rb") as answer:
            return answer.read(9)[3:4] == b"\4"
    except OSError:
        return False
