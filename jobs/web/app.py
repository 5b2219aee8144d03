"""What is answered at which address. Nothing is written; every answer comes from an open table.

A question of a table is answered in one of a few threads, each with an opened table to itself, so
that a long one does not hold up the others. Every error of ours is a sentence with its status
(`replies.STATUS`); whatever else goes wrong is a bug: a plain sentence, and the rest in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from luckbase.jobs.web import replies
from luckbase.jobs.web.asked import Asked
from luckbase.jobs.web.pages import page_of, static_files
from luckbase.jobs.web.shelf import Shelf
from luckbase.jobs.web.views import VIEWS, View, listing, warm_up
from luckbase.solver.errors import LuckbaseError

THREADS = 4
"""Questions that are answered at once."""
LOCAL = ("127.0.0.1", "localhost", "::1")
BUG = "this is a mistake of luckbase's, not yours; what the server printed says more"
log = logging.getLogger("luckbase.web")

Answerer = Callable[[], bytes]


class Explorer:
    """The answers of one server: the shelf, and the threads that ask its tables."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="luckbase-web")

    async def in_thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """What a function gives, in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work, *given)

    def close(self) -> None:
        """Wait for the threads, and close the tables."""
        self.threads.shutdown(cancel_futures=True)
        self.shelf.close()

    # --- addresses -----------------------------------------------------------------------------

    async def tables(self, request: Request) -> Response:
        """Every table that there is."""
        Asked(request.query_params.multi_items()).nothing_else(())
        said = await self.in_thread(listing, self.shelf)
        return replies.reply(request, replies.as_json(said))

    def of_table(self, view: View) -> Callable[[Request], Awaitable[Response]]:
        """The address of one view of one table."""

        async def answer(request: Request) -> Response:
            asked = Asked(request.query_params.multi_items())
            body = await body_of(request, view.most_bytes) if view.most_bytes else b""
            path = request.path_params
            given = (self.shelf, path, asked, request.headers.get("content-type", ""), body)
            kind, content = await self.in_thread(view.answer, *given)
            return replies.reply(request, content, kind)

        return answer


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request. Raises OptionError for one of more bytes than that."""
    from luckbase.solver.errors import OptionError

    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most:
            raise OptionError(f"body: has more than {most:,} bytes; send it in several requests")
    return bytes(found)


def make_app(shelf: Shelf, hosts: tuple[str, ...] | None = LOCAL, warm: bool = False) -> Starlette:
    """The application. hosts: the names by which the server may be called, None for any: a page
    elsewhere that has its own name lead to this machine is refused. warm: load at the start what is
    compiled of each game."""
    explorer = Explorer(shelf)
    routes = [Route("/api/tables", explorer.tables, methods=["GET"])]
    for view in VIEWS:
        routes.append(Route(view.path, explorer.of_table(view), methods=[view.method]))
    routes += [
        Route("/openapi.json", _openapi),
        Route("/", page_of("index.html")),
        *static_files(),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if warm:
            explorer.threads.submit(warm_up, shelf)
        yield
        explorer.close()

    handlers: Mapping[Any, Any] = {LuckbaseError: _refused, HTTPException: _no_such}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.add_middleware(Guard, hosts=hosts)
    return app


async def _openapi(request: Request) -> Response:
    from luckbase.jobs.web.openapi import described

    return replies.reply(request, replies.as_json(described()))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, LuckbaseError)
    fields = getattr(error, "fields", ())
    return replies.refused(request, error, fields)


async def _no_such(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:80]
    said = {
        404: f"{path}: there is nothing at this address; /openapi.json says what there is",
        405: f"{path}: does not take {request.method}; /openapi.json says what it takes",
    }.get(error.status_code, str(error.detail))
    return replies.refusal(request, error.status_code, said)


class Guard:
    """Stands before the application: refuses requests that call the server by a name that is not
    one of `hosts` (None: any), and makes a sentence of what goes wrong unforeseen."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] | None) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request = Request(scope)
        name = request.headers.get("host", "")
        if self.hosts is not None and host_of(name) not in self.hosts:
            said = f"host: '{name[:60]}' is not a name of this server; it is {self.hosts[0]}"
            return await replies.refusal(request, 400, said)(scope, receive, send)
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            log.error("%s %s", request.method, request.url.path, exc_info=error)
            await replies.refusal(request, 500, BUG)(scope, receive, send)


def host_of(header: str) -> str:
    """The name in a Host header, without the port: ``[::1]:8000`` is ``::1``."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
