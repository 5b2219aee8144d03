"""URIs as paths: ``s3://bucket/prefix``, ``gs://``, ``az://``, read-only ``https://``.

A `Place` is a `Path` whose text is the URI: everything that joins names to the path of a table, or
of results, takes one; its bytes are read and written by `storage_at(place)`.

**The index** of a table there is its head, all lines of its ledger and the footers of its files in
one object, so that a question reads these in one request. A web server says nothing of what it has;
there the index is the only way in.

Whoever changes a table takes the index away first and writes it last; it names the same files as
the ledger of that moment, and none of these is ever changed. It has the number of the ledger's last
entry, and is only replaced by one of a larger: a solve that was suspended harms none. Its text is
``luckbase index 1``, the SHA-256 of what follows, and that, compressed: JSON with two lengths and
the number, the head, the lines, footers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from luckbase.cluster.table.storage import PARALLEL, READ_ONLY, Folder, Storage, in_threads
from luckbase.solver.errors import OptionError, StoreError, need

if TYPE_CHECKING:
    from luckbase.cluster.table.ledger import Ledger
    from luckbase.cluster.table.remote import Objects

SCHEMES = ("s3", "gs", "az", "https", "http", "memory")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_BUCKET = re.compile(r"[\w.:@%~\[\]-]+", re.ASCII)
"""A bucket's name, or a web server's: obstore panics at others."""


def is_uri(name: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a place that is no folder of this machine's."""
    match = _URI.match(os.fspath(name))
    return match is not None and match[1] in SCHEMES


def results_of(path: Path) -> Path | None:
    """The folder of results that a table is in, as short as the table was named; None where it is
    in none."""
    if is_uri(path):
        return path.parents[2] if len(path.parts) > 4 else None
    for each in (path, Path(os.path.abspath(path))):
        if len(each.parts) > 3:
            return each.parents[2]
    return None


def place_of(name: str | os.PathLike[str]) -> Path:
    """The path of what a person names: a URI, or as `path_of` a file or folder. Raises OptionError
    for a URI of another kind, or one without a bucket."""
    from luckbase.solver.board.file import path_of  # and pydantic

    text = os.fspath(name)
    if not is_uri(text):
        match = _URI.match(text)
        if match is None or not text.startswith(f"{match[0]}/") or os.path.exists(text):
            return path_of(name)
        raise OptionError(
            f"'{text[:60]}' cannot hold tables; expected a folder, s3://, gs://, az:// or https://"
        )
    read_only = text.startswith(READ_ONLY)  # an address as a browser shows it
    place = Place(unquote(text) if read_only else text)
    if not _BUCKET.fullmatch("".join(place.parts[1:2])) or {*text} & {*"?#"} or ".." in place.parts:
        raise OptionError(f"{text[:80]}: expected {place.scheme}://BUCKET/PREFIX")
    return place


def storage_at(path: Path) -> Storage:
    """Where the bytes of the table at a path lie. Raises StoreError without credentials for it,
    OptionError where obstore is not installed."""
    return _objects(path) if is_uri(path) else Folder(path)


def _objects(path: Path) -> Objects:
    need(f"{os.fspath(path)[:60]}", "obstore", extra="cloud")
    from luckbase.cluster.table.remote import Objects

    return Objects.at(path)


class Place(PosixPath):
    """Where a URI says, with what is asked of a path of tables: no request is made by joining
    names, and what holds names counts as a folder whether anything is there or not."""

    def __str__(self) -> str:
        scheme, *rest = self.parts or (".",)
        return f"{scheme}//{'/'.join(rest)}" if scheme.endswith(":") else "/".join(self.parts)

    def __fspath__(self) -> str:
        return str(self)

    @property
    def scheme(self) -> str:
        """``s3``, …"""
        return self.parts[0].rstrip(":")

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written there, nor listed."""
        return self.scheme in READ_ONLY

    def is_dir(self, **_: Any) -> bool:
        return True

    def is_file(self, **_: Any) -> bool:
        return _objects(self.parent).has(self.name)

    def exists(self, **_: Any) -> bool:
        if len(self.parts) < 3:  # of a bucket the first request says so
            return True
        return self.is_file() or (not self.read_only and bool(_objects(self).names()))

    def absolute(self) -> Place:
        return self

    def samefile(self, other: Any) -> bool:
        return str(self) == str(os.fspath(other))

    def mkdir(self, *_: Any, **__: Any) -> None:
        raise StoreError(f"{self}: cannot be made as a folder; expected a path on this machine")

    def glob(self, pattern: str, **_: Any) -> Iterator[Place]:  # type: ignore[override]
        """What matches, segment by segment; nothing where nothing can be listed."""
        first, _slash, rest = pattern.partition("/")
        if not rest and "*" not in first:
            child = self / first
            if child.is_file() or (not self.read_only and _objects(child).names()):
                yield child
        elif "*" not in first:
            yield from (self / first).glob(rest)
        elif not self.read_only:
            for name in _objects(self).names():
                if fnmatchcase(name, first):
                    yield from (self / name).glob(rest) if rest else (self / name,)


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
    """The index of the table there; None where there is none, and of a folder. Of a table that is
    being changed it has no head."""
    if not storage.anywhere:
        return None
    ahead = _ahead.pop(storage.where, None)
    return _read(storage) if ahead is None else ahead.result()


def _read(storage: Storage) -> bytes | None:
    try:
        return storage.read(INDEX)
    except FileNotFoundError:
        return None
