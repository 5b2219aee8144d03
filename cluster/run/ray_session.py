"""Ray's sessions: started on this machine for the length of a solve, or a cluster that is joined.

Started here (`--address local`), it listens on the loopback address only and stops with the solve.
Of a cluster (`--address ADDR`) the nodes get luckbase's code from here
(`py_modules`), are left out by name where something else differs, and are counted anew all the
time: one task more than they have cores is on its way.

Ray's defaults leave a task hanging whose node was cut off: the driver asks its connections for a
sign of life (`KEEPALIVE`), so that they break within 70 s, and Ray tries elsewhere. Nodes that were
started with shorter times, as the guide gives them, pass those on by the environment.
"""

from __future__ import annotations

import atexit
import faulthandler
import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from luckbase.cluster.run.environment import source_files
from luckbase.cluster.run.opening import spill_folder
from luckbase.cluster.run.ray_workers import Note, RayWorkers, quiet
from luckbase.cluster.run.session import Workers
from luckbase.cluster.run.worker import Home
from luckbase.solver.errors import OptionError, WorkerError
from luckbase.solver.sentences import option

OBJECT_STORE_BYTES = 100 << 20
"""The least that an object store has."""
KEEPALIVE = {
    "RAY_grpc_client_keepalive_time_ms": 60_000,
    "RAY_grpc_client_keepalive_timeout_ms": 10_000,
}
"""Milliseconds until the driver asks a silent connection for a sign of life, and waits for one.
Ray's servers refuse to be asked more often than once a minute unless they are told to."""
JOIN_SECONDS = 60.0
LEAVE_SECONDS = 10.0
_nowhere: list[Any] = []


def _before_import() -> None:
    """What Ray reads from the environment when it is imported."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")


@contextmanager
def ray_here(count: int, home: Home, store: int, on_note: Note = quiet) -> Iterator[Workers]:
    """Ray on this machine for the length of a solve, with `count` workers and an object store of so
    many bytes, which spills beside the table; it listens on the loopback address only."""
    _before_import()
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 lets all else come first
    # Ray's only way to listen on the loopback address alone; read when it is imported.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    spill = spill_folder(home.table)
    spill.mkdir(parents=True, exist_ok=True)
    with _words_to_the_log(on_note):
        with _own_signals():
            ray.init(
                address="local",  # not a cluster that runs here, or that RAY_ADDRESS names
                num_cpus=count,
                object_store_memory=max(OBJECT_STORE_BYTES, store),
                object_spilling_directory=str(spill),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _node_ip_address="127.0.0.1",
            )
        try:
            yield RayWorkers(ray, home, on_note, joined=False, most=count)
        finally:
            ray.shutdown()


@contextmanager
def ray_cluster(
    address: str, home: Home, on_note: Note, most: int | None = None
) -> Iterator[Workers]:
    """The Ray cluster at an address for the length of a solve. Raises OptionError where there is
    none, or none that lets this process in."""
    _before_import()
    for name, milliseconds in KEEPALIVE.items():
        os.environ.setdefault(name, str(milliseconds))
    if "RAY_AUTH_MODE" not in os.environ and Path("~/.ray/auth_token").expanduser().exists():
        os.environ["RAY_AUTH_MODE"] = "token"
    import ray

    with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
        package = Path(folder) / "luckbase"
        for name, path in source_files():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, package / name)
        said: list[BaseException] = []

        def join() -> None:
            try:
                with _own_signals():
                    ray.init(
                        address=address,
                        runtime_env={"py_modules": [str(package)]},
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                    )
            except BaseException as error:  # said in this thread
                said.append(error)

        thread = threading.Thread(target=join, daemon=True, name="luckbase join")
        thread.start()
        thread.join(JOIN_SECONDS)
        if thread.is_alive():
            raise OptionError(
                f"{option('address')}: the Ray cluster at {address} has not let this process in "
                f"for {JOIN_SECONDS:.0f} s; is its head up, and does it see this machine?"
            )
        if said:
            raise _not_joined(address, said[0])
        lost = True
        try:
            with _words_to_the_log(on_note):
                workers = RayWorkers(ray, home, on_note, joined=True, most=most or 0)
                with closing(workers):
                    yield workers
            lost = False
        except WorkerError:
            raise
        except BaseException:
            lost = False
            raise
        finally:
            _leave(ray, lost)


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

    def note(said: Any, ignore_prefix: bool) -> None:
        on_note("Ray: " + " ".join(" ".join(said["lines"]).split()), tell=False)

    worker.print_to_stdstream = note  # type: ignore[assignment]
    try:
        yield
    finally:
        worker.print_to_stdstream = printing


def _not_joined(address: str, error: BaseException) -> BaseException:
    reason = " ".join(str(error).split())[:200]
    if "uthenticat" in type(error).__name__ or "token" in reason.lower():
        return OptionError(
            f"{option('address')}: the Ray cluster at {address} wants its token; copy "
            f"~/.ray/auth_token from its head, or set RAY_AUTH_TOKEN: {reason}"
        )
    if isinstance(error, ConnectionError | RuntimeError | ValueError | OSError):
        return OptionError(f"{option('address')}: no Ray cluster answers at {address}: {reason}")
    return error


@contextmanager
def _own_signals() -> Iterator[None]:
    """SIGTERM stays what it was: Ray puts its own in its place."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


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
        raise OptionError(f"{option('address')}: nothing answers at {address}: {error}") from None
