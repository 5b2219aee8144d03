"""The index of a table in a store: its head, all lines of its ledger and the footers of its files
in one object, so that a question reads these in one request. A web server says nothing of what it
has; there the index is the only way in.

Whoever changes a table takes the index away first and writes it last; it names the same files as
the ledger of that moment, and none of these is ever changed. It has the number of the ledger's last
entry, and is only replaced by one of a larger: a solve that was suspended harms none. Its text is
``luckbase index 1``, the SHA-256 of what follows, and that, compressed: JSON with two lengths and
the number, the head, the lines, footers.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from luckbase.cluster.table.storage import PARALLEL, Storage, in_threads, place_of, storage_at

if TYPE_CHECKING:
    from luckbase.cluster.table.ledger import Ledger

INDEX = "index.luckbase"
_FIRST = b"luckbase index 1\n"
MAX_FOOTERS = 64 << 20
"""Bytes of footers that an index has; those of a larger table are read when they are needed."""
_ahead: dict[str, Future[bytes | None]] = {}


def _packed(first: dict[str, int], rest: bytes) -> bytes:
    packed = zlib.compress(b"\n".join([json.dumps(first).encode(), rest]), 6)
    return _FIRST + hashlib.sha256(packed).hexdigest().encode() + b"\n" + packed


def write_index(
    storage: Storage, head: bytes, ledger: Ledger, footer: Callable[[str], bytes] | None = None
) -> None:
    """Write the index of a table, as its ledger is now. head: the text of its head. footer(name):
    of a file; read if not given."""

    def read(name: str) -> bytes:
        entry = ledger.files[name]
        return storage.read(entry.place, entry.bytes - entry.footer, entry.bytes)

    footers = b"".join(in_threads(footer or read, sorted(ledger.files), PARALLEL))
    lines = ledger.as_text().encode()
    number = ledger.entries.number if ledger.entries else 0
    first = {"head": len(head), "lines": len(lines), "number": number}
    last = footers if len(footers) <= MAX_FOOTERS else b""
    _replace(storage, _packed(first, head + lines + last))


def take_index_away(storage: Storage, ledger: Ledger) -> None:
    """Have no index say anything of a table that is changed from here on."""
    assert ledger.entries is not None
    _replace(storage, _packed({"head": 0, "lines": 0, "number": ledger.entries.number}, b""))


def _replace(storage: Storage, content: bytes) -> None:
    """Put an index in the place of any but a later one."""
    number = _unpacked(content)[0]["number"]
    while True:
        try:
            stored, tag = storage.read_tagged(INDEX)
        except FileNotFoundError:
            if storage.put_if_absent(INDEX, content):
                return
            continue
        with suppress(ValueError, zlib.error):
            if _unpacked(stored)[0].get("number", 0) > number:
                return
        if storage.put_if_match(INDEX, content, tag) is not None:
            return


def parts_of(content: bytes) -> tuple[bytes, bytes, bytes]:
    """(the head, the lines, the footers by name behind one another) in an index. Raises ValueError
    for one that is not as it was written."""
    lengths, rest = _unpacked(content)
    head, lines = lengths["head"], lengths["lines"]
    return rest[:head], rest[head : head + lines], rest[head + lines :]


def _unpacked(content: bytes) -> tuple[dict[str, int], bytes]:
    start = len(_FIRST) + 65
    if content[: len(_FIRST)] != _FIRST:
        raise ValueError("is not an index of this luckbase")
    if hashlib.sha256(content[start:]).hexdigest().encode() != content[len(_FIRST) : start - 1]:
        raise ValueError("it is not the text that its digest says")
    first, _, rest = zlib.decompress(content[start:]).partition(b"\n")
    return json.loads(first), rest


def footers_of(ledger: Ledger, content: bytes) -> dict[str, bytes]:
    """The footers of a ledger's files, as `parts_of` gives them; none where there are none."""
    footers, at = {}, 0
    for name in sorted(ledger.files) if content else ():
        footers[name] = content[at : at + ledger.files[name].footer]
        at += ledger.files[name].footer
    return footers


def read_ahead(name: str) -> None:
    """Have the index of the table at a URI read while luckbase is still imported: a request takes
    as long as a tenth of that. The next `read_index` of it waits for the answer, or raises what it
    met."""
    place = place_of(name)
    answer = _ahead[str(place)] = Future[bytes | None]()

    def read() -> None:
        try:
            answer.set_result(_read(storage_at(place)))
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=read, daemon=True).start()


def read_index(storage: Storage) -> bytes | None:
    """The index of the table in a store; None where there is none. Of a table that is being changed
    it has no head."""
    ahead = _ahead.pop(storage.where, None)
    return _read(storage) if ahead is None else ahead.result()


def _read(storage: Storage) -> bytes | None:
    try:
        return storage.read(INDEX)
    except FileNotFoundError:
        return None
