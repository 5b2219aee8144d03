"""How an answer is sent: JSON, with headers that keep a page to itself; compressed if asked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from luckbase.solver.errors import (
    CorruptTableError,
    LuckbaseError,
    MissingTableError,
    RequestError,
    SearchLimitError,
    StaleTableError,
)

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""No script but our own files', no other host, no frame, no address told to anybody."""
LEAST_ZIPPED = 1000
"""Bytes: below that compressing costs more than it saves."""
LEVEL = 1
"""Of gzip: JSON gets a sixth of its size at a tenth of a millisecond; more takes as long again."""
STATUS: tuple[tuple[type[LuckbaseError], int], ...] = (
    (MissingTableError, 404),
    (SearchLimitError, 404),
    (CorruptTableError, 409),
    (StaleTableError, 409),
    (RequestError, 400),
)


class Unanswered(LuckbaseError):
    """The request may be right and is not answered now; status: of HTTP."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


OPTIONS = {"--what": "chart", "--as": "seat", "--against": "against", "--from": "state",
           "start": "state"}  # fmt: skip
"""What an option of the command line, or an argument in Python, is called in an address."""
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


def as_json(content: Any) -> bytes:
    """JSON in UTF-8; what is no letter, as in names of files that are not in it, as ``\\udcff``."""
    return _encode(content).encode(errors="backslashreplace")


def reply(
    request: Request, content: bytes, kind: str = "application/json", status: int = 200,
    more: Mapping[str, str] = {},
) -> Response:  # fmt: skip
    """An answer of ours, compressed where the request takes that."""
    headers = {**HEADERS, "content-type": kind, "cache-control": "no-store", **more}
    if len(content) >= LEAST_ZIPPED and "content-encoding" not in headers:
        headers["vary"] = "accept-encoding"
        if zips(request):
            content = gzip.compress(content, LEVEL, mtime=0)
            headers["content-encoding"] = "gzip"
    return Response(content, status, headers)


def zips(request: Request) -> bool:
    """Whether a request takes gzip."""
    return "gzip" in request.headers.get("accept-encoding", "")


def refusal(request: Request, status: int, sentence: str, field: str | None = None) -> Response:
    """An answer that says what is wrong, in a sentence; field: of a state, if it is one's."""
    said = {"error": sentence} if field is None else {"error": sentence, "field": field}
    # What was not read of a body is not waited for.
    more = {"connection": "close"} if request.method == "POST" and status != 500 else {}
    return reply(request, as_json(said), status=status, more=more)


def refused(request: Request, error: LuckbaseError, fields: tuple[str, ...] = ()) -> Response:
    """The answer that one of our errors makes; fields: of the table's states, by name."""
    if isinstance(error, Unanswered):
        return refusal(request, error.status, str(error))
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 409)
    sentence = str(error)
    word, colon, rest = sentence.partition(":")
    if colon and word in OPTIONS:
        sentence = f"{OPTIONS[word]}:{rest}"
    named = sentence.replace(":", " ").split(" ", 1)[0].rpartition("'")[2]
    return refusal(request, status, sentence, named if named in fields else None)
