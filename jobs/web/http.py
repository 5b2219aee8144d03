"""How requests are read and answers are sent: parameters, bodies, JSON, refusals, the page's files.

The fields of a class of `QueryParams` are the parameters of an address, and their description. A
body is read within a time, and bounded, each of them and all together. An answer has headers that
keep a page to itself, and is compressed where the request takes that.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_args
from zlib import crc32

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from luckbase.solver import errors
from luckbase.solver.errors import LuckbaseError, OptionError, StateError
from luckbase.solver.sentences import nearest, shorten

# --- answers -----------------------------------------------------------------------------------

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""No script but our own files', no other host, no frame, no address told to anybody."""
ZIPPED_BYTES = 1000
"""Bytes: below that compressing costs more than it saves."""
LEVEL = 1
"""Of gzip: JSON gets a fifth of its size; more costs more than it saves."""
gzip: Any = import_module("isal.igzip" if find_spec("isal") else "gzip")
"""What compresses: where there is isal in 25 us for 80."""
STATUS: tuple[tuple[type[LuckbaseError], int], ...] = (
    (errors.MissingTableError, 404),
    (errors.SearchLimitError, 404),
    (errors.RequestError, 400),
)


class Unanswered(LuckbaseError):
    """The request may be right and is not answered now; status: of HTTP."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


OPTIONS = {"--what": "chart", "--as": "seat", "--against": "against", "--from": "state",
           "start": "state"}  # fmt: skip
"""What an option of the command line, or an argument in Python, is called in an address."""


def encode(content: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8; what is no letter, as in names of files that are not in it, as ``\\udcff``."""
    try:
        return to_json(content, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeError):
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        return text.encode(errors="backslashreplace")


def reply(
    request: Request, content: bytes, kind: str = "application/json", status: int = 200,
    more: Mapping[str, str] = {},
) -> Response:  # fmt: skip
    """An answer of ours, compressed where the request takes that."""
    headers = {**HEADERS, "content-type": kind, "cache-control": "no-store", **more}
    if len(content) >= ZIPPED_BYTES:
        headers["vary"] = "accept-encoding"
        if takes_gzip(request):
            content = gzip.compress(content, LEVEL, mtime=0)
            headers["content-encoding"] = "gzip"
    return Response(content, status, headers)


class AnswerCache:
    """Answers that were sent, by tags that name all that they depend on: those that were sent last,
    of so many bytes together."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.bytes = max_bytes, 0
        self._answers: OrderedDict[object, Response] = OrderedDict()

    def get(self, key: object) -> Response | None:
        """The answer that was kept; None where it was not, or is not any more."""
        if key in self._answers:
            self._answers.move_to_end(key)
        return self._answers.get(key)

    def keep(self, key: object, answer: Response) -> None:
        """Keep an answer, and forget those that were sent longest ago."""
        if (before := self._answers.pop(key, None)) is not None:
            self.bytes -= len(before.body)
        self._answers[key] = answer
        self.bytes += len(answer.body)
        while self.bytes > self.max_bytes:
            self.bytes -= len(self._answers.popitem(last=False)[1].body)


def takes_gzip(request: Request) -> bool:
    """Whether its sender takes compressed answers."""
    return "gzip" in request.headers.get("accept-encoding", "")


def tag_of(request: Request, versions: Sequence[str]) -> str:
    """The ETag of the answer to an address by tables that are at these versions."""
    scope = request.scope
    asked = b"\0".join([scope["path"].encode(), scope["query_string"], *map(str.encode, versions)])
    return f'"{hashlib.sha256(asked).hexdigest()[:32]}"'


def is_unchanged(request: Request, tag: str) -> bool:
    """Whether its sender has the answer with that ETag."""
    known = request.headers.get("if-none-match", "").split(",")
    return tag in [each.strip().removeprefix("W/") for each in known]


def refusal(request: Request, status: int, sentence: str, field: str | None = None) -> Response:
    """An answer that says what is wrong, in a sentence; field: of a state, if it is one's."""
    said = {"error": sentence} if field is None else {"error": sentence, "field": field}
    # What was not read of a body is not waited for.
    more = {"connection": "close"} if request.method == "POST" and status != 500 else {}
    return reply(request, encode(said), status=status, more=more)


