"""Requests to views, and responses: parameters, JSON, refusals and headers."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydantic_core import PydanticSerializationError, to_json
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from luckbase.solver import errors
from luckbase.solver.errors import LuckbaseError, OptionError
from luckbase.solver.result import Result
from luckbase.solver.sentences import nearest, shorten

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table
    from luckbase.jobs.web.pool import OpenTable, TablePool

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
"""Only this server's script and style are loaded, and no other page can frame ours."""
API_HEADERS = {"cache-control": "no-store", "vary": "accept"}
BUG = "this is an error in luckbase, not yours; the server has printed more"
OPTIONS = {"--what": "chart", "--as": "seat", "--against": "against", "--from": "state",
           "start": "state"}  # fmt: skip
"""Names in URLs of options of the command line, or of arguments in Python."""
LENGTH = 400
"""Maximum characters of a parameter; any state is shorter."""


# --- responses -----------------------------------------------------------------------------------


def reply(content: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON response. Surrogates, which file names may contain, become ``\\udcff``."""
    try:
        body = to_json(content, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeError):
        body = json.dumps(content).encode()
    return Response(body, status, API_HEADERS, "application/json")


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused. field: the invalid field of the state, if there is one."""

    status: int
    error: str
    field: str | None = None

    def reply(self) -> Response:
        """Return the refusal as JSON."""
        field = {} if self.field is None else {"field": self.field}
        return reply({"error": self.error, **field}, self.status)


class Guard:
    """Adds `HEADERS` to every response, and turns an unexpected error into a sentence."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            await self.app(scope, receive, send_guarded)
        except Exception as error:
            log.error("%s %s", scope["method"], scope["path"], exc_info=error)
            await Refusal(500, BUG).reply()(scope, receive, send_guarded)


# --- requests ------------------------------------------------------------------------------------


class Query(dict[str, Any]):
    """The parameters of an address: texts by name, and `move`, a list of texts.

    A parameter that is repeated, as by a form's checkboxes, is joined with commas.
    """

    def __init__(self, given: Iterable[tuple[str, str]] = (), view: View | None = None) -> None:
        """Raise OptionError for a parameter that the view does not have."""
        super().__init__()
        self.names = () if view is None else view.params
        for name, value in given:
            if len(value) > LENGTH:
                raise OptionError(f"{shorten(name, 30)}: has more than {LENGTH} letters")
            if name not in self.names and not (view and view.takes_state):
                hint = nearest(name, self.names)
                raise OptionError(f"unknown parameter '{shorten(name, 30)}'; {hint}")
            if name in self.names and name == "move":
                self.setdefault(name, []).append(value)
            elif value or name not in self.names:
                self[name] = ",".join(filter(None, (self.get(name), value)))

    @property
    def state(self) -> dict[str, str]:
        """The fields of a state: the parameters that the view does not name."""
        return {name: value for name, value in self.items() if name not in self.names}

    def integer(self, name: str, low: int, high: int, default: int) -> int:
        """Return an integer from `low` to `high`. Raises OptionError."""
        text = self.get(name, str(default))
        if not re.fullmatch(r"[+-]?[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise OptionError(
                f"{name}: '{shorten(text, 30)}' is not a whole number from {low} to {high}"
            )
        return int(text)


class LongAnswer(Exception):
    """A short query needs a search."""


class ViewRequest:
    """A request to a view, with the tables that it uses until its end.

    path: the variable parts of its path, by name.
    long: the answer may take long.
    """

    def __init__(self, pool: TablePool, path: Mapping[str, str], long: bool = True) -> None:
        self.pool, self.path, self.long = pool, path, long
        self.query = Query()
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def open(self, id: str) -> OpenTable:
        """Open a table. Raises MissingTableError, CorruptTableError."""
        return self._opened.enter_context(self.pool.open(id))

    @cached_property
    def opened(self) -> OpenTable:
        """The table in the path. Raises as `open` does."""
        return self.open(self.path["id"])

    @property
    def table(self) -> Table:
        """The table in the path. Raises as `open` does."""
        return self.opened.table

    def refusal(self, error: LuckbaseError) -> Refusal:
        """Return the refusal for an error, without paths of this machine."""
        missing = isinstance(error, errors.MissingTableError | errors.SearchLimitError)
        status = 404 if missing else 400 if isinstance(error, errors.RequestError) else 409
        word, colon, rest = self.pool.without_paths(str(error)).partition(":")
        sentence, opened = f"{OPTIONS.get(word, word)}{colon}{rest}", self.__dict__.get("opened")
        named = sentence.replace(":", " ").split(" ", 1)[0].rpartition("'")[2]
        known = () if opened is None else opened.table.game.fields.names
        field = next((name for name in known if re.fullmatch(rf"{name}(_\d+)?", named)), None)
        return Refusal(status, sentence, field)


Context = dict[str, Any]


@dataclass(frozen=True)
class View:
    """An address that returns a page, made by a template, or JSON."""

    path: str
    answer: Callable[[ViewRequest], Result]
    template: str
    params: tuple[str, ...] = ()  # the names of its parameters
    takes_state: bool = False  # other parameters are fields of a state
    long: bool = False  # an answer may take long
    more: Callable[[ViewRequest, Context], Context] | None = None
    """Returns further values for the template, from its context."""
