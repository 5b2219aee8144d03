"""The machines of a Ray cluster: which are there, which are left out and why, with how many cores;
and what one does before its first task: compare its environment with the driver's, and compile.

Light to import, because a machine that lacks a package must be able to name it. The code comes with
the job (`ray`). Each machine compiles it once: the first process compiles, the others wait and then
load what it has kept.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

from luckbase.solver.errors import WorkerError
from luckbase.solver.sentences import many, size

POLL_SECONDS = 1.0
"""Between two polls of the nodes of a cluster."""
ALONE_SECONDS = 60.0
"""So long a cluster may have no node that can work before the solve gives up."""
HEAD_SECONDS = 40.0
"""So long a cluster's head may say nothing. Ray ends the process after 60, without a word of what
stays."""
STAYS = "what was solved stays, and the same command goes on"


class Head:
    """What the head of a cluster says of its nodes. It is asked by a thread of its own: a head that
    is lost answers nobody, and whoever asks it waits."""

    def __init__(self, list_nodes: Callable[[], Any]) -> None:
        """list_nodes: as `ray.nodes`."""
        self._list, self._answer = list_nodes, list_nodes()
        self._heard, self._closed = time.monotonic(), threading.Event()
        threading.Thread(target=self._ask, daemon=True, name="luckbase head").start()

    def _ask(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            try:
                self._answer = self._list()
            except Exception:  # as good as no answer
                continue
            self._heard = time.monotonic()

    def nodes(self) -> Any:
        """What it said last. Raises WorkerError where that was more than `HEAD_SECONDS` ago."""
        if time.monotonic() - self._heard > HEAD_SECONDS:
            raise WorkerError(
                f"the head of the cluster has not answered for {HEAD_SECONDS:.0f} s; {STAYS} once "
                "the cluster is there again"
            )
        return self._answer

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()


@dataclass
class Node:
    """A machine of the cluster."""

    name: str
    slots: int = 0
    """Cores."""
    memory: int = 0
    """Bytes that tasks may have."""
    refused: str = ""
    """Why it is left out."""
    shards: int = 0
    """That it has finished."""


class Nodes:
    """The machines, polled every second; who comes and goes is noted."""

    def __init__(
        self, list_nodes: Callable[[], Any], on_note: Callable[[str], None], own: str = ""
    ) -> None:
        """list_nodes: as `ray.nodes`. own: Ray's id of this machine, where it is one of them."""
        self._list, self._on_note, self._own = list_nodes, on_note, own
        self.by_id: dict[str, Node] = {}
        self.departed: list[str] = []
        self._polled = float("-inf")
        self._worked = self._fits = time.monotonic()
        self.refresh()

    def refresh(self) -> None:
        """List the nodes again. Raises WorkerError where none has worked for `ALONE_SECONDS`, or
        where the cluster has given this machine up."""
        now = time.monotonic()
        if now - self._polled < POLL_SECONDS:
            return
        self._polled, before, self.by_id = now, self.by_id, {}
        for entry in self._list():
            node_id, resources = entry["NodeID"], entry["Resources"]
            if node_id == self._own and not entry["Alive"]:
                raise WorkerError(
                    "the cluster has given up this machine's own Ray node; what was solved stays: "
                    "start Ray here again, and the same command goes on"
                )
            if entry["Alive"] and resources.get("CPU"):
                name = f"{entry['NodeManagerHostname']} ({entry['NodeManagerAddress']})"
                node = self.by_id[node_id] = before.get(node_id) or Node(name)
                node.slots, node.memory = int(resources["CPU"]), int(resources.get("memory", 0))
        for node_id, node in before.items():
            if node_id not in self.by_id and not node.refused:
                self.departed.append(node.name)
                self._on_note(f"node {node.name} is gone; its shards are solved elsewhere")
        for node_id in self.by_id.keys() - before.keys() if before else ():
            self._on_note(f"node {self.by_id[node_id].name} has joined")
        if self.working:
            self._worked = now
        elif now - self._worked > ALONE_SECONDS or self.refused:
            raise self._nobody()

    def refresh_for(self, memory: int, cores: int) -> None:
        """As `refresh`; raises WorkerError too where for `ALONE_SECONDS` no node has had so many
        bytes, or cores, which a task waits for: Ray says nothing of it."""
        self.refresh()
        fits = (node.memory >= memory and node.slots >= cores for node in self.working)
        if not memory or any(fits):
            self._fits = self._polled
        elif self._polled - self._fits > ALONE_SECONDS:
            needed = f"{size(memory)} and {many(cores, 'core')} for a shard"
            raise WorkerError(f"no node of the cluster is left that has {needed}; {STAYS}")

    @property
    def working(self) -> list[Node]:
        """Those that are not left out."""
        return [node for node in self.by_id.values() if not node.refused]

    @property
    def refused(self) -> list[str]:
        """Those that are, by Ray's ids."""
        return [node_id for node_id, node in self.by_id.items() if node.refused]

    def leave_out(self, node_id: str, name: str, why: str) -> None:
        """Give a node no more tasks. Raises WorkerError where that was the last one."""
        node = self.by_id.setdefault(node_id, Node(name))
        if not node.refused:
            node.refused = why
            self._on_note(f"node {node.name} is left out: it {why}")
        if not self.working:
            raise self._nobody()

    def _nobody(self) -> WorkerError:
        reasons = [f"{n.name} {n.refused}" for n in self.by_id.values() if n.refused]
        last = f"the last was {self.departed[-1]}" if self.departed else "no node has a core"
        why = "; ".join(reasons) or last
        return WorkerError(f"no node of the cluster is left that can work: {why}; {STAYS}")


