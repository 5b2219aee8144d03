"""The manifest of a table: one JSON object that lists its contents.

``manifest.json`` identifies the board and its rules, and lists the table's goals, files and levels
(docs/reference/table-format.md). Other files are not part of the table. It ends with a hash of its
own text, so a changed byte is detected; its values are checked when it is read. `writer` controls
who may replace it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from luckbase.cluster.store import FORMAT
from luckbase.solver.board import registry
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.board.model import Board, identity_of, rules_form, rules_identity
from luckbase.solver.errors import (
    BoardError,
    CorruptTableError,
    ForeignTableError,
    OptionError,
    UnknownGameError,
)
from luckbase.solver.sentences import on_command_line

if TYPE_CHECKING:
    from luckbase.cluster.store.storage import Storage
    from luckbase.solver.game.game import Game

NAME = "manifest.json"
TIERS, SEARCH = "tiers", "search"
"""The part of the full table. Each search has its own, ``search-<id>`` (`search_part`)."""
DECISIONS = "decisions"
"""The part beyond the frontier, with best actions only (`cluster.answers.part_kinds`)."""
SHARDS = "shards/"
"""The folder of the stage files of a running search."""
KEY_SHIFT = 40
"""Row i of a tier has the key tier << 40 | i."""
MAX_VALUES = 4_000_000
"""Approximate maximum number of values in a manifest: 150,000 files."""
MAX_FOOTER = 64 << 20
"""Maximum bytes of a file's footer."""
MAX_GROUP_ROWS = 1 << 22
_SEARCH_PART = "search-[0-9a-f]{1,32}"
_FILE = re.compile(rf"(tiers|decisions|{_SEARCH_PART})/[\w-][\w.-]{{0,200}}\.parquet", re.ASCII)
CHECK = 32
"""Number of hexadecimal digits of a hash."""
Raw = bytes  # the manifest has a property `bytes`
_END = b',"check":"'
Whole = Annotated[int, Field(ge=0, lt=1 << 63)]
Key = Annotated[int, Field(ge=0, lt=1 << 64)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Part = Annotated[str, Field(pattern=rf"^(tiers|{_SEARCH_PART})$")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Box = Annotated[list[Key], Field(min_length=2, max_length=2)]
WriterId = Annotated[str, Field(pattern="^[0-9a-f]{8}$")]


@dataclass(frozen=True)
class Head:
    """A table's board and rules, without its reach. rules: the board's `rules_form`."""

    format: int
    game: str
    board: str
    identity: str
    rules: dict[str, Any]
    rules_version: int


@dataclass(frozen=True)
class Roots:
    """The roots of a search: `start` has the fields of each root, ordered by key."""

    start: Annotated[list[dict[str, Any]], Field(min_length=1)]


@dataclass(frozen=True)
class Goal:
    """The goal of a solve: a part of the table, and how far it must reach."""

    part: Part
    reach: dict[str, Whole | None]
    """Options such as ``frontier``; empty for a search, which has roots instead."""
    roots: Roots | None
    files: Whole  # number of files of a full table that reaches it
    board_file: str
    settings: dict[str, str]
    """The solved board's file, and the options given with ``--set``."""
    number: Whole = 0  # counted from 1 in order of arrival

    @property
    def ask(self) -> str:
        """An id of the goal: a hash of its part, reach and roots."""
        form = [self.part, self.reach, self.roots]
        return digest(json.dumps(form, default=vars, sort_keys=True))


@dataclass(frozen=True)
class Done:
    """A goal that is reached, with the number of files and states of its part."""

    ask: str
    files: Whole
    states: Whole


@dataclass(frozen=True)
class LevelEntry:
    """The level (`rules.Level`) by which a search's files are cut into stages, as JSON."""

    part: Part
    level: dict[str, Any]


@dataclass(frozen=True)
class FileEntry:
    """A Parquet file of the table."""

    name: str
    part: str
    tier: Annotated[int, Field(ge=0, lt=1 << 62 - KEY_SHIFT)]
    rows: Whole
    row_group_rows: Annotated[int, Field(gt=0, le=MAX_GROUP_ROWS)]
    first_key: Key
    last_key: Key
    """The keys are uint64."""
    bytes: Whole
    footer: Annotated[int, Field(gt=0, le=MAX_FOOTER)]
    """Size of the file and of its footer."""
    footer_sha256: Sha256
    sha256: Sha256
    """Of the footer and of the whole file, in hexadecimal digits."""
    error: Amount  # error bound of payoffs
    seconds: dict[str, Amount]  # core seconds by kind of work, such as ``solve``
    solver_version: str
    stages: list[Key] = field(default_factory=list)
    """Values of its search's level with states in the file; empty if solved in one piece."""
    boxes: list[Box] = field(default_factory=list)
    """The parts of these stages in the file (`solver.search.stages.Box`); empty for whole
    stages."""
    at: str = ""  # its path in the table, if different from its name

    @property
    def place(self) -> str:
        """Its path in the table."""
        return self.at or self.name

    @property
    def goal_part(self) -> str:
        """The part of the goals that need it; goals of the full table also need decisions."""
        return TIERS if self.part == DECISIONS else self.part

    @property
    def first_row(self) -> int:
        """For a file of the full table, the row of its tier with which it begins."""
        return self.first_key - (self.tier << KEY_SHIFT)

    def placed(self, path: str) -> FileEntry:
        return replace(self, at="" if path == self.name else path)

    def solved_in(self, seconds: float) -> FileEntry:
        return replace(self, seconds={"solve": round(seconds, 3), **self.seconds})


def row_spans(entries: Iterable[FileEntry]) -> dict[int, list[tuple[int, int]]]:
    """Return the row ranges [start, stop) of each tier, by number, in files of the full table."""
    by_tier: dict[int, list[tuple[int, int]]] = {}
    for entry in sorted(entries, key=lambda entry: entry.first_key):
        spans, start = by_tier.setdefault(entry.tier, []), entry.first_row
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, entry.first_row + entry.rows))
    return by_tier


