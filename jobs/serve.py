"""``luckbase serve``: the tables that are there, in a browser and as JSON, until Ctrl+C."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import time
import traceback
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs import app, terminal
from luckbase.solver import sentences
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError, need
from luckbase.solver.sentences import Help

if TYPE_CHECKING:
    import uvicorn

    from luckbase.jobs.web.pool import Finder, TablePool

WAITING = 128
"""Connections that may wait to be taken."""
SHORT_SECONDS = 5.0
"""A process that ends sooner after its start would do so again."""
ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""The signals that end it."""


@app.command("luckbase serve", "luckbase serve pig/race --port 8000 --no-open")
def serve(
    tables: Annotated[
        list[str] | None,
        app.Argument(
            "Tables' directories, board files, folders of tables; all results if not given.",
            "[TABLE|BOARD|FOLDER...]",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Listen at this port; 0: any free.")
    ] = 8714,
    no_open: Annotated[bool, Help("Do not open the browser.")] = False,
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, max=256, help="Processes that answer, one a core.")
    ] = 1,
    host: Annotated[
        str, Help("Listen at this address of the machine, so that others may ask too.", "H")
    ] = "127.0.0.1",
    settings: app.Settings = None,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> None:
    """Explore tables in a browser, or ask them over HTTP as JSON.

    Nothing is ever written. Listens on this machine alone unless --host says otherwise. Ctrl+C
    ends it."""
    from luckbase.cluster.table.storage import is_uri

    need("serve", "starlette", "uvicorn", extra="web")
    if processes > 1 and not hasattr(os, "fork"):
        raise OptionError(f"--processes: {processes} need a system that forks; leave it out")
    pool = pool_of(tables or [], results, app.read_settings(settings))
    if processes > 1 and any(is_uri(each.path) for each in pool.listed()):
        raise OptionError("--processes: one process answers of tables in a store; leave it out")
    listener = listen(host, port)
    if not is_local(host):
        terminal.say(
            f"luckbase: warning: listening at {host}: whoever reaches this machine can read "
            "these tables"
        )
    address = address_of(listener)
    count = len(pool.listed())
    if as_json:
        terminal.print_json({"address": address, "tables": count})
    else:
        terminal.say(f"{sentences.many(count, 'table')} at {address} (Ctrl+C ends it)")
    run(pool, listener, host, None if no_open else address, processes)


