"""Before a solve: is there room, is nobody else at it, and what of the table is there and sound."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO

from luckbase.cluster.run.worker import TableLocation
from luckbase.cluster.table import RUNNING
from luckbase.cluster.table.folder import (
    LINES,
    check_bytes,
    check_identity,
    compact,
    damaged_files,
    drop_files,
    read_ledger,
    sweep,
    write_head,
)
from luckbase.cluster.table.ledger import TIERS, Goal, Ledger, Roots, new_head, reach_of
from luckbase.cluster.table.storage import Folder, attempt, flush_folder
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import rules_form, rules_identity
from luckbase.solver.errors import (
    CorruptTableError,
    ForeignTableError,
    LuckbaseError,
    MissingTableError,
    OptionError,
    RequestError,
    TableError,
)
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import option

PROBE, LOCK = ".here-", ".lock"


def open_ledger(game: Game, table: Path, part: str, *, check: bool) -> tuple[Ledger, list[str]]:
    """The ledger to go on from, and what of the part was damaged and is forgotten, a sentence each.
    Whatever the ledger does not name is swept away.

    check: every byte of the part is read, not the sizes only. Raises CorruptTableError where the
    folder holds a table of other rules.
    """
    storage, head = Folder(table), new_head(game)
    damaged = []
    try:
        check_identity(storage, table, head.identity)
    except MissingTableError:
        write_head(storage, head)
    except ForeignTableError:
        raise
    except CorruptTableError as error:
        damaged.append(str(error))
        write_head(storage, head)
    ledger = read_ledger(storage, table, head=head, lenient=True)
    if ledger.damage:
        damaged += ledger.damage
        ledger.done.clear()
        compact(storage, ledger)
    mine = replace(ledger, files={e.name: e for e in ledger.of_part(part)})
    bad = check_bytes(storage, table, mine) if check else damaged_files(storage, table, mine)
    if bad:
        drop_files(storage, ledger, list(bad))
    lost = sweep(storage, table, ledger)
    if lost:  # else the lines of these count at the next reading
        compact(storage, ledger)
        damaged += lost
    shutil.rmtree(spill_folder(table), ignore_errors=True)
    for path in (table / RUNNING, *table.glob(f"{PROBE}*")):
        path.unlink(missing_ok=True)
    return ledger, [*damaged, *bad.values()]


def complete_ledger(
    game: Game, table: Path, part: str, roots: Roots | None = None, margin: bool = False
) -> Ledger | None:
    """The ledger of a table in which all that is asked for is there and no file is missing or
    short; None otherwise. Nothing is written, and nobody's solve is waited for."""
    storage = Folder(table)
    try:
        ledger = read_ledger(storage, table)
    except TableError:
        return None
    wanted = margin or (roots is None and ledger.margin)
    reach = reach_of(game.board) if roots is None else {}
    goal = Goal(part, reach, roots, 0, "", {}, wanted)
    there = goal.ask in ledger.done and not is_new(goal, ledger)
    there &= ledger.head.identity == rules_identity(game)
    there &= all(shard.ask not in ledger.done for shard in ledger.shards.values())
    if not there or not _is_known(game, ledger):
        return None
    return None if damaged_files(storage, table, ledger) else ledger


def tidy(table: Path) -> None:
    """Do what is left for a complete table whose solve was killed at its very end: its ledger in
    one object, no temporary files. Who is at it just now does so at its own end."""
    storage = Folder(table)
    if len(storage.list(LINES)) > 1:
        with suppress(RequestError, OSError), lock(table):
            ledger = read_ledger(storage, table)
            sweep(storage, table, ledger)
            compact(storage, ledger)


def _is_known(game: Game, ledger: Ledger) -> bool:
    """Whether the ledger says where the board was read, if it was read anywhere."""
    source = game.board.source
    said = ("", {}) if source is None else (source.file, dict(source.settings))
    known = [("", {}), *((goal.board_file, goal.settings) for goal in ledger.goals)]
    return said in known or where_from(game) in known  # a file is read where that decides


def make_goal(
    game: Game, ledger: Ledger, part: str, files: int, *, roots: Roots | None = None,
    margin: bool = False,
) -> Goal:  # fmt: skip
    """What this solve is asked for. Raises OptionError for a margin that the table can not get."""
    if margin and part == TIERS and ledger.of_part(part) and not ledger.margin:
        raise OptionError(
            f"{option('margin')}: the files of this table have none, and all or none have it; "
            f"{option('force')} solves the table anew"
        )
    board_file, settings = where_from(game)
    reach = reach_of(game.board) if roots is None else {}
    number = max((goal.number for goal in ledger.goals), default=0) + 1
    wanted = margin or (roots is None and ledger.margin)
    return Goal(part, reach, roots, files, board_file, settings, wanted, number)


def where_from(game: Game) -> tuple[str, dict[str, str]]:
    """The file and the settings that the game's board was read from; "" where it is not what
    stands there."""
    source = game.board.source
    if source is None:
        return "", {}
    try:
        read = read_board(Path(source.file), source.settings)
    except LuckbaseError:
        return "", {}
    same = rules_form(read) == rules_form(game.board) and reach_of(read) == reach_of(game.board)
    return (source.file, dict(sorted(source.settings.items()))) if same else ("", {})


def is_new(goal: Goal, ledger: Ledger) -> bool:
    """Whether a goal says what no goal of the ledger says: how far, from which roots, or where the
    board stands."""
    mine = goal.board_file, goal.settings
    known = [(other.board_file, other.settings) for other in ledger.goals]
    same = [other for other in ledger.goals if other.ask == goal.ask]
    return goal.margin not in {other.margin for other in same} or (
        bool(goal.board_file) and mine not in known
    )


def spill_folder(table: Path) -> Path:
    """Where payoffs lie that do not fit in memory, while a solve runs."""
    return table / "spill"


@contextmanager
def shown_by_a_file(table: Path) -> Iterator[TableLocation]:
    """The table with a file in its folder, by which machines that share it know it; at the end
    both are as before."""
    location = TableLocation(table, f"{PROBE}{attempt()}")
    (table / location.probe_file).touch()
    try:
        yield location
    finally:
        (table / location.probe_file).unlink(missing_ok=True)
        shutil.rmtree(spill_folder(table), ignore_errors=True)


@contextmanager
def lock(table: Path) -> Iterator[None]:
    """One solve of a table at a time. Raises RequestError where another is running, with who."""
    with _locked(table) as file:
        file.truncate(0)
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        said = {"host": socket.gethostname(), "process": os.getpid(), "since": now}
        file.write(json.dumps(said))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _locked(table: Path) -> IO[str]:
    """The open lock file of a table, held. Raises RequestError where another holds it."""
    import fcntl

    while True:
        new = [folder for folder in (table, *table.parents) if not folder.exists()]
        table.mkdir(parents=True, exist_ok=True)
        for folder in new:
            flush_folder(folder.parent)
        try:
            file = (table / LOCK).open("a+")
        except FileNotFoundError:
            continue  # the table has just been removed (`luckbase clean`)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise RequestError(
                f"{table}: another solve of this table is running{_holder(table)}"
            ) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), (table / LOCK).stat()):
                return file
        file.close()  # it was removed between the two


def _holder(table: Path) -> str:
    """Who says to hold the lock: ``: process 12 on host since …``."""
    try:
        said = json.loads((table / LOCK).read_text())
        return f": process {said['process']} on {said['host']} since {said['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