def placed(name: str, writer: str, sha256: str = "") -> str:
    """Return the path of a writer's file with a given name (`cluster.store.writer`).

    sha256: of a file of the table. Because the path names the content, a request that arrives late
        or twice never replaces a file by another one.
    """
    stem, _, ending = name.rpartition(".")
    return ".".join(filter(None, [stem, writer, sha256[:12], ending]))


Line = Goal | Done | LevelEntry | FileEntry


@dataclass(frozen=True)
class Next:
    """The progress of solving a goal again (``--force``), while the table still answers queries."""

    ask: str  # the goal's id (`Goal.ask`)
    files: list[FileEntry]
    levels: list[LevelEntry]


@dataclass(frozen=True)
class WriterRecord:
    """The process that may replace the manifest, or that replaced it last."""

    id: WriterId
    host: str
    process: Whole
    machine: str
    started: str  # when the process started, by its host's clock
    since: str  # when it became the writer
    ended: bool = False  # True if other processes may write

    def __str__(self) -> str:
        return f"process {self.process} on {self.host} since {self.since}"


@dataclass(frozen=True)
class _Form(Head):
    """The manifest as it is written."""

    format: Literal[5]
    created: str
    revision: Whole
    writer: WriterRecord | None
    writers: list[WriterId]
    goals: list[Goal]
    done: list[Done]
    levels: list[LevelEntry]
    files: list[FileEntry]
    next: Next | None


