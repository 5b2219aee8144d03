"""The bodies of requests: read within a time, and bounded, each of them and all together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from luckbase.jobs.web.replies import Unanswered
from luckbase.jobs.web.views import View
from luckbase.solver.errors import OptionError

MOST_BYTES = 128_000_000
"""Of all bodies that are read, or wait for their answer."""
READ_SECONDS = 30.0
"""How long a body may take to come."""
FIRST, LOOKED_AT = 4, 1000
"""Bytes that show what a body is, after any blanks, and where they are looked for."""


class Bodies:
    """The bodies that are held. bytes: how many they have."""

    def __init__(self) -> None:
        self.bytes = 0

    @asynccontextmanager
    async def read(self, request: Request, view: View) -> AsyncIterator[bytes]:
        """The body of a request, held as long as this lasts; none where the view takes none.

        Raises OptionError for one that is too large or of no type that the view takes, Unanswered
        where too much is held already, or it does not come in time.
        """
        size, found = 0, bytearray()
        try:
            if view.most_bytes:
                await self._read(request, view, found)
            size, body = len(found), bytes(found)
            found.clear()
            yield body
        finally:
            self.bytes -= size or len(found)

    async def _read(self, request: Request, view: View, found: bytearray) -> None:
        length = request.headers.get("content-length", "")
        _check_size(int(length) if length.isdecimal() else 0, view.most_bytes)
        type_, checked = request.headers.get("content-type", ""), False
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for piece in request.stream():
                    if self.bytes + len(piece) > MOST_BYTES:
                        said = "body: the server reads too many others; send it again in a moment"
                        raise Unanswered(503, said)
                    self.bytes += len(piece)
                    found += piece
                    _check_size(len(found), view.most_bytes)
                    if not checked and len(found[:LOOKED_AT].lstrip()) >= FIRST:
                        view.check_body(type_, bytes(found[:LOOKED_AT]))
                        checked = True
        except TimeoutError:
            said = f"body: has not come within {READ_SECONDS:g} s; send it in several requests"
            raise Unanswered(408, said) from None
        except ClientDisconnect:
            raise Unanswered(400, "body: was not sent to its end") from None


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise OptionError(f"body: has more than {most:,} bytes; send it in several requests")
