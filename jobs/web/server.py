"""The web server: its addresses, and the limits of concurrent queries.

Views only read tables. A query runs in a thread, with exclusive use of an open table. It first
waits until few enough queries of the same table are running. Long queries have their own threads,
and each table answers its long queries in turn. So neither many queries of the same table nor long
queries delay the others.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from luckbase.jobs.web import http, pages, play, states
from luckbase.jobs.web.http import LongAnswer, Query, Refusal, View, ViewRequest
from luckbase.solver.errors import LuckbaseError

if TYPE_CHECKING:
    from luckbase.jobs.web.pool import TablePool

THREADS, LONG_THREADS = 4, 2
"""Threads for short queries, and for long queries."""
OF_ONE_TABLE = 2
"""Maximum of short queries of the same table at once. Long queries of a table follow each other."""
ZIPPED_BYTES, ZIP_LEVEL = 1000, 1
"""Minimum bytes of a compressed answer, and gzip's level: JSON shrinks to a fifth."""
LOCAL = ("127.0.0.1", "localhost", "::1")

# --- the addresses -----------------------------------------------------------------------------

AT = "/tables/{id}"
VIEWS = (
    View("/", states.list_view, "home.html", more=pages.home),
    View("/tables", states.list_view, "home.html", more=pages.home),
    View(AT, states.table_view, "table.html"),
    View(f"{AT}/state", states.state_view, "state.html", ("sentence",), takes_state=True),
    View(f"{AT}/chart/{{name}}", states.chart_view, "chart.html", takes_state=True,
         more=pages.draw),
    View(f"{AT}/grid", states.grid_view, "chart.html", ("x", "y", "colour"), takes_state=True,
         more=pages.draw),
    View(f"{AT}/search/{{number:int}}", states.search_view, "search.html", ("most",), long=True),
    View(f"{AT}/train", play.train_view, "train.html", ("difficulty", "seed"), takes_state=True),
    View(f"{AT}/play", play.game_view, "play.html",
         ("seed", "seat", "against", "move", "hints", "at"), takes_state=True),
    View(f"{AT}/compare", states.compare_view, "compare.html", ("second",), takes_state=True,
         more=pages.names),
)  # fmt: skip


# --- the application ---------------------------------------------------------------------------


class Explorer:
    """The views of a server: its tables, and the limits of threads that read them."""

    def __init__(self, tables: TablePool) -> None:
        self.tables = tables
        tables.listed()
        self._threads = {False: CapacityLimiter(THREADS), True: CapacityLimiter(LONG_THREADS)}
        self._of_table: dict[tuple[str | None, bool], CapacityLimiter] = {}

    def route(self, view: View) -> Route:
        """Return the route of a view."""

        async def answer(request: Request) -> Response:
            try:
                return await self._answer(view, request, view.long)
            except LongAnswer:
                return await self._answer(view, request, long=True)

        return Route(view.path, answer, methods=["GET"])

    async def _answer(self, view: View, request: Request, long: bool) -> Response:
        """Return the response of a view, computed in a thread."""
        id = request.path_params.get("id")
        key = id if self.tables.is_listed(id) else None, long  # unknown tables share a limiter
        of_table = CapacityLimiter(1 if long else OF_ONE_TABLE)
        async with self._of_table.setdefault(key, of_table):
            return await run_sync(
                self._answer_now, view, request, long, limiter=self._threads[long]
            )

    def _answer_now(self, view: View, request: Request, long: bool) -> Response:
        view_request = ViewRequest(self.tables, request.path_params, long)
        try:
            with view_request:
                if wants_page(request):
                    return pages.respond(view, view_request, request)
                view_request.query = Query(request.query_params.multi_items(), view)
                return http.reply(view.answer(view_request).as_json())
        except LuckbaseError as error:
            return refused(request, view_request.refusal(error))

    async def warm_up(self) -> None:
        """Load the compiled code of each game before the first query needs it."""
        for id in await run_sync(self.tables.smallest):
            await run_sync(states.warm_up, self.tables, id, limiter=self._threads[True])
        gc.freeze()  # the collector need not visit the loaded code again


def wants_page(request: Request) -> bool:
    """True if the client is a browser that displays HTML; others get JSON."""
    return "text/html" in request.headers.get("accept", "")


def refused(request: Request, refusal: Refusal) -> Response:
    """Return the response to a refused request."""
    return pages.error_page(request, refusal) if wants_page(request) else refusal.reply()


async def on_error(request: Request, error: Any) -> Response:
    """Return the response for an unknown address or method."""
    path = request.url.path[:80]
    sentences = {
        404: f"{path}: there is nothing at this address; GET /tables lists the tables",
        405: f"{path}: does not take {request.method}; expected GET",
    }
    status = error.status_code
    return refused(request, Refusal(status, sentences.get(status, str(error.detail))))


def make_app(
    tables: TablePool, hosts: tuple[str, ...] | None = LOCAL, warm: bool = False
) -> Starlette:
    """Return the application.

    hosts: host names accepted in requests; None for any. This protects against foreign pages whose
        host name leads to this machine.
    warm: load the compiled code of each game at the start.
    """
    explorer = Explorer(tables)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(explorer.warm_up()) if warm else None
        yield
        if warming is not None:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
        tables.forget()

    drawings: Any = [("luckbase.cluster.answers", "static")]
    static = StaticFiles(directory=pages.STATIC, packages=drawings)
    routes = [*map(explorer.route, VIEWS), Mount("/static", static)]
    names = ["*"] if hosts is None else [f"[{name}]" if ":" in name else name for name in hosts]
    middleware = [
        Middleware(http.Guard),
        Middleware(GZipMiddleware, minimum_size=ZIPPED_BYTES, compresslevel=ZIP_LEVEL),
        Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False),
    ]
    return Starlette(
        routes=routes, middleware=middleware, exception_handlers={HTTPException: on_error},
        lifespan=lifespan,
    )  # fmt: skip
