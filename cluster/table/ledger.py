"""What a ledger says: what is committed of a table. What it does not name is not in the table.

``table.json``, the head, says which board and rules; the lines say the rest: goals, files, levels
(docs/reference/table-format.md). `entries` reads and commits them. Each is sealed, so a changed
byte is refused, and so is a line of another table. Nothing but ``seconds`` depends on when a table
was solved or with how many workers, and goals on what was asked in which order.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from luckbase.cluster.table import FORMAT
from luckbase.solver.board import registry
from luckbase.solver.board.file import board_from_canonical, name_of, read_board
from luckbase.solver.board.model import Board, changed_options, rules_form, rules_identity
from luckbase.solver.errors import (
    BoardError,
    CorruptTableError,
    LuckbaseError,
    OptionError,
    UnknownGameError,
)
from luckbase.solver.result import Result
from luckbase.solver.sentences import fields, many, on_command_line, program

if TYPE_CHECKING:
    from luckbase.cluster.table.storage import Storage
    from luckbase.solver.game.game import Game

TIERS, SEARCH = "tiers", "search"
"""The part of the full table, which grows; each search has a part of its own, ``search-<id>``
(`search_part`)."""
DECISIONS, RUNS = "decisions", "runs"
"""The parts of a table of decisions: blocks (`cluster.table.decisions`), and the same as runs along
a score, in Parquet for others. A few of its tiers have their payoffs as well, in `TIERS`."""
SHARDS = "shards/"
"""The folder of the stage files of a search that runs."""
KEY_SHIFT = 40
"""Row i of a tier has the key tier << 40 | i."""
_NAME = re.compile(
    r"((tiers|runs|search-[0-9a-f]{1,32})/[A-Za-z0-9_.-]{1,200}\.parquet"
    r"|decisions/[A-Za-z0-9_.-]{1,200}\.blocks)"
)
CHECK = 32
"""Digits of the check of a sealed text."""
_SEALED = re.compile(r'(?s)(.*),\s*"check":\s*"([0-9a-f]{32})"\s*\}\s*')
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
class Roots:
    """Where a search begins: `start`, the fields of each root, in the order of their keys."""

    start: list[dict[str, Any]]


@dataclass(frozen=True)
class Goal:
    """What a solve was asked for (module docstring). number: counted from 1 as they came."""

    part: str
    reach: dict[str, Any]
    roots: Roots | None
    files: int
    board_file: str
    settings: dict[str, str]
    number: int = 0

    @cached_property
    def ask(self) -> str:
        """What names a goal whoever asked: its part, reach and roots."""
        form = asdict(self)
        return digest(json.dumps([form["part"], form["reach"], form["roots"]], sort_keys=True))


@dataclass(frozen=True)
class Done:
    """A goal is there: how many files of its part and states it took."""

    ask: str
    files: int
    states: int


@dataclass(frozen=True)
class LevelEntry:
    """The level (`rules.Level`) that cuts the files of a search's part into stages, as
    JSON."""

    part: str
    level: dict[str, Any]


@dataclass(frozen=True)
class FileEntry:
    """One Parquet file. Keys are uint64; error: the bound on a payoff's; seconds of one core.

    stages: those of its search's level that it holds states of; none where it was solved in one
    piece. boxes: the parts of these that it holds (`solver.search.stages.Box`); none: all of them.
    at: where it lies, if not under its name (`folder.put_file`).
    bytes, footer: the size of the file and of its footer. footer_sha256, sha256: of the footer and
    of the whole file, in hexadecimal digits.
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
    footer_sha256: str
    sha256: str
    error: float
    seconds: dict[str, float]
    solver_version: str
    stages: list[int] = field(default_factory=list)
    boxes: list[list[int]] = field(default_factory=list)
    at: str = ""

    @property
    def place(self) -> str:
        """Where it lies in the table."""
        return self.at or self.name

    @property
    def first_row(self) -> int:
        """The row of its tier that a file of the full table begins with."""
        return self.first_key - (self.tier << KEY_SHIFT)

    def placed(self, at: str) -> FileEntry:
        """The same where it lies there."""
        return replace(self, at="" if at == self.name else at)

    def solved_in(self, seconds: float) -> FileEntry:
        """The same with the seconds that solving it took."""
        return replace(self, seconds={"solve": round(seconds, 3), **self.seconds})


def row_spans(entries: Iterable[FileEntry]) -> dict[int, list[tuple[int, int]]]:
    """The rows [start, stop) of each tier, by number, that files of the full table hold."""
    by_tier: dict[int, list[tuple[int, int]]] = {}
    for entry in sorted(entries, key=lambda entry: entry.first_key):
        spans, start = by_tier.setdefault(entry.tier, []), entry.first_row
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, entry.first_row + entry.rows))
    return by_tier


