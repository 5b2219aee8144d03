"""From what a person says to a table's folder: a path, or a board file with its options.

A board file with its options means exactly one rules identity; options of reach do not matter. The
table may stand under another board's name, if that board has the same rules.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from luckbase.cluster.table.folder import HEAD, check_identity, read_head, read_ledger
from luckbase.cluster.table.ledger import Head, Ledger, board_command
from luckbase.cluster.table.storage import Folder
from luckbase.solver import load_game
from luckbase.solver.board.file import differences, path_of, read_board
from luckbase.solver.board.model import Board, rules_form, rules_identity
from luckbase.solver.errors import (
    LuckbaseError,
    MissingTableError,
    OptionError,
    TableError,
)
from luckbase.solver.sentences import on_command_line


@dataclass(frozen=True)
class Found:
    """A table's folder; by_board: it was found by the rules of a board, not named by its path."""

    path: Path
    by_board: bool


def tables_in(results: Path) -> list[Path]:
    """Every table's folder under `results`."""
    return sorted(path.parent for path in results.glob(f"*/*/*/{HEAD}"))


def tables_below(folder: Path) -> list[Path]:
    """Every table in a folder: itself, those of a board, of a game, or of all results."""
    if is_table(folder):
        return [folder]
    return sorted(p.parent for at in ("*", "*/*", "*/*/*") for p in folder.glob(f"{at}/{HEAD}"))


def results_of(path: Path) -> Path | None:
    """The folder of results that a table is in, as short as the table was named; None where it is
    in none."""
    for one in (path, Path(os.path.abspath(path))):
        if len(one.parts) > 3:
            return one.parents[2]
    return None


def is_table(path: Path) -> bool:
    """Whether a folder holds a table."""
    return (path / HEAD).is_file()


def tables_of(board: Board, results: Path) -> list[Path]:
    """The folders of the tables of a board, by its game and name, whatever their options."""
    there = results / board.game / board.name
    return sorted(path for path in there.glob("*") if is_table(path))


def table_of(board: Board, results: Path) -> Path | None:
    """The folder of the table with the board's rules, under its own name or another's.

    Raises CorruptTableError where the folder's head is damaged or says other rules.
    """
    identity = rules_identity(load_game(board))
    own = results / board.game / board.name / identity
    others = sorted(results.glob(f"{board.game}/*/{identity}"))
    for path in [own, *others]:
        if (path / HEAD).is_file():
            check_identity(Folder(path), path, identity)
            return path
    return None


def find_table(name: str, results: Path, settings: dict[str, str]) -> Found:
    """The table that a person means: the folder itself, or that of a board file with `settings`.

    Raises MissingTableError where there is none, naming those of the board that there are;
    OptionError, BoardError.
    """
    path = path_of(name)
    if path.is_dir():
        if settings:
            word = next(iter(settings))
            said = f"{name} is a table, whose options stand; leave {word} out"
            raise OptionError(on_command_line("--set: ") + said)
        return Found(path, by_board=False)
    if not path.exists():
        raise OptionError(f"{name}: no such table or board file")
    board = read_board(path, settings)
    found = table_of(board, results)
    if found is None:
        raise MissingTableError(_none_of(name, board, results, settings))
    return Found(found, by_board=True)


def _none_of(name: str, board: Board, results: Path, settings: dict[str, str]) -> str:
    said = f"{name}: no table of this board"
    if settings:
        said += " with " + " ".join(f"{k}={v}" for k, v in settings.items())
    others = []
    for path in tables_of(board, results):
        try:
            head = read_head(Folder(path), path)
        except TableError:
            others.append(f"{path} can not be read")
            continue
        differ = differences(rules_form(board), head.rules)
        version = load_game(board).rules_version
        if head.rules_version != version:
            differ.append(f"rules version {head.rules_version}, now {version}")
        others.append(f"{path} ({_as_there(differ)})")
    there = f"; there is {'; '.join(others[:5])}" if others else f" under {results}"
    makes = board_command(name, settings, board.game, results)
    return f"{said}{there}; run: {makes}"


def _as_there(differ: list[str]) -> str:
    """What another table has, from the differences of its board to the one asked for."""
    said = [re.sub(r"was (.*), now (.*)", r"\2 for \1", each) for each in differ]
    return ", ".join(said[:4]) + (", …" if len(said) > 4 else "")


def why_stale(ledger: Ledger, *, absent_is_stale: bool = True) -> list[str]:
    """What has changed in the board since the table was solved, as sentences; empty where nothing
    has, or where nobody knows where the board came from.

    The board is read again from the file that it was read from last, with the same options.
    """
    goal = next((goal for goal in reversed(ledger.goals) if goal.board_file), None)
    if goal is None:
        return []
    path = Path(goal.board_file)
    if not absent_is_stale and not path.is_file():
        return []
    try:
        game = load_game(read_board(path, goal.settings))
    except LuckbaseError as error:
        return [f"its board can not be read any more: {error}"]
    return what_changed(ledger.head, game.board, game.rules_version)


def what_changed(head: Head, board: Board, rules_version: int) -> list[str]:
    """The differences between the table's rules and those of a board now, a sentence each."""
    changed = differences(head.rules, rules_form(board))
    if rules_version != head.rules_version:
        changed.append(f"the rules are version {rules_version}, were {head.rules_version}")
    return changed


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
            ledger = read_ledger(Folder(table), table)
        except LuckbaseError:
            continue
        if why_stale(ledger):  # else that one was asked for with other options, and still is right
            when = (table / HEAD).stat().st_mtime
            newest = max(newest, (when, what_changed(ledger.head, board, version)))
    return newest[1]


def table_used(name: str | os.PathLike[str], board: Board, results: Path) -> Path:
    """The table that a search of a board is to end at, or that plays on it: a directory, or a board
    file; of the board's own the one with the same rules. Raises MissingTableError."""
    source = board.source
    if (
        not Path(name).is_dir()
        and source is not None
        and Path(name).absolute() == Path(source.file)
    ):
        found = table_of(board, results)
        if found is not None:
            return found
    return find_table(str(name), results, {}).path
