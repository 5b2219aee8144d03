"""The ledger: what is committed. What it does not name is not in the table.

``table.json``, the head, says which board and rules; it is written once and never changes. Every
commit adds one small object ``ledger/<name>.jsonl`` of a line or several and never touches another;
at the end of a solve all lines are written into one object (`compact`) and the others deleted, so a
table of 10,000 files opens at once. Kinds of line::

    goal    what a solve was asked for: how far (options of reach) or from which roots; where the
            board was read and with which options; how many files that takes
    done    that all of a goal is there; by `ask`, which a goal has of its part, reach and roots
    file    one Parquet file: rows, keys, size, checks, error bound, cost in seconds
    level   by which a search was cut into stages
    shard   one shard of a search that runs, in shards/; gone when the search is done

Every line is sealed (`lines`): a changed byte is refused, and so is a line of another table.

To flush a disk takes milliseconds, for one line as for a hundred: a driver with many workers hands
out new work first and commits what came meanwhile at once (`Commits`).

Nothing but ``seconds`` depends on when a table was solved or with how many workers, and goals on
what was asked in which order.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from luckbase.cluster.table import FORMAT
from luckbase.cluster.table.lines import (
    HEAD_ADAPTER,
    SEARCH,
    TIERS,
    Done,
    FileEntry,
    Goal,
    Head,
    LevelEntry,
    Line,
    ShardEntry,
    as_text,
    digest,
    from_text,
    seal,
    unseal,
    validated,
)
from luckbase.cluster.table.storage import Storage
from luckbase.solver.board import registry
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.board.identity import identity_of, rules_form, rules_identity
from luckbase.solver.board.model import Board
from luckbase.solver.errors import (
    BoardError,
    CorruptTableError,
    ForeignTableError,
    MissingTableError,
    OptionError,
    UnknownGameError,
)
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import on_command_line

HEAD = "table.json"
LINES, ALL = "ledger/", "ledger/all-"
_TRIES = 50


@dataclass(repr=False)
class Ledger:
    """What a table's ledger says. damage: in a reading that goes on past it, a sentence each."""

    head: Head
    goals: list[Goal] = field(default_factory=list)
    done: dict[str, Done] = field(default_factory=dict)
    levels: dict[str, LevelEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)

    def add(self, line: Line) -> None:
        """Take in a line; the first of several that say the same thing counts."""
        if isinstance(line, Goal):
            if all(_same_goal(line, goal) is False for goal in self.goals):
                self.goals.append(line)
                self.goals.sort(key=lambda goal: goal.number)
        elif isinstance(line, Done):
            self.done.setdefault(line.ask, line)
        elif isinstance(line, LevelEntry):
            self.levels.setdefault(line.ask, line)
        elif isinstance(line, FileEntry):
            self.files.setdefault(line.name, line)
        else:
            self.shards.setdefault(line.name, line)

    def lines(self) -> list[Line]:
        """Every line, in an order that does not depend on the order of work."""
        done = [self.done[ask] for ask in sorted(self.done)]
        files = [self.files[name] for name in sorted(self.files)]
        levels = [self.levels[ask] for ask in sorted(self.levels)]
        return [
            *self.goals,
            *done,
            *levels,
            *files,
            *(self.shards[name] for name in sorted(self.shards)),
        ]

    # --- what it says --------------------------------------------------------------------------

    def of_part(self, part: str) -> list[FileEntry]:
        """The files of a part, by first key and name."""
        found = [entry for entry in self.files.values() if entry.part == part]
        return sorted(found, key=lambda entry: (entry.first_key, entry.name))

    def part_names(self) -> list[str]:
        """The parts that there are files or goals of: the full table, the searches, the others."""
        names = {goal.part for goal in self.goals} | {entry.part for entry in self.files.values()}
        return sorted(names, key=lambda name: ((TIERS, SEARCH).index(name) if name in
                                               (TIERS, SEARCH) else 2, name))  # fmt: skip

    def is_done(self, goal: Goal) -> bool:
        """Whether all of a goal is there, as far as the ledger says."""
        return goal.ask in self.done

    @property
    def complete(self) -> bool:
        """Whether everything that was ever asked for is there."""
        return bool(self.goals) and all(map(self.is_done, self.goals))

    @property
    def margin(self) -> bool:
        """Whether the files of the full table have a column `margin`."""
        return any(goal.margin for goal in self.goals)

    def last(self, part: str) -> Goal | None:
        """The goal of a part that was asked for last."""
        found = [goal for goal in self.goals if goal.part == part]
        return found[-1] if found else None

    @property
    def latest(self) -> Goal | None:
        """The goal that was asked for last."""
        return self.goals[-1] if self.goals else None

    def error(self, part: str | None = None) -> float:
        """The bound on the error of a payoff stored in a part, or in any."""
        found = (e.error for e in self.files.values() if part in (None, e.part))
        return max(found, default=0.0)

    def precision(self, part: str) -> float:
        """As `error`, but for what hangs on decisions that could not be told."""
        found = (e.told for e in self.files.values() if e.part == part)
        return max(found, default=0.0)

    @property
    def rows(self) -> int:
        """States in the table so far."""
        return sum(entry.rows for entry in self.files.values())

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
                f"the table {head.identity} of {head.board}: its game '{head.game}' is not known "
                f"here; {game}"
            )
        try:
            return _board(json.dumps([head.board, head.rules, reach], sort_keys=True))
        except (BoardError, OptionError, KeyError) as error:
            raise CorruptTableError(
                f"the table {head.identity} of {head.game} {head.board}: is not one that this "
                f"luckbase knows: {error}"
            ) from None


