"""The tables that are served, listed by id, opened on demand and cached; and requests for them.

An id (``pig~tiny~1f6fa0d7efbd``) is looked up in a list of the tables in the folders given at the
start, so a request never becomes a path. The list is renewed regularly, so tables that are solved
meanwhile appear. An open table answers one query at a time and then stays open for the next; the
least recently used tables are closed. A table that has changed on disk is reopened.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from luckbase.cluster.answers.charts import column_spans
from luckbase.cluster.answers.examples import Example, examples, searches
from luckbase.cluster.answers.find import (
    Status,
    is_table,
    open_table,
    status_of,
    tables_on_grids,
)
from luckbase.cluster.answers.table import Table
from luckbase.cluster.info import FieldInfo, agents_on, field_info
from luckbase.cluster.machine import memory_limit
from luckbase.cluster.store.manifest import NAME
from luckbase.cluster.store.storage import is_uri
from luckbase.solver.board import registry
from luckbase.solver.board.model import canonical, options_of
from luckbase.solver.charts import Kind, Search
from luckbase.solver.errors import (
    CorruptTableError,
    LuckbaseError,
    MissingTableError,
    OptionError,
    RequestError,
    SearchLimitError,
)
from luckbase.solver.game.capabilities import Charts, Drawing, Follow
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, Result
from luckbase.solver.sentences import nearest, shorten

OPEN_TABLES = 6
"""Number of tables that stay open; as many again may be in use."""
REMEMBERED_BYTES = 800 << 20
"""Bytes of decoded row groups cached for an open table: 50 million states with three players. All
tables together use at most a third of the machine's memory."""
LIST_SECONDS = 2.0
"""Maximum age of the list."""

AGENT_SECONDS = 2.0
"""Maximum seconds an opponent may need before its first move."""
_PATH = re.compile(r"(?<![\w.~/-])/(?!tables/)(?:[^\s/:;,'\"]+/)+[^\s/:;,'\"]*")
"""An absolute path with at least two names."""

OPTIONS = {"--what": "chart", "--as": "seat", "--against": "against", "--from": "state",
           "start": "state"}  # fmt: skip
"""Names in URLs of options of the command line, or of arguments in Python."""
LENGTH = 400
"""Maximum characters of a parameter; any state is shorter."""

Finder = Callable[[], Sequence[Path]]
"""Returns the current folders of tables."""


# --- the facts of a table ------------------------------------------------------------------------


@dataclass(frozen=True)
class TableSummary(Result):
    """A table in the list."""

    id: str  # its name in URLs
    game: str
    board: str
    title: str  # of the board; its name if it has none
    game_title: str  # common name of the game
    about: str  # describes the game in two sentences
    solve_id: str
    error_bound: float  # error bound of all payoffs
    status: Flat[Status]  # as in `luckbase.status`, without local paths in `table` and `why`


@dataclass(frozen=True)
class TableFacts(Result):
    """A table's game and board."""

    players: int
    payoff_name: str
    payoff_range: tuple[float, float] | None
    fields: list[FieldInfo]
    start: dict[str, str] | None  # the state with which a page begins; null if none is solved
    examples: list[Example]
    charts: list[Kind]
    axes: list[str]  # the columns that a grid can have as axes
    searches: list[Search]  # ready searches, numbered from 1
    sentence: str | None  # an example of a state in words; null if the game cannot read one
    agents: list[str]
    option_help: dict[str, str]  # describes each option of the board
    outcome_note: str  # explains the names of outcomes
    board_file: dict[str, Any]


@dataclass(frozen=True)
class TableInfo(Result):
    """A table with its game and board."""

    summary: Flat[TableSummary]
    facts: Flat[TableFacts]


def summary_of(id: str, names: tuple[str, str, str], status: Status) -> TableSummary:
    """Return a table's entry in the list. names: game, board and identity, by its folders."""
    game, board, identity = status.names or names
    title = status.title or board
    named = registry.described(game)
    return TableSummary(id, game, board, title, *named, identity, status.error, status)


