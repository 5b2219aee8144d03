"""Tables in folders: which one a person means, which there are, and what is known of each.

A board file with its options means exactly one rules identity; options of reach do not matter. The
table may stand under another board's name, if that board has the same rules.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from luckbase.cluster.machine import process_ended
from luckbase.cluster.table import RUNNING, Condition
from luckbase.cluster.table.manifest import (
    DECISIONS,
    NAME,
    TIERS,
    Head,
    Manifest,
    as_its_file_begins,
    board_command,
    in_order,
    solve_command,
)
from luckbase.cluster.table.storage import is_uri, place_of, results_of, storage_at
from luckbase.cluster.table.writer import check_identity, damaged_files, read_manifest
from luckbase.solver import sentences
from luckbase.solver.board import registry
from luckbase.solver.board.file import differences, meant, name_of, read_board
from luckbase.solver.board.model import (
    Board,
    changed_options,
    options_of,
    rules_form,
    rules_identity,
)
from luckbase.solver.errors import (
    LuckbaseError,
    MissingTableError,
    OptionError,
    StateError,
    StoreError,
    TableError,
    UnknownGameError,
)
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.game import load_game
from luckbase.solver.result import PythonOnly, Result
from luckbase.solver.sentences import html_facts, on_command_line, setting, show

if TYPE_CHECKING:
    from luckbase.cluster.table.answer import Answer
    from luckbase.cluster.table.lookup import Lookup
    from luckbase.cluster.table.parts import Part
    from luckbase.cluster.table.table import StoredTable

SILENT_SECONDS = 60.0
"""A solve on another machine without a sign of life for so long has been killed."""
MAX_ROOTS = 6
"""Roots of searches that are shown with their answers."""


class TableMatch(NamedTuple):
    """A table's folder; by_board: it was found by the rules of a board, not named by its path."""

    path: Path
    by_board: bool


def tables_in(results: Path) -> list[Path]:
    """Return the folder of every table under `results`, and every folder there that may not be
    read, because it may hold one. Raises StoreError for a web server."""
    if getattr(results, "read_only", False):
        storage_at(results).list()  # raises the error that says why
    if is_uri(results):
        return sorted(path.parent for path in results.glob(f"*/*/*/{NAME}"))
    return sorted(_local_tables(results, 3))


def _local_tables(folder: Path, levels: int) -> Iterator[Path]:
    """Yield the tables so many levels below a folder, and the folders that may not be read."""
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
            if name != "lost+found":  # at the root of every Linux disk, and readable for root alone
                yield from _local_tables(folder / name, levels - 1)


def tables_below(folder: Path) -> list[Path]:
    """Every table in a folder: itself, those of a board, of a game, or of all results."""
    if is_table(folder):
        return [folder]
    return sorted(p.parent for at in ("*", "*/*", "*/*/*") for p in folder.glob(f"{at}/{NAME}"))


def is_table(path: Path) -> bool:
    """Whether a folder holds a table."""
    return (path / NAME).is_file()


def tables_of(board: Board, results: Path) -> list[Path]:
    """The folders of the tables of a board, by its game and name, whatever their options."""
    return tables_below(results / board.game / board.name)


def table_of(board: Board, results: Path) -> Path | None:
    """The folder of the table with the board's rules, under its own name or another's.

    Raises CorruptTableError where the folder's head is damaged or says other rules.
    """
    identity = rules_identity(load_game(board))
    expected = results / board.game / board.name / identity
    others = sorted(results.glob(f"{board.game}/*/{identity}"))
    for path in [expected, *others]:
        if is_table(path):
            check_identity(storage_at(path), path, identity)
            return path
    return None


def find_table(name: str, results: Path, settings: dict[str, str]) -> TableMatch:
    """The table that a person means: the folder itself, or that of a board file with `settings`.

    Raises MissingTableError where there is none, naming those of the board that there are;
    OptionError, BoardError.
    """
    path = place_of(name)
    if path.is_dir():
        if settings:
            word = next(iter(settings))
            why = f"{name} is a table, and its options are fixed; leave {word} out"
            raise OptionError(on_command_line("--set: ") + why)
        return TableMatch(path, by_board=False)
    if not path.exists():
        raise OptionError(f"{name}: no such table or board file{meant(path)}")
    board = read_board(path, settings)
    table = table_of(board, results)
    if table is None:
        raise MissingTableError(_none_of(name, board, results, settings))
    return TableMatch(table, by_board=True)


