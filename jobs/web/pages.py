"""The page's own files: read once, at the start, with their types; nothing else is ever sent."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from luckbase.jobs.web import replies

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
    ".ico": "image/x-icon", ".json": "application/json",
}  # fmt: skip
NO_PAGE = b"<!doctype html><title>luckbase</title><p>There is no page here, only /openapi.json."


@dataclass(frozen=True)
class PageFile:
    """A file of the page as it is sent, with and without gzip; the tag changes with it."""

    content: bytes
    zipped: bytes
    kind: str
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """The files by their names below ``/static/``."""
    found = {}
    for path in sorted(STATIC.rglob("*")):
        if path.is_file() and path.suffix in KINDS:
            content = path.read_bytes()
            name = path.relative_to(STATIC).as_posix()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            zipped = gzip.compress(content, 9, mtime=0)
            found[name] = PageFile(content, zipped, KINDS[path.suffix], tag)
    return found


def page_of(name: str) -> Callable[[Request], Awaitable[Response]]:
    """The address of a file of the page."""

    async def answer(request: Request) -> Response:
        file = page_files().get(name) or PageFile(NO_PAGE, b"", KINDS[".html"], '""')
        more = {"etag": file.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return replies.reply(request, b"", file.kind, 304, more)
        if file.zipped and len(file.zipped) < len(file.content) and replies.zips(request):
            more |= {"content-encoding": "gzip", "vary": "accept-encoding"}
            return replies.reply(request, file.zipped, file.kind, more=more)
        return replies.reply(request, file.content, file.kind, more=more)

    return answer


def static_files() -> list[Route]:
    """An address for each file."""
    return [Route(f"/static/{name}", page_of(name)) for name in page_files()]