def facts_of(table: Table) -> TableFacts:
    """Return the facts of a table."""
    game, spans, known = table.game, column_spans(table), examples(table)
    charts, follow = game.get(Charts), game.get(Follow)
    return TableFacts(
        players=game.players, payoff_name=game.payoff_name, payoff_range=game.known_range,
        fields=[field_info(game, item) for item in game.fields],
        start=known[0].state if known else None, examples=known,
        charts=[] if charts is None else list(charts.kinds),
        axes=[name for name, span in spans.items() if span.high > span.low],
        searches=searches(table),
        sentence=None if follow is None else follow.words[0][0],
        agents=opponents(game),
        option_help={
            name: item.description for name, (_, item) in options_of(game.board).items()
            if item.description
        },
        outcome_note=game.own(Drawing).note,
        board_file={"name": game.board.name, **canonical(game.board)},
    )  # fmt: skip


def opponents(game: Game) -> list[str]:
    """Return the agents that the board supports and that are fast enough for a request."""
    return [*agents_on(game, AGENT_SECONDS)]


# --- the tables ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableEntry:
    """A table in the list."""

    id: str
    path: Path

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its game, board and rules identity, from its folders."""
        parts = self.path.absolute().parts[-3:]
        return (*("?",) * (3 - len(parts)), *parts)  # type: ignore[return-value]

    @property
    def place(self) -> str:
        """The table's name for commands, without the folders above its results."""
        return str(self.path) if is_uri(self.path) else "/".join(("results", *self.names))


@dataclass(eq=False)
class OpenTable:
    """An open table, and the files whose changes make it outdated."""

    entry: TableEntry
    table: Table
    files: tuple[Path, ...]
    stamp: object

    @cached_property
    def facts(self) -> TableFacts:
        return facts_of(self.table)


