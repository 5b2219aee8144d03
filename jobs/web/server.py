"""The process that listens, until Ctrl+C, and what it answers at which address.

Nothing is written; every answer comes from an open table.

A question is answered, and its answer compressed, in one of a few threads, with an opened table to
itself. It waits until few enough others ask that table before it gets a thread, and batches have
threads of their own, one batch a table: so neither many questions of one table nor long batches
hold up the others. Every error of ours is a sentence with its status (`jobs.web.http.STATUS`);
whatever else goes wrong is a bug: a plain sentence, and the rest in the log.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from luckbase.cluster.table.find import find_table, tables_below, tables_of
from luckbase.jobs.web import http, states
from luckbase.jobs.web.pool import Finder, TablePool
from luckbase.jobs.web.views import VIEWS, View, described, ids_in
from luckbase.solver.board.file import path_of, read_board
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError

THREADS, BATCHES = 4, 2
"""Questions that are answered at once, and batches beside them."""
OF_ONE_TABLE = 2
"""Questions of one table that are; batches: one."""
MAX_REQUESTS = 200
"""Requests that are being answered, or wait for that."""
MAX_CONNECTIONS = 2 * MAX_REQUESTS
"""Those that wait for nothing too; beyond that uvicorn refuses, in words of its own."""
LOCAL = ("127.0.0.1", "localhost", "::1")
BUG = "this is a mistake of luckbase's, not yours; what the server printed says more"
log = logging.getLogger("luckbase.web")


class Explorer:
    """The answers of one server: the tables, and the threads that ask them."""

    def __init__(self, tables: TablePool) -> None:
        self.tables = tables
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="luckbase-web")
        self.batches = ThreadPoolExecutor(BATCHES, thread_name_prefix="luckbase-batch")
        self.bodies = http.Bodies()
        self._slots: dict[tuple[str, bool], asyncio.Semaphore] = {}

    async def in_thread(self, work: Callable[..., Any], *inputs: Any, long: bool = False) -> Any:
        """What a function gives, in one of the threads."""
        executor = self.batches if long else self.threads
        return await asyncio.get_running_loop().run_in_executor(executor, work, *inputs)

    @asynccontextmanager
    async def slots(self, ids: Iterable[str], long: bool = False) -> AsyncIterator[None]:
        """Wait until each of these tables, which are there, may be asked one more question. The
        order is the same for all, so nobody waits for ever."""
        async with AsyncExitStack() as stack:
            for id in sorted(set(ids)):
                slot = asyncio.Semaphore(1 if long else OF_ONE_TABLE)
                await stack.enter_async_context(self._slots.setdefault((id, long), slot))
            yield

    async def warm_up(self) -> None:
        """Load what is compiled of each game before anybody waits for that."""
        for id in await self.in_thread(self.tables.smallest):
            await self.in_thread(states.warm_up, self.tables, id, long=True)

    def close(self) -> None:
        """Wait for the threads, and close the tables."""
        self.threads.shutdown(cancel_futures=True)
        self.batches.shutdown(cancel_futures=True)
        self.tables.forget()

    def route(self, view: View) -> Route:
        """The address of a view, and what answers there."""

        async def answer(request: Request) -> Response:
            pairs = http.read_pairs(request.query_params.multi_items())
            kind, path = request.headers.get("content-type", ""), request.path_params
            ids = ids_in(path, pairs)
            for id in ids:
                await self.in_thread(self.tables.find, id)

            def work(body: bytes) -> Response:
                asked = http.ApiRequest(view.params.read(pairs), path, kind, body)
                made = view.answer(self.tables, asked)
                if isinstance(made, states.Rows):
                    return http.reply(request, made.content, made.kind)
                return http.reply(request, http.encode(made.as_json()))

            read = self.bodies.read(request, view.max_bytes, view.check_body)
            async with read as body, self.slots(ids, view.long):
                reply: Response = await self.in_thread(work, body, long=view.long)
                return reply

        return Route(view.path, answer, methods=[view.method])


def make_app(
    tables: TablePool, hosts: tuple[str, ...] | None = LOCAL, warm: bool = False
) -> Starlette:
    """The application. hosts: the names by which the server may be called, None for any: a page
    elsewhere that has its own name lead to this machine is refused. warm: load at the start what is
    compiled of each game."""
    explorer = Explorer(tables)

    async def openapi(request: Request) -> Response:
        return http.reply(request, http.encode(described()))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(explorer.warm_up()) if warm else None
        yield
        if warming is not None:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
        explorer.close()

    routes = [*map(explorer.route, VIEWS), Route("/openapi.json", openapi), *http.page_files()]
    handlers: Mapping[Any, Any] = {LuckbaseError: http.refused, HTTPException: http.no_such}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.add_middleware(Guard, hosts=hosts)
    return app


class Guard:
    """Stands before the application: refuses requests that call the server by a name that is not
    one of `hosts` (None: any), and work that another page sends; makes a sentence of what goes
    wrong unforeseen."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] | None) -> None:
        self.app, self.hosts = app, hosts
        self.at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request = Request(scope)
        name = request.headers.get("host", "")
        if self.hosts is not None and host_of(name) not in self.hosts:
            said = f"host: '{name[:60]}' is not a name of this server; it is {self.hosts[0]}"
            return await http.refusal(request, 400, said)(scope, receive, send)
        if request.method not in ("GET", "HEAD") and from_elsewhere(request.headers):
            said = f"origin: {request.method} is for this server's own page and for programs"
            return await http.refusal(request, 403, said)(scope, receive, send)
        if self.at_once >= MAX_REQUESTS:
            said = f"{MAX_REQUESTS} requests are being answered already; ask again in a moment"
            return await http.refusal(request, 503, said)(scope, receive, send)
        self.at_once += 1
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            log.error("%s %s", request.method, request.url.path, exc_info=error)
            await http.refusal(request, 500, BUG)(scope, receive, send)
        finally:
            self.at_once -= 1


