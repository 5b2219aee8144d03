"""Requests and responses: parameters, JSON or a page, refusals, and headers.

The fields of a subclass of `QueryParams` are the parameters of an address.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar
from zlib import crc32

from pydantic import BaseModel, BeforeValidator, ValidationInfo
from pydantic_core import PydanticSerializationError, to_json
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from luckbase.solver import errors
from luckbase.solver.errors import LuckbaseError, OptionError
from luckbase.solver.sentences import nearest, shorten

log = logging.getLogger("luckbase.web")

# --- answers -----------------------------------------------------------------------------------

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
STATUS: tuple[tuple[type[LuckbaseError], int], ...] = (
    (errors.MissingTableError, 404),
    (errors.SearchLimitError, 404),
    (errors.RequestError, 400),
)
OPTIONS = {"--what": "chart", "--as": "seat", "--against": "against", "--from": "state",
           "start": "state"}  # fmt: skip
"""Names in URLs of options of the command line, or of arguments in Python."""


def encode(content: Mapping[str, Any]) -> bytes:
    """Return JSON in UTF-8. Surrogates, which file names may contain, become ``\\udcff``."""
    try:
        return to_json(content, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeError):
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        return text.encode(errors="backslashreplace")


def reply(content: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(encode(content), status, API_HEADERS, "application/json")


def wants_page(request: Request) -> bool:
    """True if the client is a browser that displays HTML; others get JSON."""
    return "text/html" in request.headers.get("accept", "")


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused. field: the invalid field of the state, if there is one."""

    status: int
    error: str
    field: str | None = None

    def reply(self) -> Response:
        """Return the refusal as JSON."""
        said = {"error": self.error}
        return reply(said if self.field is None else {**said, "field": self.field}, self.status)


def refusal_of(request: Request, error: Exception) -> Refusal:
    """Return the refusal for one of our errors, or for an unknown address or method. The error's
    `fields`, if any, are the names of the fields of the table's states."""
    if isinstance(error, HTTPException):
        path = request.url.path[:80]
        sentences = {
            404: f"{path}: there is nothing at this address; GET /tables lists the tables",
            405: f"{path}: does not take {request.method}; expected GET",
        }
        return Refusal(error.status_code, sentences.get(error.status_code, str(error.detail)))
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 409)
    sentence = str(error)
    word, colon, rest = sentence.partition(":")
    if colon and word in OPTIONS:
        sentence = f"{OPTIONS[word]}:{rest}"
    named = sentence.replace(":", " ").split(" ", 1)[0].rpartition("'")[2]
    known = getattr(error, "fields", ())
    field = next((name for name in known if re.fullmatch(rf"{name}(_\d+)?", named)), None)
    return Refusal(status, sentence, field)


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


# --- parameters --------------------------------------------------------------------------------

_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
WORD_LENGTH = 400
"""Maximum characters of a parameter; any state is shorter."""


def _truth(text: str, info: ValidationInfo) -> bool:
    if text not in ("0", "1", "false", "true"):
        raise OptionError(f"{info.field_name}: '{shorten(text, 30)}' is not 1 or 0")
    return text in ("1", "true")


Truth = Annotated[bool, BeforeValidator(_truth)]
"""True if a parameter is 1 or true."""


Given = dict[str, Any]
"""The parameters of an address by name: a text or a list of texts."""


def given(request: Request, lists: Collection[str]) -> Given:
    """Return the parameters of a request: those in `lists` as lists of texts; others that are
    repeated, as by a form's checkboxes, joined with commas. Raises OptionError."""
    values: Given = {}
    for name, value in request.query_params.multi_items():
        if len(value) > WORD_LENGTH:
            raise OptionError(f"{shorten(name, 30)}: has more than {WORD_LENGTH} letters")
        if name in lists:
            values.setdefault(name, []).append(value)
        else:
            values[name] = ",".join(filter(None, (values.get(name), value)))
    return values


class QueryParams(BaseModel):
    """The parameters of an address. If `extra` is allowed, the others are fields of a state. A
    required parameter has an example as its title."""

    lists: ClassVar[tuple[str, ...]] = ()
    """Parameters that are lists of texts."""

    @property
    def state(self) -> dict[str, str]:
        """The fields of a state as text."""
        return self.model_extra or {}

    @classmethod
    def read(cls, values: Given) -> Self:
        """Return the parameters of an address. Raises OptionError."""
        fields = cls.model_fields
        for name, about in fields.items():
            if about.is_required() and not values.get(name):
                raise OptionError(f"{name}: is missing; write {name}={about.title}")
        for name in values if cls.model_config.get("extra") != "allow" else ():
            if name not in fields:
                hint = nearest(name, fields)
                raise OptionError(f"unknown parameter '{shorten(name, 30)}'; {hint}")
        return cls.model_validate(values)


class TableParams(QueryParams):
    """Parameters of one table."""

    strict: Truth = False
    """Refuse a table whose board has changed since it was solved (409)."""


class StateParams(TableParams, extra="allow"):
    """A state, given by its fields or drawn at random."""

    random: str = ""
    """Without fields: draw a state with this seed."""

    @property
    def seed(self) -> int | None:
        """Return the random seed in ``random=TEXT``; None if not given."""
        return crc32(self.random.encode()) if "random" in self.model_fields_set else None


P = TypeVar("P", bound=QueryParams)


@dataclass(frozen=True)
class ApiRequest(Generic[P]):
    """A request: its parameters, the parts of its path, and whether its answer may take long."""

    params: P
    path: Mapping[str, str] = field(default_factory=dict)
    long: bool = True


class LongAnswer(Exception):
    """A short query needs a search."""


def whole(name: str, text: object, low: int, high: int) -> int:
    """Return an integer from `low` to `high`. Raises OptionError."""
    said = str(text)
    if isinstance(text, bool) or not _WHOLE.fullmatch(said) or not low <= int(said) <= high:
        raise OptionError(
            f"{name}: '{shorten(said, 30)}' is not a whole number from {low} to {high}"
        )
    return int(said)