def _none_of(name: str, board: Board, results: Path, settings: dict[str, str]) -> str:
    missing = f"{name}: no table of this board" + f" with {sentences.fields(settings)}" * bool(
        settings
    )
    others, asks, game = list[str](), list[str](), load_game(board)
    versions = set[int]()
    for path in tables_of(board, results):
        try:
            head = read_manifest(storage_at(path), path).head
        except TableError:
            others.append(f"{path} cannot be read")
            continue
        differ = [_in_full(board, each) for each in differences(rules_form(board), head.rules)]
        versions.add(head.rules_version)
        if head.rules_version != game.rules_version:
            differ.append(_new_version(board.game, head.rules_version, game.rules_version))
        # what the other table has, from the differences of its board to the one asked for
        asks += filter(None, [_settings_that_ask(board, differ)])
        has = [re.sub(r"was (.*), now (.*)", r"\2 instead of \1", each) for each in differ]
        others.append(f"{path} ({', '.join(has[:4])}{', …' * (len(has) > 4)})")
    makes = board_command(name, settings, board.game, results)
    searched = game.start() is not None or (game.starts() and Layout not in game.rules.capabilities)
    if not searched and not game.has(Layout):
        makes += " --from FIELD=VALUE"
    if versions and game.rules_version not in versions:
        edited = _new_version(board.game, max(versions), game.rules_version)
        return f"{name}: {edited} since the table was solved; run: {makes}"
    others_text = f"; there is {'; '.join(others[:5])}" if others else f" under {results}"
    nearest = f"; to ask the nearest, add {min(asks, key=len)}" if asks else ""
    return f"{missing}{others_text}{nearest}; run: {makes}"


def _in_full(board: Board, difference: str) -> str:
    """A difference in an option that one of two boards leaves out, with the option's default."""
    match = re.match(r"(?:.*, )?(\w+): was ", difference)
    _, of = options_of(board).get(match[1], (None, None)) if match else (None, None)
    if of is None or of.default is None:
        return difference
    return re.sub(r"\b(was|now) missing\b", rf"\1 {show(of.default)}", difference)


def _settings_that_ask(board: Board, differ: Sequence[str]) -> str:
    """The options with which a board means another table, as they are typed; "" where a difference
    is no option."""
    matches = [
        re.fullmatch(r"(?:.*, )?(\w+): was .*, now (?!missing$)'?(.*?)'?", each) for each in differ
    ]
    each = [setting(one[1], one[2]) for one in matches if one and one[1] in board.options()]
    return " ".join(each) if len(each) == len(matches) else ""


def why_stale(manifest: Manifest, *, absent_is_stale: bool = True) -> list[str]:
    """What has changed in the board since the table was solved, as sentences; empty where nothing
    has, or where nobody knows where the board came from.

    The board is read again from the file that it was read from last, with the same options.
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
    """The differences between the table's rules and those of a board now, a sentence each."""
    changed = differences(head.rules, rules_form(board))
    if rules_version != head.rules_version:
        changed.append(_new_version(board.game, head.rules_version, rules_version))
    return changed


def _new_version(game: str, before: int, now: int) -> str:
    """The sentence that a game's rules have another version. That of a game in a file of its own
    holds a hash of the file."""
    if max(before, now) >> 32:
        return f"{registry.said(game)} has changed"
    return f"version {before} of the rules has become {now}"


def changed_since(board: Board, results: Path) -> list[str]:
    """What a board file has changed since it was solved last, as sentences; empty if nothing, or
    if there is a table of the board as it stands."""
    try:
        if table_of(board, results) is not None:
            return []
    except LuckbaseError:  # the solve says so
        return []
    newest: tuple[float, list[str]] = (0.0, [])
    version = load_game(board).rules_version
    for table in tables_of(board, results):
        try:
            manifest = read_manifest(storage_at(table), table)
        except LuckbaseError:
            continue
        changed = what_changed(manifest.head, board, version)
        if why_stale(manifest) == changed:  # else its options are others, or its file is
            newest = max(newest, (storage_at(table).details(NAME)[NAME].put_at, changed))
    return newest[1]


def table_used(name: str | os.PathLike[str], board: Board, results: Path) -> Path:
    """The table that plays on a board: a directory, or a board file; of the board's own file the
    table with the same rules. Raises MissingTableError."""
    path, source = place_of(name), board.source
    absolute = name_of(path.absolute())
    same_board = source is not None and not path.is_dir() and absolute == name_of(source.file)
    table = table_of(board, results) if same_board else None
    return table or find_table(str(name), results, {}).path


# --- open -----------------------------------------------------------------------------------------


