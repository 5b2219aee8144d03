"""The process that listens: which tables, at which address, until Ctrl+C."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from luckbase.cluster.table.find import find_table, tables_of
from luckbase.jobs.web.app import LOCAL, MAX_REQUESTS, make_app
from luckbase.jobs.web.pool import Finder, TablePool, under
from luckbase.solver.board.file import read_board
from luckbase.solver.board.toml_file import path_of
from luckbase.solver.errors import MissingTableError, OptionError


def pool_of(names: Sequence[str], results: Path, settings: Mapping[str, str]) -> TablePool:
    """The tables that are named, by directory, board file or folder; all under `results` if none
    is. Raises OptionError, BoardError, MissingTableError for what is not there."""
    if settings and not any(Path(name).is_file() for name in names):
        raise OptionError(f"--set: {next(iter(settings))} is of a board; name its file too")
    finders = [_finder(name, results, dict(settings)) for name in names] or [under(results)]
    pool = TablePool(finders)
    for name, finder in zip(names, finders, strict=False):
        if not finder():
            raise MissingTableError(f"{name}: no table there; luckbase solve makes one of a board")
    return pool


def _finder(name: str, results: Path, settings: dict[str, str]) -> Finder:
    path = path_of(name)
    if path.is_dir():
        return under(path)
    if not path.exists():
        raise OptionError(f"{name}: no such table, board file or folder")
    if settings:
        found = find_table(name, results, settings).path
        return under(found)
    board = read_board(path)
    return partial(tables_of, board, results)


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
        raise OptionError(f"--host: '{host[:60]}' is no address of this machine") from None
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
            said = f"--port: {port} is taken; another one, or --port 0 for any that is free"
            raise OptionError(said) from None
        raise OptionError(f"--host: {host[:60]}: {error.strerror}") from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The address of the page."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def hosts_of(host: str, listener: socket.socket) -> tuple[str, ...] | None:
    """The names by which the server may be called: the one that was asked for first, and this
    machine's own; None, any, where it listens at all addresses of the machine."""
    address = str(listener.getsockname()[0])
    if ip_address(address.partition("%")[0]).is_unspecified:
        return None
    names = {host.lower(): None, address.lower(): None, **dict.fromkeys(LOCAL)}
    return tuple(names)


class _Server(uvicorn.Server):
    """uvicorn's server, which ends on a signal as on its own, without raising it again."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        kept = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, before in kept.items():
                signal.signal(each, before)


MAX_CONNECTIONS = 2 * MAX_REQUESTS
"""Those that wait for nothing too; beyond that uvicorn refuses, in words of its own."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(pool: TablePool, listener: socket.socket, host: str, page: str | None) -> None:
    """Answer until Ctrl+C. page: an address to open in the browser."""
    hosts, pool.says_paths = hosts_of(host, listener), is_local(host)
    config = uvicorn.Config(
        make_app(pool, hosts, warm=True), log_level="warning", access_log=False,
        server_header=False, date_header=False, timeout_graceful_shutdown=3, ws="none",
        limit_concurrency=MAX_CONNECTIONS,
    )  # fmt: skip
    if page is not None and _has_browser():
        threading.Timer(0.3, webbrowser.open, [page]).start()
    with listener:
        _Server(config).run(sockets=[listener])


def _has_browser() -> bool:
    """Whether there is a screen for one; without it a browser would take over the terminal."""
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True
