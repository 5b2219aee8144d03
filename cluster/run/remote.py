"""What a machine of a cluster is asked before it works: is it made of the same; is all compiled.

Light to import, for a machine that lacks something must be able to say what. Code comes with the
job (`ray`), compiled code with the first task: a machine compiles only what nobody of its kind has,
and one process of it for all.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numba", "llvmlite", "numpy", "pyarrow", "pydantic")


@dataclass(frozen=True)
class Environment:
    """versions: of Python, of packages and of the machine, by name. code: a hash of luckbase."""

    versions: tuple[tuple[str, str], ...]
    code: str

    def differs_from(self, other: Environment) -> str:
        """What is different there, as a sentence has it; "" where nothing is."""
        mine = dict(self.versions)
        for name, there in other.versions:
            if there == "":
                return f"has no {name}; {mine[name]} is needed"
            if there != mine[name]:
                return f"has {name} {there}, not {mine[name]}"
        return "" if self.code == other.code else "runs other code of luckbase"


@cache
def own_environment() -> Environment:
    """This process's."""
    found = [("Python", ".".join(map(str, sys.version_info[:2])))]
    for package in PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            found.append((package, ""))
    return Environment((*found, ("the architecture", platform.machine())), code_hash())


@cache
def code_hash() -> str:
    """A hash of the source files of luckbase that this process runs."""
    digest = hashlib.sha256()
    for name, path in source_files():
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


PACKAGE = Path(__file__).parents[2]
"""The folder of the package luckbase, where this process has it from."""


def source_files() -> list[tuple[str, Path]]:
    """The files of the package luckbase, with their names in it."""
    found = [*PACKAGE.glob("*.py")]
    for room in PACKAGE.iterdir():  # a link in a checkout, which a search from above does not enter
        found += room.rglob("*.py") if room.is_dir() else ()
    return sorted((path.relative_to(PACKAGE).as_posix(), path) for path in found)


@dataclass(frozen=True)
class Requirements:
    """What the driver is made of; compiled: a reference to what it has compiled, if any."""

    environment: Environment
    compiled: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """A machine that is made of something else: its id, its name, why."""

    node: str
    name: str
    why: str


_ready: set[int] = set()


def run(needed: Requirements, content: bytes, *given: Any) -> Iterator[Any]:
    """Do a pickled task, as `worker.work`; yields a Refusal or None, the payoffs, the receipt, the
    bytes of the file: always four, for Ray may ask another machine for one of them again."""
    why = needed.environment.differs_from(own_environment())
    if why:
        import ray

        node = ray.get_runtime_context().get_node_id()
        yield from (Refusal(node, socket.gethostname(), why), None, None, None)
        return
    import ray

    from luckbase.cluster.run.worker import PayoffsLostError, work

    if any(one is None for one in given):  # made again where it is refused
        raise PayoffsLostError("payoffs were lost with their machine; what was solved stays")
    task = prepare(needed, content)
    yield None
    steps = work(task, given)
    yield next(steps)
    result, node = next(steps), ray.get_runtime_context().get_node_id()
    yield replace(result.receipt, node=node)
    yield result.content


def prepare(needed: Requirements, content: bytes) -> Any:
    """A pickled task; what it needs is loaded, or compiled, when this returns."""
    import ray

    from luckbase.cluster.run.worker import work  # noqa: F401  (the rest of what a task imports)

    task = pickle.loads(content)
    if id(type(task)) not in _ready:
        with _one_at_a_time():
            for compiled in ray.get(list(needed.compiled)):
                _unpack(compiled)
            task.compile()
        _ready.add(id(type(task)))
    return task


def _unpack(content: bytes) -> None:
    from luckbase.solver.compiled import unpack

    unpack(content)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """One process of this machine compiles; the others find what it has compiled."""
    import fcntl

    from luckbase.solver.compiled import cache_roots

    for root in cache_roots():
        try:
            root.mkdir(parents=True, exist_ok=True)
            file = (root / ".lock").open("w")
        except OSError:
            continue
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    yield