def _part_kind(name: str) -> type[Part]:
    """What holds the rows of a part of this name."""
    from luckbase.cluster.table.parts import TierPart

    if name == TIERS:
        return TierPart
    if name == DECISIONS:
        from luckbase.cluster.table.decisions import DecisionPart

        return DecisionPart
    from luckbase.cluster.table.keyed import KeyPart

    return KeyPart


def table_at(path: Path, manifest: Manifest, *, named_by_board: bool = False) -> StoredTable:
    """Return the table at a path, with this manifest. named_by_board: found by the rules of a
    board file as it is now, so never stale."""
    from luckbase.cluster.table.table import StoredTable

    board = as_its_file_begins(manifest.board(manifest.reach), manifest.origin)
    game, storage = load_game(board), storage_at(path)
    names = manifest.part_names()
    parts = [_part_kind(name)(storage, path, manifest, name, game) for name in names]
    table = StoredTable(game, parts, path)
    table.manifest = manifest
    table.stale = () if named_by_board else tuple(why_stale(manifest, absent_is_stale=False))
    return table


def open_table(path: str | os.PathLike[str], *, named_by_board: bool = False) -> StoredTable:
    """Open the table in a directory, or at a URI. Raises MissingTableError, CorruptTableError."""
    where = place_of(path)
    return table_at(where, read_manifest(storage_at(where), where), named_by_board=named_by_board)


# --- the status of a table -----------------------------------------------------------------------


@dataclass(frozen=True)
class Status(Result):
    """What is known of a table without opening its files.

    state: complete, partial, stale or damaged; refused of a table whose game is not known here; of
    a board that has no table missing, of one that cannot be read refused: then `table` is its
    file. options: not at the game's defaults.
    title: of the board, where its file is still there. names: of its game, board and rules
    identity. stores: payoffs, or decisions too (`Manifest.stores`). tiers: files of the full
    table, of `tiers_in_all`. roots: of searches. date: of the last commit, in ISO 8601; None if
    there was none. why: sentences, with what would help.
    error: the bound on a payoff's. running: what a solve that runs says of itself
    (`cluster.run.watch`).
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

    def _repr_html_(self) -> str:
        files = f"{self.tiers:,} of {sentences.many(self.tiers_in_all, 'file')}"
        rows = [("options", sentences.fields(self.options)), ("states", f"{self.states:,}"),
                ("full table", files * bool(self.tiers_in_all)),
                ("roots of searches", f"{self.roots:,}" * bool(self.roots)),
                ("size", sentences.size(self.bytes)), ("date", self.date or ""),
                ("why", "; ".join(self.why))]  # fmt: skip
        return html_facts(f"{self.state}: {self.table}", rows)


def statuses_of(name: str, results: Path, settings: dict[str, str]) -> list[Status]:
    """The status of the table that is named by its directory, or of all tables of a board file;
    with settings of the one with these rules.

    Raises OptionError, MissingTableError for what is not there.
    """
    path = place_of(name)
    if path.is_dir():
        return [status_of(path)]
    of_board = tables_of(read_board(path), results) if path.exists() and not settings else []
    return [status_of(each) for each in of_board or [find_table(name, results, settings).path]]


def status_of(path: Path) -> Status:
    """Return the status of the table in a folder."""
    try:
        return _status_of(path)
    except PermissionError as error:
        why = f"{error.filename or path}: permission denied"
        return Status(str(path), "refused", {}, why=(why,))


def _status_of(path: Path) -> Status:
    try:
        storage = storage_at(path)
        manifest = read_manifest(storage, path)
        head = manifest.head
        stale, damaged = why_stale(manifest), damaged_files(storage, path, manifest.files)
        goal = manifest.furthest
        options = changed_options(manifest.board(manifest.reach))
    except TableError as error:
        unknown = isinstance(error, UnknownGameError)
        states, size = (manifest.rows, manifest.bytes) if unknown else (0, 0)
        return Status(
            str(path), "refused" if unknown else "damaged", {}, states=states, bytes=size,
            why=(str(error),), running=running(path), date=_changed_at(path),
        )  # fmt: skip
    state, why = _state(manifest, stale, damaged, results_of(path))
    return Status(
        str(path), state, options,
        *((0, 0) if goal is None else manifest.progress(goal)),
        len({json.dumps(start) for g in manifest.goals if g.roots for start in g.roots.start}),
        manifest.rows, manifest.bytes, manifest.error(), tuple(why), running(path),
        title_of(manifest), names=(head.game, head.board, head.identity), date=_changed_at(path),
        stores=manifest.stores,
    )  # fmt: skip


def title_of(manifest: Manifest) -> str:
    """The title of a table's board, where its file is still there: it is no part of the rules."""
    origin = manifest.origin
    if origin is not None:
        with suppress(LuckbaseError, OSError):
            return read_board(Path(origin.board_file), origin.settings).title
    return ""