def marked(name: str, mark: str) -> str:
    """The name under which a driver puts a file of this name (`Entries.mark`)."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}{mark}.{ending}"


Line = Goal | Done | LevelEntry | FileEntry
_KINDS: dict[str, type[Line]] = {
    "goal": Goal, "done": Done, "level": LevelEntry, "file": FileEntry,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(repr=False)
class Ledger:
    """What a table's ledger says. damage: in a reading that goes on past it, a sentence each.
    footers: of its files, by name, where they were read with it (`cluster.table.index`).
    compacted: whether one entry says it all. entries: where a driver adds to it
    (`entries.Entries`), None before it begins."""

    head: Head
    goals: list[Goal] = field(default_factory=list)
    done: dict[str, Done] = field(default_factory=dict)
    levels: dict[str, LevelEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    footers: Mapping[str, Raw] = field(default_factory=dict)
    compacted: bool = False
    entries: Any = field(default=None, compare=False)

    def add(self, line: Line) -> None:
        """Take in a line; the first of several that say the same thing counts."""
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

    def lines(self) -> list[Line]:
        """Every line, in an order that does not depend on the order of work."""
        kinds: tuple[dict[str, Any], ...] = self.done, self.levels, self.files
        return [*self.goals, *(kind[name] for kind in kinds for name in sorted(kind))]

    def as_text(self) -> str:
        """Every line as it is written."""
        return "".join(as_text(self.head, line) for line in self.lines())

    # --- what it says --------------------------------------------------------------------------

    def of_part(self, part: str) -> list[FileEntry]:
        """The files of a part, by first key and name."""
        entries = [entry for entry in self.files.values() if entry.part == part]
        return sorted(entries, key=lambda entry: (entry.first_key, entry.name))

    def part_names(self) -> list[str]:
        """The parts that there are files or goals of: the full table, the searches, the others."""
        names = {goal.part for goal in self.goals} | {entry.part for entry in self.files.values()}
        return sorted(names, key=lambda name: (name != TIERS, name))

    def is_done(self, goal: Goal) -> bool:
        """Whether all of a goal is there, as far as the ledger says."""
        return goal.ask in self.done

    @property
    def complete(self) -> bool:
        """Whether everything that was ever asked for is there."""
        return bool(self.goals) and all(map(self.is_done, self.goals))

    @property
    def furthest(self) -> Goal | None:
        """The goal of the full table, of its payoffs or of its decisions, that reaches furthest;
        None where there is none."""
        goals = [goal for goal in self.goals if goal.part in (TIERS, DECISIONS)]
        return max(goals, key=lambda goal: (goal.files, goal.number), default=None)

    @property
    def stores(self) -> str:
        """What it holds of the full table: payoffs; decisions, with some payoffs; or both."""
        parts = {goal.part for goal in self.goals} & {TIERS, DECISIONS}
        if DECISIONS not in parts:
            return "payoffs"
        return "payoffs and decisions" if TIERS in parts else "decisions"

    @property
    def origin(self) -> Goal | None:
        """The goal by which the table is named: `furthest`, else the one of the last search."""
        return self.furthest or (self.goals[-1] if self.goals else None)

    def error(self, part: str | None = None) -> float:
        """The bound on the error of a payoff stored in a part, or in any."""
        errors = (e.error for e in self.files.values() if part in (None, e.part))
        return max(errors, default=0.0)

    @property
    def rows(self) -> int:
        """States in the table so far."""
        entries = self.files.values()
        paid = {entry.tier for entry in entries if entry.part == TIERS}
        return sum(e.rows for e in entries if e.part != DECISIONS or e.tier not in paid)

    @property
    def bytes(self) -> int:
        """Bytes of the table's files so far."""
        return sum(entry.bytes for entry in self.files.values())

    def board(self, reach: dict[str, Any]) -> Board:
        """The board of the table, reaching so far.

        Raises UnknownGameError where this luckbase has no such game, CorruptTableError for a board
        that it does not take.
        """
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
    options = registry.find(form["game"]).model().options() if reach else {}
    for option, value in reach.items():
        *sections, key = map(str, options[option])
        inner = form
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return board_from_canonical(name, form)


def as_its_file_begins(board: Board, goal: Goal | None) -> Board:
    """A table's board with what its file says and the ledger does not hold, for it changes no
    payoff, as how plays begin; as it is where the file is gone or says something else."""
    more = [name for name, field in type(board).model_fields.items() if field.exclude]
    if goal is None or not goal.board_file or not more:
        return board
    with suppress(LuckbaseError):
        current = read_board(Path(goal.board_file), goal.settings)
        if rules_form(current) == rules_form(board):
            return board.model_copy(update={name: getattr(current, name) for name in more})
    return board


# --- what is said of a table ---


@dataclass(frozen=True)
class Origin(Result):
    """Which table answers: its board, the options that are not at the game's defaults, its rules
    identity, and for one named by its path why it is stale, if it is."""

    board: str
    options: dict[str, Any] = field(default_factory=dict)
    solve_id: str = ""
    stale: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{f'{self.board} {fields(self.options)}'.rstrip()}, solve {self.solve_id}"


def origin_of(game: Game, stale: tuple[str, ...] = ()) -> Origin:
    """The board and the rules of a game, as an answer says them."""
    board = game.board
    return Origin(board.name, changed_options(board), rules_identity(game), stale)