def host_of(header: str) -> str:
    """The name in a Host header, without the port: ``[::1]:8000`` is ``::1``."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of another server sends a request. A program says nothing
    of that."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site not in ("same-origin", "none")
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()


# --- the process -------------------------------------------------------------------------------


def pool_of(names: Sequence[str], results: Path, settings: Mapping[str, str]) -> TablePool:
    """The tables that are named, by directory, board file or folder; all under `results` if none
    is. Raises OptionError, BoardError, MissingTableError for what is not there."""
    if settings and not any(Path(name).is_file() for name in names):
        raise OptionError(f"--set: {next(iter(settings))} is of a board; name its file too")
    finders: list[Finder] = []
    for name in names:
        path = path_of(name)
        if path.is_dir():
            finders.append(partial(tables_below, path))
        elif not path.exists():
            raise OptionError(f"{name}: no such table, board file or folder")
        elif settings:
            found = find_table(name, results, dict(settings))
            finders.append(partial(tables_below, found.path))
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


def run(pool: TablePool, listener: socket.socket, host: str, page: str | None) -> None:
    """Answer until Ctrl+C. page: an address to open in the browser."""
    hosts, pool.says_paths = hosts_of(host, listener), is_local(host)
    config = uvicorn.Config(
        make_app(pool, hosts, warm=True), log_level="warning", access_log=False,
        server_header=False, date_header=False, timeout_graceful_shutdown=3, ws="none",
        limit_concurrency=MAX_CONNECTIONS,
    )  # fmt: skip
    # On Linux, where there is no screen for one, a browser would take over the terminal.
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if page is not None and (screen or not sys.platform.startswith("linux")):
        threading.Timer(0.3, webbrowser.open, [page]).start()
    server = uvicorn.Server(config)
    try:
        with listener:
            server.run(sockets=[listener])
    except KeyboardInterrupt:
        if not server.should_exit:  # else it has ended, and raises once more what ended it
            raise