def _changed_at(path: Path) -> str | None:
    """Return when the manifest was written; None if nothing says so."""
    with suppress(OSError, LookupError, StoreError):
        newest = storage_at(path).details(NAME)[NAME].put_at
        return datetime.fromtimestamp(newest).astimezone().isoformat(timespec="seconds")
    return None


def running(path: Path) -> dict[str, Any] | None:
    """What a solve of the table says of itself; None where none runs, on any machine."""
    try:
        progress: dict[str, Any] = json.loads(storage_at(path).read(RUNNING))
        age = datetime.now().astimezone() - datetime.fromisoformat(progress["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with suppress(LuckbaseError, OSError):
        writer = read_manifest(storage_at(path), path).writer
        if writer is None or writer.ended or process_ended(vars(writer)):
            return None
    return progress if abs(age.total_seconds()) < SILENT_SECONDS else None


def _state(
    manifest: Manifest, stale: list[str], damaged: dict[str, str], results: Path | None
) -> tuple[Condition, list[str]]:
    """(the state in a word, why)."""
    if stale and not damaged:
        return "stale", list(stale)
    if manifest.complete and not damaged:
        return "complete", []
    game = load_game(manifest.board({}))
    if damaged:
        parts = {manifest.files[name].part for name in damaged}
        again = [solve_command(g, game, results) for g in manifest.goals if g.part in parts]
        commands = [f"made again by: {each}" for each in dict.fromkeys(again)]
        return "damaged", [*sentences.some(5, list(damaged.values())), *commands]
    left = [goal for goal in manifest.goals if not manifest.is_done(goal)]
    return "partial", [f"goes on with: {solve_command(each, game, results)}" for each in left]


# --- what an open one says of itself -------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A state worth asking about: what it shows, its fields, the table's answer."""

    title: str
    state: Mapping[str, Any]
    answer: Answer

    @property
    def best(self) -> str:
        """The best action, or the likeliest ones of a mixed strategy; a dash where nobody acts."""
        answer = self.answer
        if answer.strategies is None:
            return "toss-up" if answer.toss_up else answer.best or "–"
        likely = sorted(answer.strategies[0], key=lambda bid: -bid.chance)
        return ", ".join(f"{bid.name} {bid.chance:.0%}" for bid in likely[:3] if bid.chance > 0.005)

    def payoff_of(self, name: str) -> str:
        """The payoff of an action to the player to act, or a dash where there is none, or none is
        stored."""
        for action in self.answer.actions:
            if action.name == name and action.value and self.answer.to_act is not None:
                return f"{action.value[self.answer.to_act - 1]:z.4f}"
        return "–"


def action_names(questions: Sequence[Question]) -> list[str]:
    """The actions among which somebody decides alone in these questions."""
    answers = [question.answer for question in questions]
    return sorted({a.name for answer in answers if answer.to_act for a in answer.actions})


def opening_answers(table: Lookup) -> list[Question]:
    """The opening questions of the full table, answered; without one the start, or the roots of
    searches: those that are not solved yet are left out."""
    answers = []
    for title, state in _questions(table):
        with suppress(StateError, MissingTableError):
            answers.append(Question(title, state, table.ask(state)))
    return answers


def _questions(table: Lookup) -> Iterator[tuple[str, Mapping[str, Any]]]:
    full = table.full
    if full is not None and table.game.has(Layout):
        yield from full.layout.opening_questions()
        return
    start = table.game.start()
    if start is not None and table.holds(start.reshape(1, -1))[0]:
        yield "the start", table.game.describe(start)
        return
    for state in islice(held_roots(table), MAX_ROOTS):
        yield "below this all is solved", state


def roots_in(table: Lookup) -> list[dict[str, Any]]:
    """The roots of a table's searches."""
    goals = () if table.manifest is None else table.manifest.goals
    roots = [state for goal in goals if goal.roots is not None for state in goal.roots.start]
    return [in_order(state, table.game) for state in roots]


def held_roots(table: Lookup) -> Iterator[dict[str, Any]]:
    """Those that it has a row of."""
    for state in roots_in(table):
        if table.holds(table.game.parse(state).reshape(1, -1))[0]:
            yield state