def furthest(ledger: Ledger) -> Goal | None:
    """The goal of the full table that reaches furthest; None where there is none."""
    found = [goal for goal in ledger.goals if goal.part == TIERS]
    return max(found, key=lambda goal: (goal.files, goal.number), default=None)


@lru_cache(maxsize=16)
def _board(said: str) -> Board:
    name, form, reach = json.loads(said)
    options = registry.find(form["game"]).model().options() if reach else {}
    for option, value in reach.items():
        *sections, key = map(str, options[option])
        inner = form
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return board_from_canonical(name, form)


def _same_goal(one: Goal, other: Goal) -> bool:
    return {**vars(one), "number": 0, "files": 0} == {**vars(other), "number": 0, "files": 0}


def reach_of(board: Board) -> dict[str, Any]:
    """The board's options of reach, by name."""
    found = {}
    for option in sorted(type(board).reach):
        inner: Any = board
        for section in type(board).options()[option]:
            inner = getattr(inner, str(section))
        found[option] = inner
    return found


def new_head(game: Game) -> Head:
    """The head of a table of the game."""
    board, form = game.board, rules_form(game.board)
    return Head(FORMAT, board.game, board.name, rules_identity(game), form, game.rules_version)


def table_directory(results: Path, game: Game) -> Path:
    """results/<game>/<board>/<rules identity>."""
    return results / game.board.game / game.board.name / rules_identity(game)


