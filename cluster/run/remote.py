"""What a machine of a cluster is asked before it works: is it made of the same; is all compiled.

Light to import, for a machine that lacks something must be able to say what. Code comes with the
job (`ray_session`), compiled code with the first task: a machine compiles only what nobody of its
kind has, and one process of it for all.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from luckbase.cluster.run.environment import Environment, own_environment


@dataclass(frozen=True)
class Asked:
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


def run(asked: Asked, content: bytes, *given: Any) -> Iterator[Any]:
    """Do a pickled task, as `worker.work`; yields a Refusal or None, the payoffs, the receipt, the
    bytes of the file: always four, for Ray may ask another machine for one of them again."""
    why = asked.environment.differs_from(own_environment())
    if why:
        import ray

        node = ray.get_runtime_context().get_node_id()
        yield from (Refusal(node, socket.gethostname(), why), None, None, None)
        return
    import ray

    from luckbase.cluster.run.session import PayoffsLostError
    from luckbase.cluster.run.worker import work

    if any(one is None for one in given):  # made again where it is refused
        raise PayoffsLostError("payoffs were lost with their machine; what was solved stays")
    task = prepare(asked, content)
    yield None
    steps = work(task, given)
    yield next(steps)
    result, node = next(steps), ray.get_runtime_context().get_node_id()
    yield replace(result.receipt, node=node)
    yield result.content


def prepare(asked: Asked, content: bytes) -> Any:
    """A pickled task; what it needs is loaded, or compiled, when this returns."""
    import ray

    from luckbase.cluster.run.worker import work  # noqa: F401  (the rest of what a task imports)

    task = pickle.loads(content)
    if id(type(task)) not in _ready:
        with _one_at_a_time():
            for compiled in ray.get(list(asked.compiled)):
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
