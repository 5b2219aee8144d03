"""The web server: its addresses, and the number of concurrent queries.

Views only read tables. A query runs in one of a few threads, with exclusive use of an open table.
It first waits until few enough queries of the same table are running. Long queries have their own
threads, one query for each table. So neither many queries of one table nor long queries delay the
others.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from luckbase.jobs.web import charts, http, pages, play, states, tables
from luckbase.jobs.web.http import ApiRequest, QueryParams, TableParams
from luckbase.jobs.web.pages import Page
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.result import Result

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import StoredTable
    from luckbase.jobs.web.pool import TablePool

THREADS, LONG_THREADS = 4, 2
"""Number of queries answered at once, and of long queries in addition."""
OF_ONE_TABLE = 2
"""Number of queries of one table answered at once; only one long query."""
ZIPPED_BYTES, ZIP_LEVEL = 1000, 1
"""Minimum bytes of a compressed answer, and gzip's level: JSON shrinks to a fifth."""
LOCAL = ("127.0.0.1", "localhost", "::1")
log = logging.getLogger("luckbase.web")

# --- the addresses -----------------------------------------------------------------------------

Answer = Callable[["TablePool", ApiRequest[Any]], Result]


@dataclass(frozen=True)
class View:
    """An address with its parameters, the function that answers, and its page; without a page it
    returns only JSON. long: an answer may take long."""

    path: str
    params: type[QueryParams]
    answer: Answer
    page: Page | None = None
    long: bool = False


def of_table(question: Callable[[StoredTable, ApiRequest[Any]], Result]) -> Answer:
    """Return a function that answers a query of one table."""

    def answer(pool: TablePool, request: ApiRequest[TableParams]) -> Result:
        id, strict = request.path["id"], request.params.strict
        return pool.ask(id, lambda table: question(table, request), strict=strict)

    return answer


HOME, CHART = Page("home.html", more=pages.home), "chart.html"
AT = "/tables/{id}"
VIEWS = (
    View("/", QueryParams, tables.list_view, HOME),
    View("/tables", QueryParams, tables.list_view, HOME),
    View(AT, TableParams, tables.table_view, Page("table.html")),
    View(f"{AT}/state", states.DrawnParams, of_table(states.state_view),
         Page("state.html", pages.complete)),
    View(f"{AT}/chart/{{name}}", charts.ChartParams, of_table(charts.chart_view),
         Page(CHART, more=pages.draw)),
    View(f"{AT}/grid", charts.GridParams, of_table(charts.grid_view),
         Page(CHART, pages.with_axes, pages.draw)),
    View(f"{AT}/search/{{number}}", charts.SearchParams, of_table(charts.search_view),
         Page("search.html"), long=True),
    View(f"{AT}/train", play.TrainParams, of_table(play.train_view),
         Page("train.html", pages.with_seed)),
    View(f"{AT}/play", play.GameParams, of_table(play.game_view), Page("play.html")),
    View(f"{AT}/compare", states.CompareParams, states.compare_view,
         Page("compare.html", pages.with_second, pages.names)),
)  # fmt: skip


# --- the application ---------------------------------------------------------------------------


class Explorer:
    """The views of one server: its tables, and the threads that read them."""

    def __init__(self, tables: TablePool) -> None:
        self.tables = tables
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="luckbase-web")
        self.long_threads = ThreadPoolExecutor(LONG_THREADS, thread_name_prefix="luckbase-long")
        self._slots: dict[tuple[str, bool], asyncio.Semaphore] = {}

    async def in_thread(self, work: Callable[..., Any], *inputs: Any, long: bool = False) -> Any:
        """Return the result of a function, called in one of the threads."""
        executor = self.long_threads if long else self.threads
        return await asyncio.get_running_loop().run_in_executor(executor, work, *inputs)

    @asynccontextmanager
    async def slots(self, ids: Iterable[str], long: bool = False) -> AsyncIterator[None]:
        """Wait until one more query of each of these tables may run. All requests wait for tables
        in the same order, so deadlocks are impossible."""
        async with AsyncExitStack() as stack:
            for id in sorted(set(ids)):
                slot = asyncio.Semaphore(1 if long else OF_ONE_TABLE)
                await stack.enter_async_context(self._slots.setdefault((id, long), slot))
            yield

    async def warm_up(self) -> None:
        """Load the compiled code of each game before the first query needs it."""
        for id in await self.in_thread(self.tables.smallest):
            await self.in_thread(states.warm_up, self.tables, id, long=True)
        gc.freeze()  # the collector need not visit the loaded code again

    def close(self) -> None:
        """Wait for the threads, and close the tables."""
        self.threads.shutdown(cancel_futures=True)
        self.long_threads.shutdown(cancel_futures=True)
        self.tables.forget()

    def route(self, view: View) -> Route:
        """Return the route of a view."""

        async def answer(request: Request) -> Response:
            return await self.answer(view, request)

        return Route(view.path, answer, methods=["GET"])

    async def answer(self, view: View, request: Request) -> Response:
        """Return the response of a view. Raises LuckbaseError."""
        ids = [
            id for id in (request.path_params.get("id"), request.query_params.get("second")) if id
        ]
        for id in ids:
            await self.in_thread(self.tables.find, id)  # unknown tables get no slot

        try:
            return await self._answer(view, request, ids, view.long)
        except http.LongAnswer:
            return await self._answer(view, request, ids, True)

    async def _answer(self, view: View, request: Request, ids: list[str], long: bool) -> Response:
        """Return the response of a view, computed in a thread for long queries or for others."""

        def work() -> Response:
            if view.page is not None and http.wants_page(request):
                return view.page.respond(self.tables, request, view.params, view.answer, long)
            params = view.params.read(http.given(request, view.params.lists))
            asked = ApiRequest(params, request.path_params, long)
            return http.reply(view.answer(self.tables, asked).as_json())

        async with self.slots(ids, long):
            response: Response = await self.in_thread(work, long=long)
        return response


async def refused(request: Request, error: Exception) -> Response:
    """Return the response to one of our errors, or to an unknown address."""
    refusal = http.refusal_of(request, error)
    return pages.error_page(request, refusal) if http.wants_page(request) else refusal.reply()


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
        explorer.close()

    routes = [*map(explorer.route, VIEWS),
              Mount("/static", StaticFiles(directory=pages.STATIC))]  # fmt: skip
    names = ["*"] if hosts is None else [f"[{name}]" if ":" in name else name for name in hosts]
    handlers: Mapping[Any, Any] = {LuckbaseError: refused, HTTPException: refused}
    middleware = [
        Middleware(http.Guard),
        Middleware(GZipMiddleware, minimum_size=ZIPPED_BYTES, compresslevel=ZIP_LEVEL),
        Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False),
    ]
    return Starlette(
        routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan
    )


def hosts_of(host: str, listener: socket.socket) -> tuple[str, ...] | None:
    """Return the accepted host names: the given host and the names of this machine; None for any,
    if the server listens on all addresses."""
    address = str(listener.getsockname()[0])
    if ip_address(address.partition("%")[0]).is_unspecified:
        return None
    names = {host.lower(): None, address.lower(): None, **dict.fromkeys(LOCAL)}
    return tuple(names)