@lru_cache(maxsize=1)
def solver_version() -> str:
    """The version of luckbase that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("luckbase")
    except PackageNotFoundError:
        return "not installed"


def read_head(storage: Storage, where: Path) -> Head:
    """The head of the table at `where`.

    Raises MissingTableError where there is none, CorruptTableError where it is not as luckbase
    wrote it or of another format.
    """
    try:
        text = storage.read(HEAD).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise MissingTableError(f"{where}: no table here ({HEAD} is missing)") from None
    except UnicodeDecodeError:
        raise CorruptTableError(_changed(where / HEAD, "is not text")) from None
    try:
        form = unseal("", text)
        if form.get("format") != FORMAT:
            raise CorruptTableError(
                f"{where / HEAD}: format {form.get('format')}; expected {FORMAT}; solve its board "
                "again"
            )
        head: Head = validated(HEAD_ADAPTER, form)
        if identity_of(head.rules, head.rules_version) != head.identity:
            raise ValueError("its identity is not that of its rules")
        return head
    except (ValueError, RecursionError) as error:
        raise CorruptTableError(_changed(where / HEAD, str(error))) from None


def check_identity(storage: Storage, where: Path, identity: str) -> None:
    """Raises as `read_head`, and ForeignTableError where the head says other rules."""
    there = read_head(storage, where).identity
    if there != identity:
        raise ForeignTableError(f"{where}: holds a table of other rules, {there}; move it away")


def _changed(path: Path, why: str) -> str:
    return (
        f"{path}: was changed after luckbase wrote it: {why[:80]}; luckbase solve of its board "
        "makes it again"
    )


def read_ledger(
    storage: Storage, where: Path, *, head: Head | None = None, lenient: bool = False
) -> Ledger:
    """The ledger of the table at `where`; head: if it is known.

    Raises as `read_head`, and CorruptTableError for a line that is not as luckbase wrote it, unless
    `lenient`: such a line then counts as not written, and `Ledger.damage` says so.
    """
    head = head or read_head(storage, where)
    for _ in range(_TRIES):
        try:
            return _read_lines(storage, where, head, lenient)
        except FileNotFoundError:
            continue  # a solve has just compacted it: look again
    raise CorruptTableError(f"{where}: its ledger changes all the time; try again")


def _read_lines(storage: Storage, where: Path, head: Head, lenient: bool) -> Ledger:
    ledger = Ledger(head)
    for name in storage.list(LINES):
        if not name.endswith(".jsonl"):
            continue
        content = storage.read(name)
        lines = content.split(b"\n")
        lost = [] if lines.pop() == b"" and content else ["its end is missing"]
        if name.startswith(ALL) and name != _all_name(content) and content:
            lost.append("it is not the text that its name says")
        for number, raw in enumerate(lines, start=1):
            try:
                ledger.add(from_text(head, raw.decode("utf-8")))
            except (ValueError, RecursionError) as error:
                lost.append(f"line {number}: {error}")
        if lost and not lenient:
            raise CorruptTableError(_changed(where / name, lost[-1]))
        ledger.damage += [_changed(where / name, why) for why in lost]
    return ledger


def _all_name(content: bytes) -> str:
    """The name of the object that holds all lines."""
    return f"{ALL}{hashlib.sha256(content).hexdigest()[:12]}.jsonl"


def write_head(storage: Storage, head: Head) -> None:
    """Write the head."""
    storage.put(HEAD, seal("", asdict(head), indent=1).encode())


def commit(storage: Storage, ledger: Ledger, *lines: Line) -> None:
    """Add lines to the ledger, all or none, on the disk when this returns; `ledger` is modified in
    place."""
    text = "".join(as_text(ledger.head, line) for line in lines)
    name = _line_name(lines[0]) if len(lines) == 1 else f"lines-{digest(text)[:12]}"
    storage.put(f"{LINES}{name}.jsonl", text.encode())
    for line in lines:
        ledger.add(line)


def _line_name(line: Line) -> str:
    """The name of the object that holds a line alone."""
    if isinstance(line, FileEntry | ShardEntry):
        return re.sub(r"[^A-Za-z0-9_.-]", ",", line.name)
    if isinstance(line, Done | LevelEntry):
        return f"{'done' if isinstance(line, Done) else 'level'}-{line.ask}"
    return f"goal-{line.number:04d}-{digest(json.dumps(asdict(line), sort_keys=True))[:12]}"


def compact(storage: Storage, ledger: Ledger) -> None:
    """Write all lines of `ledger` as one object, and delete every other: what it does not say any
    more is gone. Nothing is written where nothing would change."""
    text = "".join(as_text(ledger.head, line) for line in ledger.lines()).encode()
    name = _all_name(text)
    there = storage.list(LINES)
    if name not in there and text:
        storage.put(name, text)
    for other in there:
        if other != name:
            storage.delete(other)


MAX_WAITING = 64
"""Lines that wait at most: what a process that dies has done in vain."""


class Commits:
    """What waits of a ledger, which is modified in place once it is on the disk. A driver commits
    when nothing else is to do or `full`. A context: at its end, also at an error, it commits."""

    def __init__(self, storage: Storage, ledger: Ledger) -> None:
        self.storage, self.ledger = storage, ledger
        self.lines: list[Line] = []
        self.files: dict[str, Path] = {}
        self.times = self.committed = 0
        self.flushing = self.adding = 0.0
        """Seconds, in all: of flushes, `times` of them; of the rest, for each of `committed`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.flush()

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def full(self) -> bool:
        """Whether no more should wait."""
        return len(self) >= MAX_WAITING

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds that it took, on average: each time, and for each line; 0 where it took none."""
        each = self.flushing / max(1, self.times), self.adding / max(1, self.committed)
        return round(each[0], 6), round(each[1], 6)

    @contextmanager
    def taking_in(self) -> Iterator[None]:
        """Count the time in which the driver takes in what is to be committed."""
        began = time.perf_counter()
        yield
        self.adding += time.perf_counter() - began

    def add(self, line: Line, files: dict[str, Path]) -> None:
        """A line, and what is moved to its place before it is committed."""
        self.lines.append(line)
        self.files.update(files)

    def flush(self) -> None:
        """Commit all that waits: the files first, on the disk when this returns."""
        if not self.lines:
            return
        began = time.perf_counter()
        lines, files, self.lines, self.files = self.lines, self.files, [], {}
        self.storage.put_all(files)
        commit(self.storage, self.ledger, *lines)
        self.flushing += time.perf_counter() - began
        self.times, self.committed = self.times + 1, self.committed + len(lines)
