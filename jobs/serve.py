"""``luckbase serve``: show tables in a browser and return them as JSON, until Ctrl+C."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from luckbase.jobs import app, terminal
from luckbase.solver import sentences
from luckbase.solver.errors import MissingTableError, OptionError, need
from luckbase.solver.sentences import Help

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

    from luckbase.jobs.web.pool import Finder, TablePool

WAITING = 128
"""Number of connections that may wait to be accepted."""
MAX_PORT = 65_535
CONNECTIONS = 2_000
"""Number of open connections and running requests; further requests get 503."""


@app.command("luckbase serve", "luckbase serve pig/race --port 8000 --no-open")
def serve(
    tables: Annotated[
        list[str] | None,
        app.Argument(
            "Tables' folders, board files, folders of tables (default: all results).",
            "[TABLE|BOARD|FOLDER...]",
        ),
    ] = None,
    port: Annotated[int, Help("Port; 0 for any free port.", "N", 0)] = 8714,
    no_open: Annotated[bool, Help("Do not open the browser.")] = False,
    host: Annotated[
        str, Help("Listen at this address of the machine, so that other machines can connect.", "H")
    ] = "127.0.0.1",
    settings: app.Settings = None,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> None:
    """Explore tables in a browser, or query them over HTTP as JSON.

    It writes no files. Only this machine can connect, unless you give --host. Press Ctrl+C to end
    it."""
    if port > MAX_PORT:
        raise OptionError(f"--port: {port} is too large; expected at most {MAX_PORT}")
    need("serve", "jinja2", "starlette", "uvicorn", "vl_convert", extra="web")
    pool = pool_of(tables or [], results, app.read_settings(settings))
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
    run(pool, listener, host, None if no_open else address)


def pool_of(names: Sequence[str], results: Path, settings: Mapping[str, str]) -> TablePool:
    """Return the named tables, by folder, board file or folder of tables; without names, all under
    `results`. Raises OptionError, BoardError, or MissingTableError for a name without a table."""
    from luckbase.cluster.answers.find import find_table, tables_below, tables_of
    from luckbase.cluster.store.storage import place_of
    from luckbase.jobs.web.pool import TablePool
    from luckbase.solver.board.file import read_board, suggestion

    if settings and not any(place_of(name).is_file() for name in names):
        raise OptionError(f"--set: {next(iter(settings))} is an option of a board; name a board")
    finders: list[Finder] = []
    for name in names:
        path = place_of(name)
        if path.is_dir():
            finders.append(partial(tables_below, path))
        elif not path.exists():
            raise OptionError(f"{name}: no such table, board file or folder{suggestion(path)}")
        elif settings:
            location = find_table(name, results, dict(settings))
            finders.append(partial(tables_below, location))
        else:
            finders.append(partial(tables_of, read_board(path), results))
    for name, finder in zip(names, finders, strict=True):
        if not finder():
            raise MissingTableError(f"{name}: no table; run luckbase solve first")
    return TablePool(finders or [partial(tables_below, results)])


def is_local(host: str) -> bool:
    """True if only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises OptionError if the port is taken or the host is not an
    address of this machine."""
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
        listener.listen(WAITING)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            why = f"--port: {port} is in use; choose another port, or --port 0 for any free port"
        elif isinstance(error, PermissionError):
            why = f"--port: {port} is reserved; expected at least 1024"
        else:
            why = f"--host: {host[:60]}: {error.strerror}"
        raise OptionError(why) from None
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def hosts_of(host: str, listener: socket.socket) -> tuple[str, ...] | None:
    """Return the accepted host names: the given host and the names of this machine; None for any,
    if the server listens on all addresses."""
    from luckbase.jobs.web.server import LOCAL

    address = str(listener.getsockname()[0])
    if ip_address(address.partition("%")[0]).is_unspecified:
        return None
    return tuple(dict.fromkeys([host.lower(), address.lower(), *LOCAL]))


def run(pool: TablePool, listener: socket.socket, host: str, page: str | None) -> None:
    """Serve until Ctrl+C. page: a URL to open in the browser."""
    import uvicorn

    from luckbase.jobs.web.server import make_app

    app = make_app(pool, hosts_of(host, listener))
    server = uvicorn.Server(config_of(app))
    # On Linux without a display, a browser would take over the terminal.
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if page is not None and (screen or not sys.platform.startswith("linux")):
        threading.Timer(0.3, webbrowser.open, [page]).start()
    answer(server, listener)
    pool.forget()


def config_of(application: Starlette) -> uvicorn.Config:
    """Return uvicorn's configuration. It bounds memory: at most `CONNECTIONS` connections, each
    with at most 64 KB of a request."""
    import uvicorn

    from luckbase.jobs.web.server import HEADERS

    return uvicorn.Config(
        application, http="h11", ws="none", log_level="warning", access_log=False,
        server_header=False, date_header=False, proxy_headers=False, timeout_graceful_shutdown=3,
        timeout_keep_alive=5, backlog=WAITING, limit_concurrency=CONNECTIONS,
        headers=list(HEADERS.items()),
    )  # fmt: skip


def answer(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve until a signal arrives."""
    if callable(signal.getsignal(signal.SIGHUP)):  # ours; it would print a traceback
        signal.signal(signal.SIGHUP, server.handle_exit)  # as uvicorn does for SIGTERM
    try:
        with listener:
            server.run(sockets=[listener])
    except KeyboardInterrupt:
        if not server.should_exit:  # otherwise uvicorn reraises the signal that ended it
            raise