# --- the environment of a machine ----------------------------------------------------------------

PACKAGES = ("numba", "numpy", "pyarrow", "pydantic")
PACKAGE = Path(__file__).parents[2]
"""The folder of the package luckbase, where this process has it from."""


@dataclass(frozen=True)
class Environment:
    """versions: of Python, of packages and of the machine, by name. code: a hash of luckbase."""

    versions: tuple[tuple[str, str], ...]
    code: str

    def differs_from(self, other: Environment) -> str:
        """The first difference of the other, as a part of a sentence; "" for none."""
        needed = dict(self.versions)
        for name, found in other.versions:
            if found == "":
                return f"has no {name}; {needed[name]} is needed"
            if found != needed[name]:
                return f"has {name} {found}, not {needed[name]}"
        return "" if self.code == other.code else "runs other code of luckbase"


@cache
def own_environment() -> Environment:
    """This process's."""
    versions = [("Python", ".".join(map(str, sys.version_info[:2])))]
    for package in PACKAGES:
        try:
            versions.append((package, version(package)))
        except PackageNotFoundError:
            versions.append((package, ""))
    digest = hashlib.sha256()
    for name, path in source_files():
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    versions.append(("the architecture", platform.machine()))
    return Environment(tuple(versions), digest.hexdigest()[:16])


def source_files() -> list[tuple[str, Path]]:
    """The files of the package luckbase, with their names in it."""
    files = [*PACKAGE.glob("*.py")]
    for room in PACKAGE.iterdir():  # a link in a checkout, which a search from above does not enter
        files += room.rglob("*.py") if room.is_dir() else ()
    return sorted((path.relative_to(PACKAGE).as_posix(), path) for path in files)


# --- what runs on a machine ----------------------------------------------------------------------


@dataclass(frozen=True)
class Declined:
    """A machine refuses a task: its environment differs, or it does not see files that the job
    reads."""

    node: str
    """Ray's id of it."""
    name: str
    why: str = ""
    """How its environment differs."""
    files: tuple[str, ...] = ()
    """The names of the files that have to be sent with the task."""


_ready: set[type] = set()


def run(
    needed: Environment, content: bytes, sent: tuple[str, ...], pieces: tuple[int, ...],
    *inputs: Any,
) -> Iterator[Any]:  # fmt: skip
    """Do a pickled job. sent: the names of the files whose bytes are given first; then come
    payoffs, of each tier that is read so many pieces, or its array. Yields what declines it or the
    node's id, the payoffs, the receipt, the bytes of the files: always four, for Ray may ask
    another machine for one of them again."""
    import ray

    node, name = ray.get_runtime_context().get_node_id(), socket.gethostname()
    why = needed.differs_from(own_environment())
    if why:
        yield from _decline(Declined(node, name, why))
        return
    from luckbase.cluster.machine import memory_used
    from luckbase.cluster.run.worker import NotSeenError, PayoffsLostError

    if any(part is None for part in inputs):  # made again where it is refused
        raise PayoffsLostError("payoffs were lost with their machine; what was solved stays")
    job, files = _prepare(content), dict(zip(sent, inputs, strict=False))
    memory_used()  # from here on it is sampled
    rest, payoffs = iter(inputs[len(sent) :]), list[Any]()
    for count in pieces:
        first, *others = islice(rest, count)
        payoffs.append([first, *others] if isinstance(first, tuple) else first)
    steps = job.run(payoffs, files, None, lambda: False)
    try:
        payoffs_out = next(steps)
    except NotSeenError as error:
        yield from _decline(Declined(node, name, files=error.names))
        return
    yield node
    yield payoffs_out
    receipt, content_of_files = next(steps)
    yield replace(receipt, node=node)
    yield content_of_files


def _decline(declined: Declined) -> Iterator[Any]:
    yield declined  # not from a tuple: Ray sends into what yields
    for _ in range(3):
        yield None


def with_its_disk(location: Any, does: str, *arguments: Any) -> Any:
    """What a machine does with the stage files on its own disk: of `worker.TableLocation`."""
    return getattr(location, does)(*arguments)


@lru_cache(maxsize=2)
def board_of(content: bytes) -> Any:
    """A pickled board, the same one for all the jobs on it."""
    return pickle.loads(content)


def _prepare(content: bytes) -> Any:
    """Return a pickled job; the functions that it needs are then loaded, or compiled."""
    job = pickle.loads(content)
    if type(job) not in _ready:
        with _one_at_a_time():
            job.compile()
        _ready.add(type(job))
    return job


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let one process of this machine compile; the others then load what it has kept."""
    import fcntl

    from luckbase.solver.compiled import cache_folder

    folder = cache_folder()
    if folder is None:
        yield
        return
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
