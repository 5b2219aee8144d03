"""Find tables in folders: by name, by board, or all; open them, and read their status.

A board file with its options determines exactly one rules identity; options that only change the
reach do not matter. The table may be stored under the name of another board with the same rules.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.cluster.machine import process_ended
from luckbase.cluster.store import RUNNING, Condition
from luckbase.cluster.store.manifest import (
    DECISIONS,
    NAME,
    TIERS,
    Amount,
    Head,
    Manifest,
    Whole,
    adapter,
)
from luckbase.cluster.store.provenance import (
    as_its_file_begins,
    board_command,
    solve_command,
)
from luckbase.cluster.store.storage import is_uri, place_of, results_of, storage_at
from luckbase.cluster.store.writer import check_identity, damaged_files, read_manifest
from luckbase.solver import sentences
from luckbase.solver.board import registry
from luckbase.solver.board.file import (
    MISSING,
    changes,
    name_of,
    read_board,
    suggestion,
)
from luckbase.solver.board.model import (
    Board,
    changed_options,
    options_of,
    rules_form,
    rules_identity,
)
from luckbase.solver.errors import (
    CorruptTableError,
    LuckbaseError,
    MissingTableError,
    OptionError,
    StoreError,
    TableError,
    UnknownGameError,
)
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import load_game
from luckbase.solver.result import IfAny, PythonOnly, Result
from luckbase.solver.sentences import fields, html_facts, on_command_line, setting, show, some

if TYPE_CHECKING:
    from luckbase.cluster.answers.parts import Part
    from luckbase.cluster.answers.table import Table

SILENT_SECONDS = 60.0
"""A solve on another machine that has been silent for this long counts as killed."""


def tables_in(results: Path) -> list[Path]:
    """Return the folder of every table under `results`, and every unreadable folder, because it may
    contain one. Raises StoreError for a web server."""
    if getattr(results, "read_only", False):
        storage_at(results).list()  # raises the error with the reason
    if is_uri(results):
        return sorted(path.parent for path in results.glob(f"*/*/*/{NAME}"))
    return sorted(_local_tables(results, 3))


def _local_tables(folder: Path, levels: int) -> Iterator[Path]:
    """Yield the tables this many levels below a folder, and unreadable folders."""
    try:
        if levels == 0:
            (folder / NAME).stat()
            yield folder
            return
        names = [each.name for each in os.scandir(folder)]
    except PermissionError:
        yield folder
    except (FileNotFoundError, NotADirectoryError):
        return
    else:
        for name in names:
            if name != "lost+found":  # exists on every Linux disk, readable only by root
                yield from _local_tables(folder / name, levels - 1)


def tables_below(folder: Path) -> list[Path]:
    """Return every table in a folder of a table, a board, a game, or results."""
    if is_table(folder):
        return [folder]
    return sorted(p.parent for at in ("*", "*/*", "*/*/*") for p in folder.glob(f"{at}/{NAME}"))


def is_table(path: Path) -> bool:
    return (path / NAME).is_file()


def tables_of(board: Board, results: Path) -> list[Path]:
    """Return the folders of a board's tables, by game and name, with any options."""
    return tables_below(results / board.game / board.name)


def table_of(board: Board, results: Path) -> Path | None:
    """Return the folder of the table with a board's rules, under its own name or another. Raises
    CorruptTableError if the folder's manifest is damaged or has other rules."""
    identity = rules_identity(load_game(board))
    expected = results / board.game / board.name / identity
    others = sorted(results.glob(f"{board.game}/*/{identity}"))
    for path in [expected, *others]:
        if is_table(path):
            check_identity(read_manifest(storage_at(path), path).head, identity, path)
            return path
    return None


def tables_on_grids(board: Board, results: Path, settings: Mapping[str, object]) -> list[Path]:
    """Return the folders of the tables with a board's rules, on any grid unless `settings` name its
    unit: finished tables first, then the finest. Raises as `table_of` does."""
    exact = table_of(board, results)
    paths, unit = [exact] if exact is not None else [], next(iter(type(board).grid), None)
    if unit is None or unit in settings:
        return paths
    form, version = rules_form(board), load_game(board).rules_version
    order = dict[Path, tuple[bool, int]]()
    for path in dict.fromkeys([*paths, *tables_of(board, results)]):
        with suppress(TableError):  # `status` reports it
            manifest = read_manifest(storage_at(path), path)
            changed, head = changes(form, manifest.head.rules), manifest.head
            if head.rules_version == version and all(each.place == unit for each in changed):
                value, _ = options_of(manifest.board({}))[unit]
                order[path] = not manifest.complete, value
    return sorted(order, key=lambda path: order[path])


