"""What the explorer answers at which address, and the description of that, OpenAPI 3.1, made of the
classes of parameters and answers.

Nothing is written; every answer comes from an open table.

A question is answered, and its answer compressed, in one of a few threads, with an opened table to
itself. It waits until few enough others ask that table before it gets a thread, and batches have
threads of their own, one batch a table: so neither many questions of one table nor long batches
hold up the others. Every error of ours is a sentence with its status (`jobs.web.http.STATUS`);
whatever else goes wrong is a bug: a plain sentence, and the rest in the log.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from luckbase.jobs.web import filter, http, play, states, tables
from luckbase.jobs.web.http import ApiRequest, QueryParams, TableParams
from luckbase.jobs.web.states import Rows
from luckbase.jobs.web.tables import field_texts
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.result import IfAny, Result, adapter

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable
    from luckbase.jobs.web.pool import TablePool

THREADS, BATCHES = 4, 2
"""Questions that are answered at once, and batches beside them."""
OF_ONE_TABLE = 2
"""Questions of one table that are; batches: one."""
TOGETHER = 32
"""Questions that are answered together: some 20 ms of them."""
LINGER_SECONDS = 0.002
"""How long questions wait for others, at most, where more were answered together just before:
sixteen together take half the processor time of as many one by one."""
MAX_REQUESTS = 200
"""Requests that are being answered, or wait for that."""
CACHED_BYTES = 64 << 20
"""Of answers that are remembered as they were sent."""
FOR_EVER = "max-age=31536000, immutable"
LOCAL = ("127.0.0.1", "localhost", "::1")
BUG = "this is an error in luckbase, not yours; the server has printed more"
log = logging.getLogger("luckbase.web")

# --- the addresses -----------------------------------------------------------------------------

Answer = Callable[["TablePool", ApiRequest[Any]], Result | Rows]
OfMany = Callable[["StoredTable", Sequence[ApiRequest[Any]]], Sequence[Result | None]]


@dataclass(frozen=True)
class View:
    """An address of the API. summary, about: what it gives, in words."""

    path: str
    summary: str
    params: type[QueryParams]
    answer: Answer
    gives: Any = None
    """The class of the answer; None where it is rows."""
    about: str = ""
    method: str = "GET"
    takes: Any = None
    """The class of the body; None where that is rows."""
    max_bytes: int = 0
    """How large a body it takes; 0: none."""
    check_body: Callable[[str, bytes], object] = lambda kind, first: None
    """Raises what is wrong with a body by its type and its first bytes."""
    long: bool = False
    """Whether an answer may take long."""
    lasts: bool = False
    """Whether it is the same for as long as the tables are."""
    of_many: OfMany | None = None
    """Answers several requests of one table at once; None for those that it leaves alone."""


def of_table(question: Callable[[StoredTable, ApiRequest[Any]], Result | Rows]) -> Answer:
    """What answers by one table."""

    def answer(pool: TablePool, request: ApiRequest[TableParams]) -> Result | Rows:
        id, strict = request.path["id"], request.params.strict
        return pool.ask(id, lambda table: question(table, request), strict=strict)

    return answer


AT = "/api/tables/{id}"
FIELDS = "The fields of a state, as /api/tables/{id} lists them, are parameters too."
VIEWS = (
    View(
        "/api/tables", "The tables that are served.", QueryParams,
        tables.list_view, tables.TableList,
    ),
    View(
        AT, "One table, its game and its fields.", TableParams,
        tables.table_view, tables.TableInfo,
    ),
    View(
        f"{AT}/state", "A state: payoffs, actions, outcomes.", states.DrawnParams,
        of_table(states.state_view), states.StateView, FIELDS, lasts=True,
        of_many=states.state_views,
    ),
    View(
        f"{AT}/mainline", "The best action and the likeliest outcome, to the end.",
        states.LineParams, of_table(states.main_line), states.MainLine,
        f"{FIELDS} Of equally likely outcomes the middle one for who acts.", lasts=True,
    ),
    View(
        f"{AT}/chart/{{name}}", "A chart of the game; fields choose its lines.",
        states.ChartParams, of_table(states.chart_view), states.ChartView, FIELDS, lasts=True,
    ),
    View(
        f"{AT}/grid", "Payoffs, margins or best actions over two columns.", states.GridParams,
        of_table(states.grid_view), states.GridView,
        f"{FIELDS} COLUMN_from, COLUMN_to, COLUMN_step bound an axis; at most 40,000 cells.",
        lasts=True,
    ),
    View(
        f"{AT}/columns", "What rows can be filtered by, and searches to begin with.", TableParams,
        of_table(filter.columns_view), filter.FilterInfo, lasts=True,
    ),
    View(
        f"{AT}/filter", "The rows that meet conditions: the first ones, and how many there are.",
        filter.FilterParams, of_table(filter.filter_view), filter.FilterView,
        f"After {filter.SECONDS:g} s it says what was found by then.", long=True,
    ),
    View(
        f"{AT}/batch", "Many states at once, as luckbase query --batch.", states.BatchParams,
        of_table(states.batch_view),
        about="JSON lines, CSV or Parquet in, the same out, with payoff_1, …; at most 1,000,000 "
        "rows.",
        method="POST", max_bytes=states.MAX_BYTES, check_body=states.format_of, long=True,
    ),
    View(
        f"{AT}/train", "A decision to train with, and what each choice costs.", play.TrainParams,
        of_table(play.train_view), play.TrainView, lasts=True,
    ),
    View(
        f"{AT}/play", "A person's game, played from its seed and moves.", TableParams,
        of_table(play.game_view), play.GameView,
        method="POST", takes=play.GameRequest, max_bytes=play.MAX_BYTES,
    ),
    View(
        "/api/compare", "One state in two tables.", states.CompareParams,
        states.compare_view, states.CompareView, FIELDS, lasts=True,
    ),
)  # fmt: skip


# --- the application ---------------------------------------------------------------------------


@dataclass
class Waiting:
    """A request to the table of an id that waits to be answered with others. sent: makes a response
    of its answer, in a thread; reply: comes to have that, None where it is to be asked alone."""

    id: str
    asked: ApiRequest[Any]
    sent: Callable[[Any], Response]
    reply: asyncio.Future[Response | None] = field(init=False)


class Explorer:
    """The answers of one server: the tables, and the threads that ask them. processes: so many
    answer at the same address, each with its share of what all may have."""

    def __init__(self, tables: TablePool, processes: int = 1) -> None:
        self.tables = tables
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="luckbase-web")
        self.batches = ThreadPoolExecutor(BATCHES, thread_name_prefix="luckbase-batch")
        self.bodies, self.cache = (
            http.Bodies(processes),
            http.AnswerCache(CACHED_BYTES // processes),
        )
        self._slots: dict[tuple[str, bool], asyncio.Semaphore] = {}
        self._waiting: dict[tuple[str, str, bool], list[Waiting]] = {}
        """Of views that answer several requests at once: those that wait, by view and table."""
        self._together: dict[tuple[str, str, bool], int] = {}
        """How many were answered together last."""
        self._enough: dict[tuple[str, str, bool], asyncio.Event] = {}
        """Set where as many wait as that."""
        self._tasks = set[asyncio.Task[None]]()
        self._versions: dict[str, str | None] = {}
        """Of tables, as they are in this turn of the loop."""

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

    async def with_others(self, view: View, mine: Waiting) -> Response | None:
        """The answer to a request, worked out with others of the view and the table that came while
        the ones before were; None where it has to be asked alone."""
        key = view.path, mine.id, mine.asked.params.strict
        mine.reply = asyncio.get_running_loop().create_future()
        if key in self._waiting:
            self._waiting[key].append(mine)
            if len(self._waiting[key]) >= self._together.get(key, 1):
                self._enough[key].set()
        else:
            self._waiting[key], self._enough[key] = [mine], asyncio.Event()
            task = asyncio.create_task(self._answer_waiting(view, key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await mine.reply

    async def _answer_waiting(self, view: View, key: tuple[str, str, bool]) -> None:
        waiting = self._waiting[key]
        try:
            while waiting:
                if len(waiting) < self._together.get(key, 1):  # who was answered asks again soon
                    self._enough[key].clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._enough[key].wait(), LINGER_SECONDS)
                async with self.slots([key[1]]):
                    together = waiting[:TOGETHER]
                    replies = await self.in_thread(self._answers, view, key, together)
                del waiting[: len(together)]
                self._together[key] = len(together)
                for mine, reply in zip(together, replies, strict=True):
                    if isinstance(reply, Exception):
                        mine.reply.set_exception(reply)
                    else:
                        mine.reply.set_result(reply)
        finally:
            self._enough.pop(key)
            for mine in self._waiting.pop(key):
                mine.reply.cancel()

    def _answers(
        self, view: View, key: tuple[str, str, bool], together: Sequence[Waiting]
    ) -> Sequence[Response | Exception | None]:
        assert view.of_many is not None
        asked, of_many = [mine.asked for mine in together], view.of_many
        try:
            made = self.tables.ask(key[1], lambda t: of_many(t, asked), strict=key[2])
            return [
                None if each is None else mine.sent(each)
                for mine, each in zip(together, made, strict=True)
            ]
        except Exception as error:  # of one of several: alone each is told its own
            return [error] if len(together) == 1 else [None] * len(together)

    async def warm_up(self) -> None:
        """Load what is compiled of each game before anybody waits for that."""
        for id in await self.in_thread(self.tables.smallest):
            await self.in_thread(states.warm_up, self.tables, id, long=True)
        gc.freeze()  # what is loaded by now stays: it is not gone through again and again

    def close(self) -> None:
        """Wait for the threads, and close the tables."""
        self.threads.shutdown(cancel_futures=True)
        self.batches.shutdown(cancel_futures=True)
        self.tables.forget()

    async def version(self, id: str) -> str | None:
        """The version of a table, if it has one; looked up once for all requests that are taken up
        in one turn of the loop: they came before. Raises MissingTableError."""
        if id not in self._versions:
            entry = self.tables.known(id) or await self.in_thread(self.tables.find, id)
            self._versions[id] = self.tables.version(entry)
            asyncio.get_running_loop().call_soon(self._versions.pop, id, None)
        return self._versions[id]

    def tag(
        self, request: Request, versions: Sequence[str | None], pairs: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        """The ETag of what tables at these versions say, and the headers that say how long; ""
        where one has none."""
        known = [version for version in versions if version]
        if len(known) < len(versions) or not versions:
            return "", {}
        tag, named = http.tag_of(request, known), known == [pairs.get("version")]
        lasts = FOR_EVER if named else "no-cache"
        return tag, {"etag": tag, "cache-control": lasts, "vary": "accept-encoding"}

    def route(self, view: View) -> Route:
        """The address of a view, and what answers there."""

        async def answer(request: Request) -> Response:
            return await self.answer(view, request)

        return Route(view.path, answer, methods=[view.method])

    async def answer(self, view: View, request: Request) -> Response:
        """The answer to a request of a view: as it was sent before where it lasts."""
        pairs, path = http.read_pairs(request), request.path_params
        # In the path, or the two that are compared.
        ids = [path["id"]] if "id" in path else [
            id for id in map(pairs.get, ("first", "second")) if id
        ]  # fmt: skip
        versions = [await self.version(id) for id in ids]
        tag, more = self.tag(request, versions, pairs) if view.lasts else ("", {})
        if tag and http.is_unchanged(request, tag):
            return http.reply(request, b"", status=304, more=more)
        key = tag, http.takes_gzip(request)
        reply = self.cache.get(key) if tag else None
        if reply is None:
            reply = await self._worked_out(view, request, ids, pairs, more)
            if tag:
                self.cache.keep(key, reply)
        return reply

    async def _worked_out(
        self, view: View, request: Request, ids: Sequence[str], pairs: Mapping[str, str],
        more: Mapping[str, str],
    ) -> Response:  # fmt: skip
        """ids: of the tables that are asked; more: headers."""
        kind = request.headers.get("content-type", "")
        asked = ApiRequest(view.params.read(pairs), request.path_params, kind)

        def sent(made: Result | Rows) -> Response:
            if isinstance(made, Rows):
                return http.reply(request, made.content, made.kind)
            return http.reply(request, http.encode(made.as_json()), more=more)

        def work(body: bytes) -> Response:
            return sent(view.answer(self.tables, replace(asked, body=body)))

        if view.of_many is not None:
            reply = await self.with_others(view, Waiting(ids[0], asked, sent))
            if reply is not None:
                return reply
        read = self.bodies.read(request, view.max_bytes, view.check_body)
        async with read as body, self.slots(ids, view.long):
            alone: Response = await self.in_thread(work, body, long=view.long)
        return alone


def make_app(
    tables: TablePool, hosts: tuple[str, ...] | None = LOCAL, warm: bool = False,
    processes: int = 1,
) -> Starlette:  # fmt: skip
    """The application. hosts: the names by which the server may be called, None for any: a page
    elsewhere that has its own name lead to this machine is refused. warm: load at the start what is
    compiled of each game. processes: as `Explorer`."""
    explorer = Explorer(tables, processes)

    async def openapi(request: Request) -> Response:
        texts = await explorer.in_thread(field_texts, explorer.tables)
        return http.reply(request, http.encode(described(texts)))

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
    app.add_middleware(Guard, hosts=hosts, processes=processes)
    return app


class Guard:
    """Stands before the application: refuses requests that call the server by a name that is not
    one of `hosts` (None: any), work that another page sends, and more than its share of
    `MAX_REQUESTS`; makes a sentence of what goes wrong unforeseen."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] | None, processes: int = 1) -> None:
        self.app, self.hosts, self.processes = app, hosts, processes
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
        if self.at_once >= MAX_REQUESTS / self.processes:
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