@dataclass(repr=False)
class Manifest:
    """The manifest of a table."""

    head: Head
    goals: list[Goal] = field(default_factory=list)
    done: dict[str, Done] = field(default_factory=dict)
    levels: dict[str, LevelEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    """`done` by `Goal.ask`, `levels` by part, `files` by name."""
    next: Next | None = None  # progress of solving a goal again
    writer: WriterRecord | None = None  # the process that replaced the manifest last
    writers: list[str] = field(default_factory=list)  # the ids of all writers so far
    created: str = ""  # a random name of this table
    revision: int = 0  # number of replacements

    def add(self, line: Line) -> None:
        """Add a goal, a level, a file, or a goal's completion. Duplicates are ignored."""
        if isinstance(line, Goal):
            same = [replace(goal, number=0, files=0) for goal in self.goals]
            if replace(line, number=0, files=0) not in same:
                self.goals = sorted([*self.goals, line], key=lambda goal: goal.number)
        elif isinstance(line, Done):
            self.done.setdefault(line.ask, line)
        elif isinstance(line, LevelEntry):
            self.levels.setdefault(line.part, line)
        else:
            self.files.setdefault(line.name, line)

    def take_out(self, names: Iterable[str], *parts: str) -> list[FileEntry]:
        """Remove files and return their entries. Their goals, and the goals of `parts`, are no
        longer done."""
        entries = [self.files.pop(name) for name in names]
        lost = {*parts, *(entry.goal_part for entry in entries)}
        for goal in self.goals:
            if goal.part in lost:
                self.done.pop(goal.ask, None)
        return entries

    @property
    def is_written(self) -> bool:
        return self.writer is not None and not self.writer.ended

    def copied(self) -> Manifest:
        """Return a copy that `add` and `take_out` of this one do not change."""
        return replace(
            self, goals=[*self.goals], done={**self.done}, levels={**self.levels},
            files={**self.files},
        )  # fmt: skip

    def encoded(self) -> Raw:
        by_name = {
            name: [getattr(self, name)[key] for key in sorted(getattr(self, name))]
            for name in ("done", "levels", "files")
        }
        form = {**vars(self.head), **vars(self), **by_name}
        del form["head"]
        return seal(form)

    # --- what it says --------------------------------------------------------------------------

    def of_part(self, *parts: str) -> list[FileEntry]:
        """Return the files of these parts, by first key and name."""
        entries = [entry for entry in self.files.values() if entry.part in parts]
        return sorted(entries, key=lambda entry: (entry.first_key, entry.name))

    def part_names(self) -> list[str]:
        """Return the parts with files or goals; the full table is first."""
        names = {goal.part for goal in self.goals} | {entry.part for entry in self.files.values()}
        return sorted(names, key=lambda name: (name != TIERS, name))

    def progress(self, goal: Goal) -> tuple[int, int]:
        """Return the number of existing files of a goal of the full table, and its total."""
        return min(len(self.of_part(TIERS, DECISIONS)), goal.files), goal.files

    def is_done(self, goal: Goal) -> bool:
        return goal.ask in self.done

    @property
    def complete(self) -> bool:
        return bool(self.goals) and all(map(self.is_done, self.goals))

    @property
    def furthest(self) -> Goal | None:
        """The goal of the full table with the largest reach; None if there is none."""
        goals = [goal for goal in self.goals if goal.part == TIERS]
        return max(goals, key=lambda goal: (goal.files, goal.number), default=None)

    @property
    def reach(self) -> dict[str, Any]:
        """The largest reach of any goal of the full table."""
        reach: dict[str, Any] = {}
        for goal in self.goals:
            for option, value in goal.reach.items():
                before = reach.setdefault(option, value)
                if value is not None and (before is None or value > before):
                    reach[option] = value
        return reach

    @property
    def stores(self) -> str:
        """What the full table stores: payoffs, or also decisions beyond them."""
        return "payoffs and decisions" if self.of_part(DECISIONS) else "payoffs"

    @property
    def origin(self) -> Goal | None:
        """The goal that names the table: `furthest`, otherwise the last search's."""
        return self.furthest or (self.goals[-1] if self.goals else None)

    def error(self, part: str | None = None) -> float:
        """Return an error bound for the payoffs of a part, or of all parts; for `DECISIONS`, a
        bound on the loss by a best action."""
        parts = (part,) if part else {entry.part for entry in self.files.values()} - {DECISIONS}
        return max((entry.error for entry in self.of_part(*parts)), default=0.0)

    @property
    def rows(self) -> int:
        entries = self.files.values()
        paid = {entry.tier for entry in entries if entry.part == TIERS}
        return sum(e.rows for e in entries if e.part != DECISIONS or e.tier not in paid)

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.files.values())

    def board(self, reach: dict[str, Any]) -> Board:
        """Return the board of the table with a given reach. Raises UnknownGameError if the game is
        unknown here, CorruptTableError for an invalid board."""
        head = self.head
        if not registry.known(head.game):
            game = on_command_line(
                "name the file that registers it: --game FILE.py", "register it, or load its file"
            )
            raise UnknownGameError(
                f"the table {head.identity} of {head.board}: its game '{head.game}' is unknown; "
                f"{game}"
            )
        try:
            return _board(json.dumps([head.board, head.rules, reach], sort_keys=True))
        except (BoardError, OptionError, KeyError) as error:
            raise CorruptTableError(
                f"the table {head.identity} of {head.game} {head.board}: is not one that this "
                f"luckbase knows: {error}"
            ) from None


@lru_cache(maxsize=16)
def _board(text: str) -> Board:
    name, form, reach = json.loads(text)
    board = board_from_canonical(name, form)  # raises an error if the form is not a board
    if not reach:
        return board
    options = type(board).options()
    for option, value in reach.items():
        *sections, key = map(str, options[option])
        inner = form
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return board_from_canonical(name, form)


def search_part(roots: Roots) -> str:
    """Return the part of the table for the search below these roots."""
    return f"{SEARCH}-{digest(json.dumps(roots.start, sort_keys=True))[:12]}"


def reach_of(board: Board) -> dict[str, Any]:
    """Return the board's options of reach, by name."""
    options = type(board).options()
    return {option: reduce(getattr, map(str, options[option]), board)
            for option in sorted(type(board).reach)}  # fmt: skip


@lru_cache(maxsize=1)
def solver_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("luckbase")
    except PackageNotFoundError:
        return "not installed"