def find_tables(name: Board | str, results: Path, settings: dict[str, str]) -> list[Path]:
    """Return the tables that a user names, best first: the folder itself, the table of a board, or
    the tables of a board file with `settings`, in the order of `tables_on_grids`.

    Raises MissingTableError, which lists the board's other tables; OptionError, BoardError.
    """
    if isinstance(name, Board):
        exact = table_of(name, results)
        if exact is None:
            missing = f"board {name.name}: no table of it under {results}"
            raise MissingTableError(f"{missing}; solve it first, or give in_memory=True")
        return [exact]
    path = place_of(name)
    if path.is_dir():
        if settings:
            word = next(iter(settings))
            why = f"{name} is a table, and its options are fixed; leave {word} out"
            raise OptionError(on_command_line("--set: ") + why)
        below = [] if is_uri(path) else tables_below(path)
        if len(below) > 1:
            names = ", ".join(map(str, below[:5]))
            raise OptionError(f"{name} has several tables; name one of them: {names}")
        return below or [path]
    if not path.exists():
        first = on_command_line("; name a board first; luckbase info lists them")
        raise OptionError(f"{name}: no such table or board file{suggestion(path) or first}")
    board = read_board(path, settings)
    tables = tables_on_grids(board, results, settings)
    if not tables:
        raise MissingTableError(_none_of(name, board, results, settings))
    return tables


def find_table(name: str, results: Path, settings: dict[str, str]) -> Path:
    """Return the first of `find_tables`. Raises as `find_tables` does."""
    return find_tables(name, results, settings)[0]


def open_for(name: Board | str, results: Path, settings: dict[str, str]) -> Table:
    """Open the first of `find_tables`. Its `Table.for_state` finds the table that has a state.
    Raises as `find_tables` does."""
    named_by_board = isinstance(name, Board) or not place_of(name).is_dir()
    first, *rest = find_tables(name, results, settings)
    table = open_table(first, named_by_board=named_by_board)
    table.other_grids = [partial(open_table, each, named_by_board=True) for each in rest]
    return table


def _none_of(name: str, board: Board, results: Path, settings: dict[str, str]) -> str:
    """Return the sentence that a board has no table with these settings: its other tables, each
    with the settings that select it or with what else differs, and the command that solves it."""
    game, options, others = load_game(board), options_of(board), list[str]()
    versions = set[int]()
    names = {location: option for option, location in board.options().items()}
    for path in tables_of(board, results):
        try:
            head = read_manifest(storage_at(path), path).head
        except TableError:
            others.append(f"{path} (cannot be read)")
            continue
        versions.add(head.rules_version)
        differ = list[str]()
        for each in changes(rules_form(board), head.rules):
            option = names.get(each.location)
            value = options[option][1].default if option and each.new is MISSING else each.new
            if option and value is not None:
                differ.append(setting(option, sentences.listed(value)))
            else:
                differ.append(f"{each.place}: {show(each.new)} instead of {show(each.old)}")
        if head.rules_version != game.rules_version:
            differ.append(_new_version(board.game, head.rules_version, game.rules_version))
        others.append(f"{path} ({', '.join(some(4, differ))})")
    makes = board_command(name, settings, board.game, results)
    searched = game.start() is not None or (
        game.starts() and FullTable not in game.rules.capabilities
    )
    if not searched and not game.has(FullTable):
        makes += " --from FIELD=VALUE"
    if versions and game.rules_version not in versions:
        edited = _new_version(board.game, max(versions), game.rules_version)
        return f"{name}: {edited} since the table was solved; run: {makes}"
    given = f" with {fields(settings)}" * bool(settings)
    there = f"; there is {'; '.join(some(5, others))}" if others else f" under {results}"
    return f"{name}: no table of this board{given}{there}; run: {makes}"


def why_stale(manifest: Manifest, *, absent_is_stale: bool = True) -> list[str]:
    """Return the changes in the board since the table was solved, as sentences.

    The board is read from the file it was last read from, with the same options. Empty if nothing
    has changed or the file is unknown. absent_is_stale: whether a deleted file counts as a change.
    """
    goal = next((goal for goal in reversed(manifest.goals) if goal.board_file), None)
    if goal is None:
        return []
    path = Path(goal.board_file)
    if not absent_is_stale and not path.is_file():
        return []
    try:
        game = load_game(read_board(path, goal.settings))
    except LuckbaseError as error:
        return [f"its board cannot be read any more: {error}"]
    return what_changed(manifest.head, game.board, game.rules_version)