class TablePool:
    """The tables that are served. Thread-safe."""

    def __init__(self, finders: Sequence[Finder], open_tables: int = OPEN_TABLES) -> None:
        self.finders, self.open_tables = list(finders), open_tables
        self.remembered = min(REMEMBERED_BYTES, memory_limit() // (3 * open_tables))
        self._lock = threading.Lock()
        self._listed: dict[str, TableEntry] = {}
        self._listed_at = float("-inf")
        self._idle: list[OpenTable] = []
        """Open tables that nobody uses, the last used at the end."""
        self._summaries: dict[str, tuple[object, float, TableSummary]] = {}

    # --- the list ------------------------------------------------------------------------------

    def listed(self) -> list[TableEntry]:
        """Return all tables, in the order in which they were found."""
        with self._lock:
            self._list_again()
            return list(self._listed.values())

    def find(self, id: str) -> TableEntry:
        """Return the table with an id. Raises MissingTableError."""
        entry = self._listed.get(id)
        if entry is None or not _is_there(entry.path):
            with self._lock:
                self._list_again()
                entry = self._listed.get(id)
        if entry is None or not _is_there(entry.path):
            raise MissingTableError(f"unknown table '{id[:60]}'; GET /tables lists all")
        return entry

    def _list_again(self) -> None:
        if time.monotonic() - self._listed_at < LIST_SECONDS:
            return
        paths = dict.fromkeys(path for finder in self.finders for path in finder())
        known = {each.path: each.id for each in self._listed.values()}
        listed: dict[str, TableEntry] = {}
        for path in paths:
            name = "~".join(TableEntry("", path).names)
            name = name.encode(errors="replace").decode()  # URLs are in UTF-8
            id, again = known.get(path, name), 1
            while id in listed:
                again += 1
                id = f"{name}~{again}"
            listed[id] = TableEntry(id, path)
        self._listed, self._listed_at = listed, time.monotonic()

    def without_paths(self, sentence: str) -> str:
        """Return a message without local paths: folders of tables are given as in commands, and
        other files by name only."""
        for each in list(self._listed.values()):
            for path in {str(each.path), str(each.path.absolute())}:
                sentence = sentence.replace(path, each.place)
        return _PATH.sub(lambda found: Path(found[0]).name, sentence)

    def summary(self, entry: TableEntry) -> TableSummary:
        """Return a table's status without opening its files or naming local paths; it may be some
        seconds old."""
        stamp, now = _stamp((entry.path / NAME,)), time.monotonic()
        known = self._summaries.get(entry.id)
        if known is None or known[0] != stamp or now - known[1] > 5 * LIST_SECONDS:
            status = status_of(entry.path)
            why = tuple(map(self.without_paths, status.why))
            status = replace(status, table=entry.place, why=why)
            known = stamp, now, summary_of(entry.id, entry.names, status)
            self._summaries[entry.id] = known
        return known[2]

    # --- open tables ---------------------------------------------------------------------------

    @contextmanager
    def open(self, id: str) -> Iterator[OpenTable]:
        """Open the table with an id, for this thread only. Raises MissingTableError,
        CorruptTableError."""
        entry, sound = self.find(id), True
        opened = self._take(entry) or self._open(entry)
        try:
            yield opened
        except (CorruptTableError, OSError) as error:
            sound = False
            if not is_table(entry.path):
                raise MissingTableError(f"{id}: is gone") from None
            if isinstance(error, OSError):
                why = f"{id}: cannot be read: {error.strerror or error}"
                raise CorruptTableError(why) from None
            raise
        finally:
            with self._lock:
                self._idle += [opened] * sound
                unused = self._idle[: -self.open_tables] if sound else [opened]
                self._close(unused)

    def _take(self, entry: TableEntry) -> OpenTable | None:
        """Return the last used idle copy of a table if it is current; otherwise close its
        copies."""
        with self._lock:
            copies = [each for each in self._idle if each.entry == entry]
            for opened in reversed(copies):
                if opened.stamp == _stamp(opened.files):
                    self._idle.remove(opened)
                    return opened
            self._close(copies)
        return None

    def _open(self, entry: TableEntry) -> OpenTable:
        manifest = entry.path / NAME
        before = _stamp((manifest,))
        table = self._read(entry.path)
        paid = [part for part in table.parts if part.paid]  # the page shows payoffs
        complete = len(paid) == len(table.parts)
        table.parts[:] = paid
        if type(table.game.board).grid and not is_uri(entry.path):
            paths = self._on_grids(entry, table)  # the table again only with its other parts
            table.other_grids = [
                partial(self._read, path) for path in paths if path != entry.path or not complete
            ]
        goals = table.manifest.goals[::-1]
        boards = [Path(goal.board_file) for goal in goals if goal.board_file][:1]
        return OpenTable(entry, table, (manifest, *boards), before + _stamp(tuple(boards)))

    def _read(self, path: Path) -> Table:
        """Open a table with bounded memory, whose origin names no local path."""
        table = open_table(path)
        for part in table.parts:
            part.groups.max_bytes = self.remembered // len(table.parts)
        why = tuple(map(self.without_paths, table.origin.stale))
        table.__dict__["origin"] = replace(table.origin, stale=why)
        return table

    def _on_grids(self, entry: TableEntry, table: Table) -> list[Path]:
        """Return the tables with a table's rules on any grid, itself too: finished tables first,
        then the finest."""
        return tables_on_grids(table.game.board, entry.path.parents[2], {})

    def finest(self, opened: OpenTable) -> str:
        """Return the id of the first served table with an open one's rules, on any grid."""
        listed = {each.path: each.id for each in self.listed()}
        paths = self._on_grids(opened.entry, opened.table)
        return next((listed[path] for path in paths if path in listed), opened.entry.id)

    def _close(self, unused: Sequence[OpenTable]) -> None:
        for each in unused:
            if each in self._idle:
                self._idle.remove(each)
            each.table.close()

    def forget(self, *ids: str) -> None:
        """Close idle copies of these tables; without ids, of all tables."""
        with self._lock:
            self._close([each for each in self._idle if not ids or each.entry.id in ids])


def _is_there(path: Path) -> bool:
    """True if a table still exists. For an object store, whose answers are slow, this is checked
    when the table is opened."""
    return is_uri(path) or is_table(path)


def _stamp(files: Sequence[Path]) -> tuple[object, ...]:
    """Return values that change when the files change; in a store, every minute."""
    stamps: list[object] = []
    for path in files:
        if is_uri(path):
            stamps.append(int(time.monotonic()) // 60)
            continue
        try:
            found = path.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
    return tuple(stamps)


# --- requests ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused. field: the invalid field of the state, if there is one."""

    status: int
    error: str
    field: str | None = None


class Query(dict[str, Any]):
    """The parameters of an address: texts by name, and `move`, a list of texts.

    A parameter that is repeated, as by a form's checkboxes, is joined with commas.
    """

    def __init__(self, given: Iterable[tuple[str, str]] = (), view: View | None = None) -> None:
        """Raise OptionError for a parameter that the view does not have."""
        super().__init__()
        self.names = () if view is None else view.params
        for name, value in given:
            if len(value) > LENGTH:
                raise OptionError(f"{shorten(name, 30)}: has more than {LENGTH} letters")
            if name not in self.names and not (view and view.takes_state):
                hint = nearest(name, self.names)
                raise OptionError(f"unknown parameter '{shorten(name, 30)}'; {hint}")
            if name in self.names and name == "move":
                self.setdefault(name, []).append(value)
            elif value or name not in self.names:
                self[name] = ",".join(filter(None, (self.get(name), value)))

    @property
    def state(self) -> dict[str, str]:
        """The fields of a state: the parameters that the view does not name."""
        return {name: value for name, value in self.items() if name not in self.names}

    def integer(self, name: str, low: int, high: int, default: int) -> int:
        """Return an integer from `low` to `high`. Raises OptionError."""
        text = self.get(name, str(default))
        if not re.fullmatch(r"[+-]?[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise OptionError(
                f"{name}: '{shorten(text, 30)}' is not a whole number from {low} to {high}"
            )
        return int(text)


class LongAnswer(Exception):
    """A short query needs a search."""


class ViewRequest(ExitStack):
    """A request to a view; a context that holds the tables that it uses until its end.

    path: the variable parts of its path, by name.
    long: the answer may take long.
    """

    def __init__(self, pool: TablePool, path: Mapping[str, str], long: bool = True) -> None:
        super().__init__()
        self.pool, self.path, self.long = pool, path, long
        self.query = Query()

    def open(self, id: str) -> OpenTable:
        """Open a table. Raises MissingTableError, CorruptTableError."""
        return self.enter_context(self.pool.open(id))

    @cached_property
    def opened(self) -> OpenTable:
        """The table in the path. Raises as `open` does."""
        return self.open(self.path["id"])

    @property
    def table(self) -> Table:
        """The table in the path. Raises as `open` does."""
        return self.opened.table

    def info(self, opened: OpenTable | None = None) -> TableInfo:
        """Return the facts of an open table, by default the one in the path."""
        opened = opened or self.opened
        return TableInfo(self.pool.summary(opened.entry), opened.facts)

    def refusal(self, error: LuckbaseError) -> Refusal:
        """Return the refusal for an error, without paths of this machine."""
        missing = isinstance(error, MissingTableError | SearchLimitError)
        status = 404 if missing else 400 if isinstance(error, RequestError) else 409
        word, colon, rest = self.pool.without_paths(str(error)).partition(":")
        sentence, opened = f"{OPTIONS.get(word, word)}{colon}{rest}", self.__dict__.get("opened")
        named = sentence.replace(":", " ").split(" ", 1)[0].rpartition("'")[2]
        known = () if opened is None else opened.table.game.fields.names
        field = next((name for name in known if re.fullmatch(rf"{name}(_\d+)?", named)), None)
        return Refusal(status, sentence, field)


Context = dict[str, Any]


@dataclass(frozen=True)
class View:
    """An address that returns a page, made by a template, or JSON."""

    path: str
    answer: Callable[[ViewRequest], Result]
    template: str
    params: tuple[str, ...] = ()  # the names of its parameters
    takes_state: bool = False  # other parameters are fields of a state
    long: bool = False  # an answer may take long
    more: Callable[[ViewRequest, Context], Context] | None = None
    """Returns further values for the template, from its context."""
