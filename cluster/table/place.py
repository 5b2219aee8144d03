"""What a URI names, as a path: ``s3://bucket/prefix``, ``gs://``, ``az://``, read-only ``https://``.

A `Place` is a `Path` whose text is the URI: everything that joins names to the path of a table, or
of results, takes one; its bytes are read and written by `storage_at(place)`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any

from luckbase.cluster.table.storage import READ_ONLY, Folder, Storage
from luckbase.solver.errors import OptionError, StoreError, need

if TYPE_CHECKING:
    from luckbase.cluster.table.remote import Objects

SCHEMES = ("s3", "gs", "az", "https", "http", "memory")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def is_uri(name: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a place that is no folder of this machine's."""
    found = _URI.match(os.fspath(name))
    return found is not None and found[1] in SCHEMES


def place_of(name: str | os.PathLike[str]) -> Path:
    """The path of what a person names: a URI, or as `path_of` a file or folder. Raises OptionError
    for a URI of another kind, or one without a bucket."""
    from luckbase.solver.board.file import path_of  # and pydantic

    said = os.fspath(name)
    if not is_uri(said):
        found = _URI.match(said)
        if found is None or not said.startswith(f"{found[0]}/") or os.path.exists(said):
            return path_of(name)
        raise OptionError(
            f"'{said[:60]}' cannot hold tables; expected a folder, s3://, gs://, az:// or https://"
        )
    place = Place(said)
    if len(place.parts) < 2 or "?" in said or "#" in said:
        raise OptionError(f"{said[:80]}: expected {place.scheme}://BUCKET/PREFIX")
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
            found = self / first
            if found.is_file() or (not self.read_only and _objects(found).names()):
                yield found
        elif "*" not in first:
            yield from (self / first).glob(rest)
        elif not self.read_only:
            for name in _objects(self).names():
                if fnmatchcase(name, first):
                    yield from (self / name).glob(rest) if rest else (self / name,)