def what_changed(head: Head, board: Board, rules_version: int) -> list[str]:
    """Return the differences between a table's rules and a board's current rules, as sentences."""
    changed = list(map(str, changes(head.rules, rules_form(board))))
    if rules_version != head.rules_version:
        changed.append(_new_version(board.game, head.rules_version, rules_version))
    return changed


def _new_version(game: str, before: int, now: int) -> str:
    """Return the sentence for a changed version of a game's rules. The version of a game in a
    user's file contains a hash of the file."""
    if max(before, now) >> 32:
        return f"{registry.author_name(game)} has changed"
    return f"version {before} of the rules has become {now}"


def changed_since(board: Board, results: Path) -> list[str]:
    """Return the changes in a board file since it was last solved, as sentences; empty if there are
    none or a table of the current board exists."""
    try:
        if table_of(board, results) is not None:
            return []
    except LuckbaseError:  # the solve reports it
        return []
    newest: tuple[float, list[str]] = (0.0, [])
    version = load_game(board).rules_version
    for table in tables_of(board, results):
        try:
            manifest = read_manifest(storage_at(table), table)
        except LuckbaseError:
            continue
        changed = what_changed(manifest.head, board, version)
        if why_stale(manifest) == changed:  # otherwise its options or its file are different
            newest = max(newest, (storage_at(table).details(NAME)[NAME].put_at, changed))
    return newest[1]


def table_used(name: str | os.PathLike[str], board: Board, results: Path) -> Path:
    """Return the folder of the table by which an agent plays on a board. name: of a folder or of a
    board file; of its tables, the one with the board's rules. Raises MissingTableError."""
    path, source, settings = place_of(name), board.source, dict[str, str]()
    if source and not path.is_dir() and name_of(path.absolute()) == name_of(source.file):
        settings = source.settings
    paths, identity = find_tables(str(name), results, settings), rules_identity(load_game(board))
    return next((path for path in paths if path.name == identity), paths[0])


# --- open -----------------------------------------------------------------------------------------


def table_at(path: Path, manifest: Manifest, *, named_by_board: bool = False) -> Table:
    """Return the table at a path with this manifest. named_by_board: it was found by the rules of
    the current board file, so it is never stale."""
    from luckbase.cluster.answers.part_kinds import DecisionPart, KeyPart, TierPart
    from luckbase.cluster.answers.table import Table

    kinds: dict[str, type[Part]] = {TIERS: TierPart, DECISIONS: DecisionPart}
    board = as_its_file_begins(manifest.board(manifest.reach), manifest.origin)
    game, storage = load_game(board), storage_at(path)
    names = manifest.part_names()
    parts = [kinds.get(name, KeyPart)(storage, path, manifest, name, game) for name in names]
    table = Table(game, parts, path, manifest)
    table.stale = () if named_by_board else tuple(why_stale(manifest, absent_is_stale=False))
    return table


def open_table(path: str | os.PathLike[str], *, named_by_board: bool = False) -> Table:
    """Open the table in a folder or at a URI. Raises MissingTableError, CorruptTableError."""
    where = place_of(path)
    return table_at(where, read_manifest(storage_at(where), where), named_by_board=named_by_board)


# --- the status of a table -----------------------------------------------------------------------


@dataclass(frozen=True)
class Status(Result):
    """The status of a table, without opening its files.

    table: the folder; for a board without a table, its file.
    state: complete, partial, stale or damaged; missing if a board has no table; refused if a
        table's game is unknown or a board cannot be read.
    options: those that differ from the game's defaults.
    tiers, tiers_in_all: number of files of the full table, and its total.
    roots: number of roots of searches.
    error: error bound of payoffs.
    why: reasons and advice, as sentences.
    running: progress of a running solve (`cluster.solve.progress`).
    title: of the board, if its file exists.
    names: of its game, board and rules identity.
    date: of the last commit, in ISO 8601; None if there was none.
    stores: payoffs, or decisions too (`Manifest.stores`).
    grid: what the grid changes, a line for each level (`cluster.answers.grids`).
    """

    table: str
    state: Condition
    options: dict[str, Any]
    tiers: int = 0
    tiers_in_all: int = 0
    roots: int = 0
    states: int = 0
    bytes: int = 0
    error: PythonOnly[float] = 0.0
    why: tuple[str, ...] = ()
    running: dict[str, Any] | None = None
    title: PythonOnly[str] = ""
    names: PythonOnly[tuple[str, str, str] | None] = None
    date: str | None = None
    stores: str = "payoffs"
    grid: IfAny[tuple[str, ...]] = None

    def __repr__(self) -> str:
        return f"<{self.state}: {self.table}, {sentences.counted(self.states, 'state')}>"

    def _repr_html_(self) -> str:
        files = f"{self.tiers:,} of {sentences.many(self.tiers_in_all, 'file')}"
        rows = [("options", fields(self.options)), ("states", f"{self.states:,}"),
                ("full table", files * bool(self.tiers_in_all)),
                ("roots of searches", f"{self.roots:,}" * bool(self.roots)),
                ("size", sentences.size(self.bytes)), ("date", self.date or ""),
                ("why", "; ".join(self.why))]  # fmt: skip
        return html_facts(f"{self.state}: {self.table}", rows)