def hosts_of(host: str, listener: socket.socket) -> tuple[str, ...] | None:
    """The names by which the server may be called: the one that was asked for first, and this
    machine's own; None, any, where it listens at all addresses of the machine."""
    address = str(listener.getsockname()[0])
    if ip_address(address.partition("%")[0]).is_unspecified:
        return None
    names = {host.lower(): None, address.lower(): None, **dict.fromkeys(LOCAL)}
    return tuple(names)


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


# --- the description ---------------------------------------------------------------------------

REFERENCE = "#/components/schemas/{model}"
ABOUT = (
    "The exact payoff of every state of a game. Nothing is written. Payoffs are lists over players "
    "in turn order; players count from 1; errors are sentences."
)
WRONG = {
    "400": "The request is wrong; the sentence says what would be right.",
    "404": "There is no such table, or it does not reach the state.",
    "409": "The table is damaged, or stale and strict=1.",
    "503": "Too many requests at once; ask again in a moment.",
    "500": "An error in luckbase.",
}
WRONG_BODY = {
    "403": "A page of another site sends it.",
    "408": "Its body has not come in time.",
}


@dataclass(frozen=True)
class Refusal(Result):
    """Why a request is not answered. field: of the state, if the sentence is of one."""

    error: str
    field: IfAny[str] = None


