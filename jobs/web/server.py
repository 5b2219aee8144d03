"""The web server: its addresses, and its responses.

Views only read tables. A query runs in a thread, with exclusive use of an open table. It first
waits until few enough queries of the same table are running, so that queries that arrive together
do not each open it. Long queries, which search, have their own threads, and each table answers its
long queries in turn. So neither many queries of the same table nor long queries delay the others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from pydantic_core import PydanticSerializationError, to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from luckbase.jobs.web import pages, views
from luckbase.jobs.web.pool import LongAnswer, Query, Refusal, TablePool, View, ViewRequest
from luckbase.solver.errors import LuckbaseError

THREADS, LONG_THREADS = 4, 2
"""Threads for short queries, and for long queries."""
OF_ONE_TABLE = 2
"""Maximum of short queries of the same table at once. Long queries of a table follow each other."""
ZIPPED_BYTES, ZIP_LEVEL = 1000, 1
"""Minimum bytes of a compressed answer, and gzip's level: JSON shrinks to a fifth."""
LOCAL = ("127.0.0.1", "localhost", "::1")
log = logging.getLogger("luckbase.web")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Sent with every response (`serve.config_of`): only this server's script and style are loaded, and
no other page can frame ours."""
API_HEADERS = {"cache-control": "no-store", "vary": "accept"}
BUG = "this is an error in luckbase, not yours; the server has printed more"


# --- the addresses -----------------------------------------------------------------------------

AT = "/tables/{id}"
VIEWS = (
    View("/", views.list_view, "home.html", more=views.home),
    View("/tables", views.list_view, "home.html", more=views.home),
    View(AT, views.table_view, "table.html"),
    View(f"{AT}/state", views.state_view, "state.html", ("sentence",), takes_state=True),
    View(f"{AT}/chart/{{name}}", views.chart_view, "chart.html", takes_state=True,
         more=views.draw),
    View(f"{AT}/grid", views.grid_view, "chart.html", ("x", "y", "colour"), takes_state=True,
         more=views.draw),
    View(f"{AT}/search/{{number:int}}", views.search_view, "search.html", ("most",), long=True),
    View(f"{AT}/train", views.train_view, "train.html", ("difficulty", "seed"), takes_state=True),
    View(f"{AT}/play", views.game_view, "play.html",
         ("seed", "seat", "against", "move", "hints", "at"), takes_state=True),
    View(f"{AT}/compare", views.compare_view, "compare.html", ("second",), takes_state=True,
         more=views.others),
)  # fmt: skip


# --- responses -----------------------------------------------------------------------------------


def reply(content: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON response. Surrogates, which file names may contain, become ``\\udcff``."""
    try:
        body = to_json(content, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeError):
        body = json.dumps(content).encode()
    return Response(body, status, API_HEADERS, "application/json")


def refusal_json(refusal: Refusal) -> Response:
    """Return a refusal as JSON."""
    field = {} if refusal.field is None else {"field": refusal.field}
    return reply({"error": refusal.error, **field}, refusal.status)


def refused(request: Request, refusal: Refusal) -> Response:
    """Return the response to a refused request."""
    if not wants_page(request):
        return refusal_json(refusal)
    return HTMLResponse(pages.error_page(_depth(request), refusal), refusal.status)


def wants_page(request: Request) -> bool:
    """True if the client is a browser that displays HTML; others get JSON."""
    return "text/html" in request.headers.get("accept", "")


def _depth(request: Request) -> int:
    """Return the depth of an address below the home page."""
    path, root = request.scope["raw_path"], request.scope.get("root_path", "")
    return int(path.count(b"/") - root.count("/") - 1)


# --- the application ---------------------------------------------------------------------------


class Explorer:
    """The limits of threads that read the tables of a server."""

    def __init__(self, tables: TablePool) -> None:
        self.tables = tables
        self._threads = {False: CapacityLimiter(THREADS), True: CapacityLimiter(LONG_THREADS)}
        self._of_table = WeakValueDictionary[tuple[str | None, bool], CapacityLimiter]()

    def route(self, view: View) -> Route:
        """Return the route of a view."""

        async def answer(request: Request) -> Response:
            try:
                return await self._answer(view, request, view.long)
            except LongAnswer:
                return await self._answer(view, request, long=True)

        return Route(view.path, answer, methods=["GET"])

    async def _answer(self, view: View, request: Request, long: bool) -> Response:
        key = request.path_params.get("id"), long
        of_table = CapacityLimiter(1 if long else OF_ONE_TABLE)
        async with self._of_table.setdefault(key, of_table):
            threads = self._threads[long]
            return await run_sync(self._answer_now, view, request, long, limiter=threads)

    def _answer_now(self, view: View, request: Request, long: bool) -> Response:
        view_request = ViewRequest(self.tables, request.path_params, long)
        given = request.query_params.multi_items()
        try:
            with view_request:
                if wants_page(request):
                    status, page = pages.page(view, view_request, given, _depth(request))
                    redirects = status == 303
                    return (RedirectResponse if redirects else HTMLResponse)(page, status)
                view_request.query = Query(given, view)
                return reply(view.answer(view_request).as_json())
        except LuckbaseError as error:
            return refused(request, view_request.refusal(error))
        except LongAnswer:
            raise
        except Exception as error:
            log.error("%s %s", request.method, request.url.path, exc_info=error)
            return refusal_json(Refusal(500, BUG))


async def on_error(request: Request, error: Any) -> Response:
    """Return the response for an unknown address or method."""
    path = request.url.path[:80]
    sentences = {
        404: f"{path}: there is nothing at this address; GET /tables lists the tables",
        405: f"{path}: does not take {request.method}; expected GET",
    }
    status = error.status_code
    return refused(request, Refusal(status, sentences.get(status, str(error.detail))))


def make_app(tables: TablePool, hosts: tuple[str, ...] | None = LOCAL) -> Starlette:
    """Return the application.

    hosts: host names accepted in requests; None for any. This protects against foreign pages whose
        host name leads to this machine.
    """
    drawings: Any = [("luckbase.solver", "static")]
    static = StaticFiles(directory=pages.STATIC, packages=drawings)
    routes = [*map(Explorer(tables).route, VIEWS), Mount("/static", static)]
    names = ["*"] if hosts is None else [f"[{name}]" if ":" in name else name for name in hosts]
    middleware = [
        Middleware(GZipMiddleware, minimum_size=ZIPPED_BYTES, compresslevel=ZIP_LEVEL),
        Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False),
    ]
    handlers = {HTTPException: on_error}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