RESULTS = "results"
"""Where tables are kept by default."""


def board_command(
    board_file: str, settings: dict[str, str], game: str, results: Path | None = None,
    words: str | None = None,
) -> str:  # fmt: skip
    """The command that solves a board of a game, or another whose first words these are: with its
    options, and its results where they are not the default."""
    words = f"{program()} solve" if words is None else words
    options = [word for k, v in settings.items() for word in ("--set", f"{k}={v}")]
    if results is not None and os.path.realpath(results) != os.path.realpath(RESULTS):
        options += ["--results", str(results)]
    file = registry.find(game).file
    if file is not None:
        options += ["--game", os.path.relpath(file.path)]
    return shlex.join([*words.split(), name_of(board_file), *options])


def solve_command(
    goal: Goal, game: Game, results: Path | None = None, words: str | None = None, file: str = ""
) -> str:
    """The command that solves what a goal asked for. results: where its table is. words: as
    `board_command`. file: the board's, if it is not the one that the goal names."""
    file = file or goal.board_file or "BOARD"
    line = board_command(file, goal.settings, game.board.game, results, words)
    if goal.roots is None:
        return f"{line} --store decisions" if goal.part == DECISIONS else line
    start = goal.roots.start
    if len(start) == 1 or not is_its_start(game, goal.roots):
        line += f" --from {fields(in_order(start[0], game))}"
        line += f" (and {many(len(start) - 1, 'more state')})" if len(start) > 1 else ""
    return line


def search_part(roots: Roots) -> str:
    """The part of the table that holds what lies below these roots."""
    return f"{SEARCH}-{digest(json.dumps(roots.start, sort_keys=True))[:12]}"


def is_its_start(game: Game, roots: Roots) -> bool:
    """Whether these are the states, one or several, in which plays of the game begin."""
    words = [game.describe(state) for _, state in game.starts()]
    return len(words) == len(roots.start) and all(each in roots.start for each in words)


def in_order(state: Mapping[str, Any], game: Game) -> dict[str, Any]:
    """The fields of a state in the game's order; the ledger sorts them."""
    return {name: state[name] for name in game.fields.names if name in state}


def reach_of(board: Board) -> dict[str, Any]:
    """The board's options of reach, by name."""
    options = type(board).options()
    return {option: reduce(getattr, map(str, options[option]), board)
            for option in sorted(type(board).reach)}  # fmt: skip


@lru_cache(maxsize=1)
def solver_version() -> str:
    """The version of luckbase that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("luckbase")
    except PackageNotFoundError:
        return "not installed"


def new_head(game: Game) -> Head:
    """The head of a table of the game."""
    board, form = game.board, rules_form(game.board)
    return Head(FORMAT, board.game, board.name, rules_identity(game), form, game.rules_version)


def table_directory(results: Path, game: Game) -> Path:
    """results/<game>/<board>/<rules identity>."""
    return results / game.board.game / game.board.name / rules_identity(game)


def file_error(storage: Storage, path: Path, why: str) -> CorruptTableError:
    """Return the error that a file of a table has changed, and the remedy."""
    again = "delete it, and luckbase solve of its board makes it again"
    if not storage.lists:
        again = "its server has changed it; publish the table there again"
    return CorruptTableError(f"{path}: is not as luckbase wrote it ({why}); {again}")


@contextmanager
def file_errors(storage: Storage, path: Path) -> Iterator[None]:
    """Raise `file_error` if a file that is read is missing, or shorter than it should be."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise file_error(storage, path, "it is missing") from None
    except CorruptTableError as error:  # fewer bytes than there should be
        raise file_error(storage, path, f"it {str(error).rpartition(': ')[2]}") from None


# --- sealed text ---


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
    match = _SEALED.fullmatch(text)
    if not match:
        raise ValueError("has no check")
    if digest(salt + "\n" + match[1]) != match[2]:
        raise ValueError("its check does not match")
    form = json.loads(match[1] + "}")
    assert isinstance(form, dict)
    return form


def as_text(head: Head, line: Line) -> str:
    """A line of the ledger as it is written."""
    flat = isinstance(line, FileEntry)  # others have dataclasses in them
    form = vars(line) if flat else asdict(line)
    return seal(head.identity, {"kind": _NAMES[type(line)], **form})


def from_text(head: Head, text: str) -> Line:
    """The line in a text. Raises ValueError."""
    form = unseal(head.identity, text)
    kind = form.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(f"'{str(kind)[:20]}' is not a kind of line")
    line: Line = validated(_KINDS[kind], form)
    if isinstance(line, FileEntry):
        names = line.name, line.place
        if not all(_NAME.fullmatch(n) and n.startswith(f"{line.part}/") for n in names):
            raise ValueError("names a file outside the table")
    return line


_adapter: Callable[[type], TypeAdapter[Any]] = lru_cache(TypeAdapter)


def validated(kind: type[Head | Line], form: dict[str, Any]) -> Any:
    """The head or the line that a form says. Raises ValueError."""
    try:
        return _adapter(kind).validate_json(json.dumps(form), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where} is not what format {FORMAT} has there") from None