@lru_cache(8)
def described(texts: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """The OpenAPI document; texts: the fields of the games that are served, and what they are."""
    gives = [*(view.gives for view in VIEWS if view.gives), Refusal]
    takes = [view.takes for view in VIEWS if view.takes]
    of_kind, defined = TypeAdapter.json_schemas(
        [(kind, "serialization", adapter(kind)) for kind in gives]
        + [(kind, "validation", adapter(kind)) for kind in takes],
        ref_template=REFERENCE,
    )
    schemas = {kind: schema for (kind, _), schema in of_kind.items()}
    fields = {
        "type": "object", "additionalProperties": {"type": "string"},
        "properties": {name: {"type": "string", "description": text} for name, text in texts},
    }  # fmt: skip
    paths = {view.path: {view.method.lower(): _operation(view, schemas, fields)} for view in VIEWS}
    parts, used = defined["$defs"], set[str]()
    new = _references(paths)
    while new:
        used |= new
        new = _references([parts[name] for name in new]) - used
    return {
        "openapi": "3.1.0",
        "info": {"title": "luckbase", "version": "1", "description": ABOUT},
        "paths": paths,
        "components": {"schemas": {name: parts[name] for name in sorted(used)}},
    }


def _references(form: object) -> set[str]:
    """The names of the schemas that a part of the document refers to."""
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(form)))