def new_head(game: Game) -> Head:
    board, form = game.board, rules_form(game.board)
    return Head(FORMAT, board.game, board.name, rules_identity(game), form, game.rules_version)


def table_directory(results: Path, game: Game) -> Path:
    """Return results/<game>/<board>/<rules identity>."""
    return results / game.board.game / game.board.name / rules_identity(game)


# --- as it is written ---


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:CHECK]


def seal(form: dict[str, Any]) -> Raw:
    """Return JSON of `form` with its hash as the last key."""
    style: dict[str, Any] = {"sort_keys": True, "separators": (",", ":"), "allow_nan": False}
    body = json.dumps(form, default=vars, **style)[:-1].encode()
    return body + _check_of(body)


def _check_of(body: Raw) -> Raw:
    """Return the end of a manifest, with the hash of the preceding text."""
    return _END + hashlib.sha256(body).hexdigest()[:CHECK].encode() + b'"}\n'


def decoded(content: Raw, where: Path) -> Manifest:
    """Decode a manifest. Raises CorruptTableError if it was changed, ForeignTableError if a later
    luckbase wrote it."""
    path = where / NAME
    if sum(map(content.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise CorruptTableError(_changed(path, "is larger than any that luckbase writes"))
    body, end, check = content.rpartition(_END)
    if end + check != _check_of(body):
        raise CorruptTableError(_changed(path, "its check does not match"))
    body += b"}"
    try:
        return _manifest_of(adapter(_Form).validate_json(body, strict=True))
    except ValidationError as error:
        errors = error.errors(include_url=False)
        for each in errors:
            if each["loc"] == ("format",) and type(each["input"]) is int:
                raise ForeignTableError(
                    f"{path}: format {each['input']}; expected {FORMAT}; a newer luckbase wrote "
                    "it: update this one"
                ) from None
        location = ".".join(map(str, errors[0]["loc"]))
        why = f"{location} is not what format {FORMAT} has there"
        raise CorruptTableError(_changed(path, why)) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptTableError(_changed(path, str(error))) from None


def _manifest_of(form: _Form) -> Manifest:
    """Return the manifest. Raises ValueError for values that luckbase never writes."""
    if identity_of(form.rules, form.rules_version) != form.identity:
        raise ValueError("its identity is not that of its rules")
    for goal in form.goals:
        if goal.part != (search_part(goal.roots) if goal.roots else TIERS):
            raise ValueError(f"the roots of {goal.part} are others")
    for entry in (*form.files, *(form.next.files if form.next else ())):
        if why := _why_no_file(entry):
            raise ValueError(f"file {entry.name[:60]}: {why}")
    head = Head(*(getattr(form, each.name) for each in fields_of(Head)))
    return Manifest(
        head, form.goals, {done.ask: done for done in form.done},
        {level.part: level for level in form.levels}, {entry.name: entry for entry in form.files},
        form.next, form.writer, form.writers, form.created, form.revision,
    )  # fmt: skip


def _why_no_file(entry: FileEntry) -> str:
    """Return why an entry cannot describe one of our files; "" if it can."""
    matches = map(_FILE.fullmatch, (entry.name, entry.place))
    if any(match is None or match[1] != entry.part for match in matches):
        return "names a file outside the table"
    if entry.footer > entry.bytes:
        return "its footer has no such size"
    last = entry.first_key + entry.rows - 1
    if entry.part not in (TIERS, DECISIONS):
        return "its keys are none" if entry.tier or entry.first_key > entry.last_key else ""
    of_tier = entry.first_row >= 0 and last == entry.last_key and last >> KEY_SHIFT == entry.tier
    return "" if of_tier else "its keys are not those of its rows"


T = TypeVar("T")


@lru_cache(maxsize=4)
def adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def _changed(path: Path, why: str) -> str:
    again = "luckbase solve of its board makes it again"
    if getattr(path, "read_only", False):
        again = "expected what luckbase publish wrote; publish the table there again"
    return f"{path}: was changed after luckbase wrote it: {why[:160]}; {again}"


def file_error(storage: Storage, path: Path, why: str) -> CorruptTableError:
    """Return an error for a changed file of a table, with advice."""
    again = "delete it, and luckbase solve of its board makes it again"
    if not storage.lists:
        again = "its server has changed it; publish the table there again"
    return CorruptTableError(f"{path}: is not as luckbase wrote it ({why}); {again}")


@contextmanager
def file_errors(storage: Storage, path: Path) -> Iterator[None]:
    """Raise `file_error` if a file that is read is missing or truncated."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise file_error(storage, path, "it is missing") from None
    except CorruptTableError as error:  # fewer bytes than there should be
        raise file_error(storage, path, f"it {str(error).rpartition(': ')[2]}") from None