def status_of(path: Path) -> Status:
    from luckbase.cluster.answers.grids import grid_lines

    try:
        storage = storage_at(path)
        manifest = read_manifest(storage, path)
        head, goal = manifest.head, manifest.furthest
        stale, damaged = why_stale(manifest), damaged_files(storage, path, manifest.files)
        board = manifest.board(manifest.reach)
        state, why = _state(manifest, stale, damaged, results_of(path))
        return Status(
            str(path), state, changed_options(board),
            *((0, 0) if goal is None else manifest.progress(goal)),
            len({json.dumps(start) for g in manifest.goals if g.roots for start in g.roots.start}),
            manifest.rows, manifest.bytes, manifest.error(), tuple(why), running(path),
            title_of(manifest), (head.game, head.board, head.identity), _changed_at(path),
            manifest.stores, tuple(grid_lines(path, head.identity, board)) or None,
        )  # fmt: skip
    except PermissionError as error:
        why = [f"{error.filename or path}: permission denied"]
        return Status(str(path), "refused", {}, why=tuple(why))
    except TableError as error:
        unknown = isinstance(error, UnknownGameError)
        states, size = (manifest.rows, manifest.bytes) if unknown else (0, 0)
        return Status(
            str(path), "refused" if unknown else "damaged", {}, states=states, bytes=size,
            why=(str(error),), running=running(path), date=_changed_at(path),
        )  # fmt: skip


def title_of(manifest: Manifest) -> str:
    """Return the title of a table's board, if its file exists: it is not part of the rules."""
    origin = manifest.origin
    if origin is not None:
        with suppress(LuckbaseError, OSError):
            return read_board(Path(origin.board_file), origin.settings).title
    return ""


def _changed_at(path: Path) -> str | None:
    """Return when the manifest was written; None if unknown."""
    with suppress(OSError, LookupError, StoreError):
        newest = storage_at(path).details(NAME)[NAME].put_at
        return datetime.fromtimestamp(newest).astimezone().isoformat(timespec="seconds")
    return None


@dataclass(frozen=True)
class _Node:
    """A machine of a running solve."""

    node: str
    slots: Whole
    shards_done: Whole = 0


@dataclass(frozen=True)
class _Running:
    """The content of ``running.json``, which a solve rewrites (`cluster.solve.progress.Watch`)."""

    host: str
    process: Whole
    since: str
    at: str
    shards: Whole
    shards_total: Whole
    states: Whole
    states_total: Whole
    seconds: Amount
    states_a_second: Amount
    finding: str | None
    seconds_left: Amount | None
    nodes: list[_Node]
    memory: Whole
    last_note: str


def running(path: Path) -> dict[str, Any] | None:
    """Return the progress of a running solve of the table, on any machine; None without one."""
    try:
        content = storage_at(path).read_tagged(RUNNING)[0]
        adapter(_Running).validate_json(content)
        progress: dict[str, Any] = json.loads(content)
        age = datetime.now().astimezone() - datetime.fromisoformat(progress["at"])
    except (OSError, ValueError, TypeError, CorruptTableError):
        return None
    with suppress(LuckbaseError, OSError):
        writer = read_manifest(storage_at(path), path).writer
        if writer is None or writer.ended or process_ended(vars(writer)):
            return None
    return progress if abs(age.total_seconds()) < SILENT_SECONDS else None


def _state(
    manifest: Manifest, stale: list[str], damaged: dict[str, str], results: Path | None
) -> tuple[Condition, list[str]]:
    if stale and not damaged:
        return "stale", list(stale)
    if manifest.complete and not damaged:
        return "complete", []
    game = load_game(manifest.board({}))
    if damaged:
        parts = {manifest.files[name].goal_part for name in damaged}
        again = [solve_command(g, game, results) for g in manifest.goals if g.part in parts]
        commands = [f"made again by: {each}" for each in dict.fromkeys(again)]
        return "damaged", [*some(5, list(damaged.values())), *commands]
    unfinished = [goal for goal in manifest.goals if not manifest.is_done(goal)]
    return "partial", [f"goes on with: {solve_command(each, game, results)}" for each in unfinished]
