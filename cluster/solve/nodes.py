"""The nodes of a Ray cluster: their state and versions, and how a node runs a task.

A node imports this module before its packages are checked, so it imports none of them.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from luckbase.solver.errors import WorkerError
from luckbase.solver.sentences import many, size

ALONE_SECONDS = 60.0
"""How long a waiting shard may fit no node before the solve ends. Ray would wait forever."""
HEAD_SECONDS = 40.0
"""How long the head may be silent. Ray ends the process after 60 seconds, without a message."""
STAYS = "the solved parts are kept, and the same command resumes"


@dataclass
class Node:
    """A node."""

    name: str
    slots: int
    memory: int  # bytes that its tasks may use
    shards: int = 0  # number of shards it has finished


class Nodes:
    """The living nodes with cores, by Ray's id."""

    def __init__(self, listed: Sequence[Any], on_note: Callable[[str], None]) -> None:
        """listed: the result of `ray.nodes()`."""
        self.on_note = on_note
        self.by_id: dict[str, Node] = {}
        self._seen: Sequence[Any] = ()
        self.hear(listed)
        self._fitted = self._heard
        self.refresh()

    def hear(self, listed: Sequence[Any]) -> None:
        """Take a new list from the head. Called by another thread."""
        self._listed, self._heard = listed, time.monotonic()

    def refresh(self, memory: int = 0, cores: int = 1) -> None:
        """Update `by_id` and report nodes that joined or left.

        Raises WorkerError if the head is silent, or if for `ALONE_SECONDS` no node has had the
        memory and cores that a waiting task needs.
        """
        now = time.monotonic()
        if now - self._heard > HEAD_SECONDS:
            silent = f"the head of the cluster has not answered for {HEAD_SECONDS:.0f} s"
            raise WorkerError(f"{silent}; {STAYS} once the cluster is there again")
        if self._listed is not self._seen:
            self._seen = self._listed
            self._update()
        if any(node.memory >= memory and node.slots >= cores for node in self.by_id.values()):
            self._fitted = now
        elif now - self._fitted > ALONE_SECONDS:
            needed = f"{size(memory)} and {many(cores, 'core')} for a shard"
            raise WorkerError(f"no node of the cluster is left that has {needed}; {STAYS}")

    def _update(self) -> None:
        before, self.by_id = self.by_id, {}
        for entry in self._seen:
            node_id, resources = entry["NodeID"], entry["Resources"]
            if entry["Alive"] and resources.get("CPU"):
                name = f"{entry['NodeManagerHostname']} ({entry['NodeManagerAddress']})"
                new = Node(name, int(resources["CPU"]), int(resources.get("memory", 0)))
                self.by_id[node_id] = before.get(node_id, new)
        for node_id in before.keys() - self.by_id.keys():
            self.on_note(f"node {before[node_id].name} is gone; its shards are solved elsewhere")
        for node_id in self.by_id.keys() - before.keys() if before else ():
            self.on_note(f"node {self.by_id[node_id].name} has joined")


# --- versions ------------------------------------------------------------------------------------

PACKAGES = ("numba", "numpy", "pyarrow", "pydantic")
PACKAGE = Path(__file__).parents[2]
"""The folder of the package luckbase from which this process imports it."""


@cache
def versions() -> dict[str, str]:
    """Return all versions that must be equal on every node, by name; "" for a missing package.
    luckbase's version is a hash of its code."""
    installed = {
        "the architecture": platform.machine(),
        "Python": ".".join(map(str, sys.version_info[:2])),
    }
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = ""
    digest = hashlib.sha256()
    for name, path in source_files():
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return {**installed, "luckbase": digest.hexdigest()[:12]}


def probe() -> dict[str, str]:
    return versions()


def difference(needed: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Return a node's first different version, as part of a sentence; "" if all are equal."""
    for name, installed in there.items():
        if installed != needed[name]:
            return f"has {name} {installed}, not {needed[name]}" if installed else (
                f"has no {name}; {needed[name]} is needed"
            )  # fmt: skip
    return ""


def source_files() -> list[tuple[str, Path]]:
    """Return the files of the package luckbase, with their names in it."""
    files = [*PACKAGE.glob("*.py")]
    for room in PACKAGE.iterdir():  # in a checkout this is a link, which `rglob` does not follow
        files += room.rglob("*.py") if room.is_dir() else ()
    return sorted((path.relative_to(PACKAGE).as_posix(), path) for path in files)


# --- a task --------------------------------------------------------------------------------------

_compiled: set[type] = set()


def run(
    needed: Mapping[str, str], content: bytes, sent: Sequence[str],
    parts: Sequence[Sequence[int]], *inputs: Any,
) -> Iterator[Any]:  # fmt: skip
    """Run a pickled task. Yields the node's id, the job's payoffs, its stage file, and its receipt
    with the bytes of files that this node cannot write into the table.

    needed: the driver's versions.
    sent: names of the files whose bytes come first in `inputs`.
    parts: for each tier that the job reads, the parts that come next.
    """
    import ray

    differs = difference(needed, versions())
    if differs:  # the node joined after the nodes were checked
        raise WorkerError(f"node {socket.gethostname()} {differs}; {STAYS}")
    from luckbase.cluster.machine import memory_used

    task = _compiled_task(content)
    memory_used()  # measure from here on
    rest = iter(inputs)
    files = dict(zip(sent, rest, strict=False))
    payoffs = [dict(zip(numbers, rest, strict=False)) for numbers in parts]
    with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
        for name, file in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(file)
        job = replace(task.job, location=replace(task.job.location, apart=folder))
        steps = job.run(
            task, [read if len(read) > 1 else read[0] for read in payoffs], None, lambda: False
        )
        result = next(steps)
        yield ray.get_runtime_context().get_node_id()
        yield result
        receipt, content_of_files = next(steps)
        yield job.location.read(receipt.stage_file) if receipt.stage_file else None
        yield receipt, content_of_files


def _compiled_task(content: bytes) -> Any:
    """Return a pickled task after compiling or loading its functions. One process of a host
    compiles; the others wait and load the result."""
    task = pickle.loads(content)
    if type(task.job) not in _compiled:
        with one_at_a_time():
            task.job.compile()
        _compiled.add(type(task.job))
    return task


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold a lock shared by the processes of this host."""
    import fcntl

    from luckbase.solver.compiled import cache_folder

    folder = cache_folder()
    if folder is None:
        yield
        return
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