async def refused(request: Request, error: Exception) -> Response:
    """The answer that one of our errors makes; its `fields`, if it has any, are those of the
    table's states, by name."""
    if isinstance(error, Unanswered):
        return refusal(request, error.status, str(error))
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 409)
    sentence = str(error)
    word, colon, rest = sentence.partition(":")
    if colon and word in OPTIONS:
        sentence = f"{OPTIONS[word]}:{rest}"
    named = sentence.replace(":", " ").split(" ", 1)[0].rpartition("'")[2]
    return refusal(
        request, status, sentence, named if named in getattr(error, "fields", ()) else None
    )


async def no_such(request: Request, error: Exception) -> Response:
    """The answer where there is nothing at an address, or it takes other requests."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:80]
    said = {
        404: f"{path}: there is nothing at this address; /openapi.json says what there is",
        405: f"{path}: does not take {request.method}; /openapi.json says what it takes",
    }.get(error.status_code, str(error.detail))
    return refusal(request, error.status_code, said)


# --- parameters --------------------------------------------------------------------------------

_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
WORD_LENGTH = 400
"""Letters that a parameter may have; any state is shorter."""


def read_pairs(request: Request) -> dict[str, str]:
    """The parameters of an address, each once. Raises OptionError."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in found:
            raise OptionError(f"{shorten(name, 30)}: is given twice")
        if len(value) > WORD_LENGTH:
            raise OptionError(f"{shorten(name, 30)}: has more than {WORD_LENGTH} letters")
        found[name] = value
    return found


def _truth(text: str, info: ValidationInfo) -> bool:
    if text not in get_args(_Truth):
        raise OptionError(f"{info.field_name}: '{shorten(text, 30)}' is not 1 or 0")
    return text in ("1", "true")


_Truth = Literal["0", "1", "false", "true"]
Truth = Annotated[bool, BeforeValidator(_truth, json_schema_input_type=_Truth)]
"""Whether a parameter says 1 or true."""


class QueryParams(BaseModel):
    """The parameters of an address. Where `extra` is allowed the rest are fields of a state."""

    @property
    def state(self) -> dict[str, str]:
        """The fields of a state in words."""
        return self.model_extra or {}

    @classmethod
    def read(cls, pairs: Mapping[str, str]) -> Self:
        """The parameters as they were typed. Raises OptionError."""
        fields = cls.model_fields
        for name, about in fields.items():
            if about.is_required() and not pairs.get(name):
                raise OptionError(f"{name}: is missing; write {name}={about.title}")
        for name in pairs if cls.model_config.get("extra") != "allow" else ():
            if name not in fields:
                said = f"unknown parameter '{shorten(name, 30)}'; {nearest(name, fields)}"
                raise OptionError(said)
        return cls.model_validate(pairs)


class TableParams(QueryParams):
    """Of one table."""

    strict: Truth = Field(
        False, description="1: refuse a table whose board has changed since (409)", examples=["0"]
    )
    version: str = Field(
        "", examples=["0123456789abcdef"],
        description="the `version` of the table: while it is that the answer may be kept for ever",
    )  # fmt: skip


class StateParams(TableParams, extra="allow"):
    """Of a state, by its fields or drawn."""

    random: str = Field(
        "", description="with no fields: a state drawn by this seed", examples=["7"]
    )

    @property
    def seed(self) -> int | None:
        """What ``random=TEXT`` draws by; None where it is not there."""
        return crc32(self.random.encode()) if "random" in self.model_fields_set else None


P = TypeVar("P", bound=QueryParams)


@dataclass(frozen=True)
class ApiRequest(Generic[P]):
    """What is asked."""

    params: P
    path: Mapping[str, str] = field(default_factory=dict)
    """What stands in the address."""
    kind: str = ""
    """The type of the body, as its sender names it."""
    body: bytes = b""


def whole(name: str, text: object, low: int, high: int) -> int:
    """A whole number from low to high. Raises OptionError."""
    said = str(text)
    if isinstance(text, bool) or not _WHOLE.fullmatch(said) or not low <= int(said) <= high:
        raise OptionError(
            f"{name}: '{shorten(said, 30)}' is not a whole number from {low} to {high}"
        )
    return int(said)