def pool_of(names: Sequence[str], results: Path, settings: Mapping[str, str]) -> TablePool:
    """The tables that are named, by directory, board file or folder; all under `results` if none
    is. Raises OptionError, BoardError, MissingTableError for what is not there."""
    from luckbase.cluster.table.find import find_table, tables_below, tables_of
    from luckbase.cluster.table.storage import place_of
    from luckbase.jobs.web.pool import TablePool
    from luckbase.solver.board.file import meant, read_board

    if settings and not any(place_of(name).is_file() for name in names):
        raise OptionError(f"--set: {next(iter(settings))} is an option of a board; name one too")
    finders: list[Finder] = []
    for name in names:
        path = place_of(name)
        if path.is_dir():
            finders.append(partial(tables_below, path))
        elif not path.exists():
            raise OptionError(f"{name}: no such table, board file or folder{meant(path)}")
        elif settings:
            location = find_table(name, results, dict(settings))
            finders.append(partial(tables_below, location.path))
        else:
            finders.append(partial(tables_of, read_board(path), results))
    for name, finder in zip(names, finders, strict=True):
        if not finder():
            raise MissingTableError(f"{name}: no table there; luckbase solve makes one of a board")
    return TablePool(finders or [partial(tables_below, results)])


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OptionError for a port that is taken, or a host that is
    not this machine's."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        raise OptionError(f"--host: '{host[:60]}' is not an address of this machine") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
        listener.listen(128)
    except PermissionError:
        raise OptionError(f"--port: {port} is only for the system; take one from 1024") from None
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            why = f"--port: {port} is taken; another one, or --port 0 for any that is free"
            raise OptionError(why) from None
        raise OptionError(f"--host: {host[:60]}: {error.strerror}") from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The address of the page."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def run(
    pool: TablePool, listener: socket.socket, host: str, page: str | None, processes: int = 1
) -> None:
    """Answer until Ctrl+C. page: an address to open in the browser. Raises LuckbaseError where one
    of several processes ends soon after its start."""
    import uvicorn

    from luckbase.jobs.web.server import MAX_REQUESTS, hosts_of, make_app

    class Server(uvicorn.Server):
        """Takes one connection at a time, so that each process gets its share of many."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            for each in sockets or ():
                each.listen(WAITING)

    hosts, pool.says_paths = hosts_of(host, listener), is_local(host)
    pool.share(processes)
    config = uvicorn.Config(
        make_app(pool, hosts, warm=True, processes=processes), log_level="warning",
        access_log=False, server_header=False, date_header=False, timeout_graceful_shutdown=3,
        ws="none", proxy_headers=False, backlog=WAITING if processes == 1 else 1,
        limit_concurrency=2 * MAX_REQUESTS,  # with those that wait for nothing
    )  # fmt: skip
    # On Linux, where there is no screen for one, a browser would take over the terminal.
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    opened = page is not None and (screen or not sys.platform.startswith("linux"))
    browser = threading.Timer(0.3, webbrowser.open, [page]) if opened else None
    if processes > 1:
        with listener:
            return ProcessGroup(processes, lambda: answer(Server(config), listener)).run(browser)
    if browser is not None:
        browser.start()
    answer(Server(config), listener)


def answer(server: uvicorn.Server, listener: socket.socket) -> None:
    """Answer until a signal ends it."""
    if callable(signal.getsignal(signal.SIGHUP)):  # ours, which would end it with a traceback
        signal.signal(signal.SIGHUP, server.handle_exit)  # as it does with SIGTERM
    try:
        with listener:
            server.run(sockets=[listener])
    except KeyboardInterrupt:
        if not server.should_exit:  # else it has ended, and raises once more what ended it
            raise


class ProcessGroup:
    """Processes that do the same until a signal ends all of them; one that ends is replaced."""

    def __init__(self, size: int, work: Callable[[], None]) -> None:
        self.size, self.work = size, work
        self.started: dict[int, float] = {}
        """When those that run were started, by their ids."""
        self.ending = False
        self.read_end, self.write_end = os.pipe()

    def run(self, then: threading.Thread | None = None) -> None:
        """Until a signal, or one ends soon after its start: then raises LuckbaseError. then: is
        started when all are."""
        for each in ENDING:
            signal.signal(each, self.end)
        while len(self.started) < self.size:
            self.start()
        if then is not None:
            then.start()
        short = ""
        while self.started:
            pid, status = os.wait()
            began = self.started.pop(pid, None)
            if began is None or self.ending:  # the first: what has opened the browser
                continue
            lived = time.monotonic() - began
            if lived < SHORT_SECONDS:
                short = f"a process ended {lived:.0f} s after its start ({ended(status)})"
                self.end()
                continue
            terminal.say(f"luckbase: warning: a process ended ({ended(status)}); it is replaced")
            self.start()
        if short:
            raise LuckbaseError(f"{short}; look for the reason with --processes 1")

    def end(self, *_: object) -> None:
        """End all of them."""
        self.ending = True
        for pid in self.started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def start(self) -> None:
        """Start one more."""
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # else a new one does what `run` said
        pid = os.fork()
        if pid:
            self.started[pid] = time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            if self.ending:  # meanwhile
                self.end()
            return
        code = 1
        try:
            for each in ENDING:
                signal.signal(each, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            os.close(self.write_end)
            threading.Thread(target=self.follow, daemon=True).start()
            self.work()
            code = 0
        except KeyboardInterrupt:
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def follow(self) -> None:
        """End this process when the one that started it has."""
        os.read(self.read_end, 1)
        os.kill(os.getpid(), signal.SIGTERM)


def ended(status: int) -> str:
    """How a process ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