def _operation(view: View, schemas: dict[Any, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The operation of an address. schemas: of answers and bodies, by their classes; fields: of a
    state."""
    rows = {kind: {"schema": {"type": "string"}} for kind in states.SENT_TYPES.values()}
    wrong = _json(schemas[Refusal])
    answers = {
        "200": {
            "description": "The answer.",
            "content": _json(schemas[view.gives]) if view.gives else rows,
        }
    }
    refusals = WRONG | WRONG_BODY if view.max_bytes else WRONG
    answers |= {code: {"description": says, "content": wrong} for code, says in refusals.items()}
    operation = {
        "summary": view.summary, "description": view.about, "parameters": _parameters(view, fields),
        "responses": answers,
    }  # fmt: skip
    if view.takes:
        operation["requestBody"] = {"content": _json(schemas[view.takes])}
    elif view.max_bytes:
        operation["requestBody"] = {"required": True, "content": rows}
    return operation


def _parameters(view: View, fields: dict[str, Any]) -> list[dict[str, Any]]:
    named: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("id", "name") if f"{{{name}}}" in view.path
    ]  # fmt: skip
    schema = view.params.model_json_schema()
    for name, own in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        (example,) = own.pop("examples")
        own = {key: value for key, value in own.items() if key not in ("title", "default")}
        named.append(
            {"name": name, "in": "query", "required": required,
             "description": own.pop("description"), "schema": own, "example": example}
        )  # fmt: skip
    if view.params.model_config.get("extra") == "allow":
        named.append({"name": "fields", "in": "query", "style": "form", "explode": True,
                      "description": FIELDS, "schema": fields})  # fmt: skip
    return named


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