def state_in(text: object) -> dict[str, str]:
    """The fields of an address, ``scores=0,500,0&earned=1,0,0``, or of a mapping. Raises
    StateError."""
    if isinstance(text, Mapping):
        return {str(name): _plain(name, value) for name, value in text.items() if value is not None}
    found: dict[str, str] = {}
    for word in re.split(r"[&\s]+", str(text).strip().removeprefix("?")):
        name, equals, value = word.partition("=")
        if not word:
            continue
        if not equals:
            raise StateError(f"'{shorten(word, 30)}' is not FIELD=VALUE, as in turn=0")
        if name in found:
            raise StateError(f"{shorten(name, 30)} is given twice")
        found[name] = value.replace("%2C", ",")
    return found


def _plain(name: object, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if not isinstance(value, str | int):
        raise StateError(f"{name}: {shorten(str(value), 30)} is neither a number nor text")
    return str(value)


# --- bodies ------------------------------------------------------------------------------------

BODIES_BYTES = 128_000_000
"""Of all bodies that are read, or wait for their answer."""
READ_SECONDS = 30.0
"""How long a body may take to come."""
FIRST_BYTES, SEARCHED_BYTES = 4, 1000
"""Bytes that show what a body is, after any blanks, and where they are looked for."""


class Bodies:
    """The bodies that are kept. bytes: how many they have; share: of `BODIES_BYTES` that they may,
    one in so many."""

    def __init__(self, share: int = 1) -> None:
        self.bytes, self.share = 0, share

    @asynccontextmanager
    async def read(
        self, request: Request, max_bytes: int, check: Callable[[str, bytes], object]
    ) -> AsyncIterator[bytes]:
        """The body of a request, kept as long as this lasts; none where max_bytes is 0. check: is
        called with the type that the request names and the first bytes.

        Raises OptionError for one that is too large, and what `check` raises; Unanswered where too
        much is kept already, or it does not come in time.
        """
        size, found = 0, bytearray()
        try:
            if max_bytes:
                await self._read(request, found, max_bytes, check)
            size, body = len(found), bytes(found)
            found.clear()
            yield body
        finally:
            self.bytes -= size or len(found)

    async def _read(
        self, request: Request, found: bytearray, max_bytes: int,
        check: Callable[[str, bytes], object],
    ) -> None:  # fmt: skip
        length = request.headers.get("content-length", "")
        _check_size(int(length) if length.isdecimal() else 0, max_bytes)
        type_, checked = request.headers.get("content-type", ""), False
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for piece in request.stream():
                    if self.bytes + len(piece) > BODIES_BYTES // self.share:
                        said = "body: the server reads too many others; send it again in a moment"
                        raise Unanswered(503, said)
                    self.bytes += len(piece)
                    found += piece
                    _check_size(len(found), max_bytes)
                    if not checked and len(found[:SEARCHED_BYTES].lstrip()) >= FIRST_BYTES:
                        check(type_, bytes(found[:SEARCHED_BYTES]))
                        checked = True
        except TimeoutError:
            said = f"body: did not arrive within {READ_SECONDS:g} s; send it in several requests"
            raise Unanswered(408, said) from None
        except ClientDisconnect:
            raise Unanswered(400, "body: ended too early") from None


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise OptionError(f"body: has more than {limit:,} bytes; send it in several requests")


# --- the page's own files ----------------------------------------------------------------------

STATIC = Path(__file__).parent / "static"
FILE_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}  # fmt: skip


def page_files() -> list[Route]:
    """An address for each file of the page, which are read once, at the start; nothing else is ever
    sent."""
    files = [path for path in sorted(STATIC.iterdir()) if path.suffix in FILE_TYPES]
    return [_file("/", STATIC / "index.html"), *(_file(f"/static/{p.name}", p) for p in files)]


def _file(address: str, path: Path) -> Route:
    content, kind = path.read_bytes(), FILE_TYPES[path.suffix]
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'  # changes with the file

    async def answer(request: Request) -> Response:
        more = {"etag": tag, "cache-control": "no-cache"}
        if is_unchanged(request, tag):
            return reply(request, b"", kind, 304, more)
        return reply(request, content, kind, more=more)

    return Route(address, answer)
