"""Lines of the ledger: what each says, and the seal by which a changed byte is known.

A line is compact JSON with sorted keys whose last is ``check``: the first 32 hexadecimal digits of
the SHA-256 of the identity, a line feed and the line without it. So a changed byte is refused, and
so is a line of another table. `table.json` is sealed alike, over its own text, without identity.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from luckbase.cluster.table import FORMAT

TIERS, SEARCH = "tiers", "search"
"""The parts that grow; a search that ends at another table has a part of its own,
``search-<id>``."""
CHECK = 32
_SEALED = re.compile(r'(?s)(.*),\s*"check":\s*"([0-9a-f]{32})"\s*\}\s*')
_NAME = re.compile(r"(tiers|search|search-[0-9a-f]{1,32})/[A-Za-z0-9_.-]{1,200}\.parquet")
_SHARD = re.compile(r"[0-9a-f]{1,64}-[0-9]{1,12}-[0-9]{1,12}(\.[0-9]{1,12}){0,20}")
Raw = bytes  # an entry has a field `bytes`


@dataclass(frozen=True)
class Head:
    """Which table: the board under its rules, whatever it reaches. rules: its `rules_form`."""

    format: int
    game: str
    board: str
    identity: str
    rules: dict[str, Any]
    rules_version: int


@dataclass(frozen=True)
class Using:
    """The table at which a search ends."""

    table: str
    identity: str


@dataclass(frozen=True)
class Roots:
    """Where a search begins: `start`, the fields of each root, in the order of their keys; the
    table that it ends at. max_depth: null in this format, of which a goal's name is made."""

    start: list[dict[str, Any]]
    max_depth: None = None
    using: Using | None = None


@dataclass(frozen=True)
class Goal:
    """What a solve was asked for (module docstring). margin: whether the files of the full table
    have that column, all of them or none. number: counted from 1 as they came."""

    part: str
    reach: dict[str, Any]
    roots: Roots | None
    files: int
    board_file: str
    settings: dict[str, str]
    margin: bool = False
    number: int = 0

    @property
    def ask(self) -> str:
        """What names a goal whoever asked: its part, reach and roots."""
        said = asdict(self)
        return digest(json.dumps([said["part"], said["reach"], said["roots"]], sort_keys=True))


@dataclass(frozen=True)
class Done:
    """A goal is there: how many files of its part and states it took."""

    ask: str
    files: int
    states: int


@dataclass(frozen=True)
class LevelEntry:
    """The level by which the files of a search are stages (`capabilities.Level`), as JSON. given:
    the SHA-256 of what was known to it, "" for nothing. cutting: how stages were cut into shards
    (`cluster.search.shards`): a search that is cut another way can not go on from it."""

    ask: str
    level: dict[str, Any]
    given: str = ""
    cutting: str = ""


@dataclass(frozen=True)
class FileEntry:
    """One Parquet file. Keys are uint64; error: the bound on a payoff's; seconds of one core.
    precision: as error, but for what hangs on decisions that could not be told; 0 where none does.

    stages: those of its search's level that it holds states of; none where it was solved in one
    piece. boxes: the parts of these that it holds (`solver.search.stage.Box`); none: all of them.
    bytes, footer: the size of the file and of its footer. checks: of the footer and then of each
    row group (`cluster.table.parquet`), 8 bytes each, base64.
    """

    name: str
    part: str
    tier: int
    rows: int
    row_group_rows: int
    first_key: int
    last_key: int
    bytes: int
    footer: int
    checks: str
    error: float
    seconds: dict[str, float]
    solver_version: str
    stages: list[int] = field(default_factory=list)
    boxes: list[list[int]] = field(default_factory=list)
    precision: float = 0.0

    @property
    def told(self) -> float:
        """The bound on the error of a payoff where all decisions are told."""
        return self.precision or self.error

    def check_list(self) -> list[Raw]:
        """The checks, 8 bytes each."""
        raw = base64.b64decode(self.checks, validate=True)
        return [raw[i : i + 8] for i in range(0, len(raw), 8)]


@dataclass(frozen=True)
class ShardEntry:
    """One shard of a search that runs, found and not solved yet: its stage file, of what search,
    the SHA-256 of what was known to it, "" for nothing. level, stages: what it holds; box: the part
    of its stages that it was to find, none for all; boxes, spans: the states of each box that it
    found, and where it lies; rest: boxes that it left to others. askers: the shards that ask it, by
    level. What it asks lies beside its file, with its own SHA-256. edges: expanded."""

    name: str
    ask: str
    rows: int
    bytes: int
    sha256: str
    seconds: float
    given: str
    level: int
    stages: list[int]
    boxes: list[int]
    ask_sha256: str
    edges: int
    box: list[int] = field(default_factory=list)
    spans: list[list[int]] = field(default_factory=list)
    rest: list[list[int]] = field(default_factory=list)
    askers: dict[str, list[str]] = field(default_factory=dict)


Line = Goal | Done | LevelEntry | FileEntry | ShardEntry
_KINDS: dict[str, type[Line]] = {
    "goal": Goal, "done": Done, "level": LevelEntry, "file": FileEntry, "shard": ShardEntry,
}  # fmt: skip


def digest(text: str) -> str:
    """The check of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:CHECK]


def seal(salt: str, form: dict[str, Any], indent: int | None = None) -> str:
    """JSON of `form` with its check as the last key; a single line unless `indent`."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(form, sort_keys=True, separators=separators, indent=indent)
    body = text[:-1].rstrip()
    between = "" if indent is None else "\n" + " " * indent
    return f'{body},{between}"check":{separators[1][1:]}"{digest(salt + chr(10) + body)}"}}\n'


def unseal(salt: str, text: str) -> dict[str, Any]:
    """The form in a sealed text. Raises ValueError where a byte of it has changed."""
    found = _SEALED.fullmatch(text)
    if not found:
        raise ValueError("has no check")
    if digest(salt + "\n" + found[1]) != found[2]:
        raise ValueError("its check does not match")
    form = json.loads(found[1] + "}")
    assert isinstance(form, dict)
    return form


def as_text(head: Head, line: Line) -> str:
    """A line of the ledger as it is written."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(line, cls))
    return seal(head.identity, {"kind": kind, **asdict(line)})


_ADAPTERS = {name: TypeAdapter(cls) for name, cls in _KINDS.items()}
HEAD_ADAPTER = TypeAdapter(Head)


def from_text(head: Head, text: str) -> Line:
    """The line in a text. Raises ValueError."""
    form = unseal(head.identity, text)
    kind = form.pop("kind", None)
    if kind not in _ADAPTERS:
        raise ValueError(f"'{str(kind)[:20]}' is no kind of line")
    line: Line = validated(_ADAPTERS[kind], form)
    if isinstance(line, FileEntry) and not (
        _NAME.fullmatch(line.name) and line.name.startswith(f"{line.part}/")
    ):
        raise ValueError("names a file outside the table")
    if isinstance(line, ShardEntry) and not _SHARD.fullmatch(line.name):
        raise ValueError("names a file outside the table")
    return line


def validated(adapter: TypeAdapter[Any], form: dict[str, Any]) -> Any:
    """The object that a form says. Raises ValueError."""
    try:
        return adapter.validate_json(json.dumps(form), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where} is not what format {FORMAT} has there") from None
