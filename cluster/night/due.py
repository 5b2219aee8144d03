"""What is to be solved of many boards, why, and what it will take; nothing is written.

A full table is planned as `luckbase plan` does it, without compiling its kernel; of a search the
states are counted or estimated. Boards that come to one table are planned one after another: what
the first will have made is there for the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from luckbase.cluster import words
from luckbase.cluster.given import has_full_table, roots_of
from luckbase.cluster.machine import cores, free_memory
from luckbase.cluster.night.asked import Asked
from luckbase.cluster.run.driver import ENDLESS
from luckbase.cluster.run.opening import check_room, complete_ledger, free_disk
from luckbase.cluster.run.options import Options
from luckbase.cluster.run.plan import make_plan
from luckbase.cluster.run.planned import MEMORY_SHARE
from luckbase.cluster.table.find import changed_since
from luckbase.cluster.table.folder import damaged_files
from luckbase.cluster.table.ledger import Ledger, read_ledger, table_directory
from luckbase.cluster.table.lines import TIERS
from luckbase.cluster.table.storage import Folder
from luckbase.solver import load_game
from luckbase.solver.board.model import Board
from luckbase.solver.errors import LuckbaseError, MissingTableError, TableError
from luckbase.solver.game.capabilities import layout_of
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import option


@dataclass(frozen=True)
class _Room:
    """What there is here: cores, bytes that a solve may use; looked up once. made: files that this
    night will have made, by table."""

    cores: int
    memory: int
    made: dict[Path, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Due:
    """What is due of one board that is asked for.

    state: missing (no table yet), stale (there is one of the board as it was), partial, damaged,
    again (all of it, as --force has it), complete, or refused: then `error` says why. why: in
    sentences. about: states are estimated. table: its folder. states, bytes, seconds: still to
    solve, on disk, of wall time; about.
    """

    asked: Asked
    state: str
    why: tuple[str, ...] = ()
    table: Path | None = None
    states: int = 0
    bytes: int = 0
    seconds: float = 0.0
    about: bool = False
    error: LuckbaseError | None = None

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        board = self.asked.board
        return {
            "event": "planned", "file": self.asked.file, "options": self.asked.settings,
            "board": None if board is None else board.name, "state": self.state,
            "why": list(self.why), "table": None if self.table is None else str(self.table),
            "states": self.states, "bytes": self.bytes, "seconds": round(self.seconds, 1),
            "error": None if self.error is None else str(self.error),
        }  # fmt: skip


def due(boards: Sequence[Asked], start: Any, asked: Options) -> list[Due]:
    """What is due of each board, in the order in which they are solved. start: as `luckbase.solve`
    has it."""
    room = _Room(cores(), int(free_memory() * MEMORY_SHARE))
    return in_order([_due(one, start, options_of(one, asked), room) for one in boards])


def too_much(found: Sequence[Due]) -> list[str]:
    """A sentence for each disk that has room for every board alone, and not for all of them."""
    needed: dict[int, int] = {}
    free: dict[int, tuple[Path, int]] = {}
    for one in found:
        if one.table is not None and one.error is None:
            probe, room = free_disk(one.table)
            disk = probe.stat().st_dev
            needed[disk] = needed.get(disk, 0) + one.bytes
            free.setdefault(disk, (probe, room))
    return [
        f"disk: all of them need about {words.size(needed[disk])} under {probe} and "
        f"{words.size(max(room, 0))} are free; each would fit alone, and what fits no more "
        "by then will not be solved"
        for disk, (probe, room) in free.items()
        if needed[disk] > max(room, 0)
    ]


def in_order(found: Sequence[Due]) -> list[Due]:
    """The boards of a job that asks for it by the time that they take, others as they stand."""

    def place(one: Due) -> tuple[int, float]:
        return one.asked.group, one.seconds if one.asked.order == "shortest" else 0.0

    return sorted(found, key=place)


def options_of(one: Asked, asked: Options) -> Options:
    """What is asked of the solve of one board: what its job file says, but for what was said with
    the command or the call."""
    default = Options()
    own = {k: v for k, v in one.how.items() if getattr(asked, k) == getattr(default, k)}
    return replace(asked, **own)


def _due(one: Asked, start: Any, asked: Options, room: _Room) -> Due:
    if one.board is None:
        return Due(one, "refused", error=one.error)
    try:
        game = load_game(one.board)
        if start is None and not asked.searches and has_full_table(game):
            return _due_of_table(one, game, asked, room)
        return _due_of_search(one, game, start, asked)
    except LuckbaseError as error:
        return Due(one, "refused", error=error)


def _due_of_table(one: Asked, game: Game, asked: Options, room: _Room) -> Due:
    table, workers = table_directory(asked.folder, game), asked.workers or room.cores
    first = table not in room.made  # else it will have been solved by then
    files = room.made.setdefault(table, set())
    if first and not (asked.force or asked.check):
        ledger = complete_ledger(game, table, TIERS, margin=asked.margin)
        if ledger is not None:
            files |= {entry.name for entry in ledger.of_part(TIERS)}
            return Due(one, "complete", (), table)
    layout = layout_of(game)
    plan = make_plan(layout, workers)
    state, why, there = _state(game, table, asked, plan.files)
    have = files if asked.force else files | there
    todo = [i for i, name in enumerate(plan.files) if name not in have]
    files |= {*plan.files, *have}
    if not todo and not (first and state == "damaged"):  # what reaches less far is in it
        return Due(one, "complete", () if first else ("as another board of this night",), table)
    rows = sum(plan.shards[i].rows for i in todo)
    share = rows / max(plan.rows, 1)
    budget = room.memory if asked.memory is None else asked.memory
    if asked.memory is None and asked.joins:
        budget = ENDLESS  # each node of a cluster looks after its own
    check_room(plan, budget, table, layout.smaller, todo, workers)
    size, seconds = round(plan.table_bytes * share), plan.wall_seconds(workers) * share
    return Due(one, state, why, table, rows, size, seconds)


def _state(
    game: Game, table: Path, asked: Options, wanted: Sequence[str]
) -> tuple[str, tuple[str, ...], set[str]]:
    """(state in a word, why, files of the full table that are there and whole)."""
    storage = Folder(table)
    try:
        ledger = read_ledger(storage, table)
    except MissingTableError:
        changed = _changed(game.board, asked.folder)
        return ("stale", changed, set()) if changed else ("missing", ("no table yet",), set())
    except TableError as error:
        return "damaged", (str(error),), set()
    bad = damaged_files(storage, table, ledger)
    there = {entry.name for entry in ledger.of_part(TIERS)} - bad.keys()
    if asked.force:
        return "again", (f"{option('force')}: all of it again",), there
    if bad:
        return "damaged", words.some(4, list(bad.values())), there
    return "partial", (_how_far(ledger, there, wanted),), there


def _how_far(ledger: Ledger, there: set[str], wanted: Sequence[str]) -> str:
    count = len(there.intersection(wanted))
    of_them = f"{count} of {words.many(len(wanted), 'file')} {'is' if len(wanted) == 1 else 'are'}"
    if not count:
        return "what lies below some states is there, its full table is not"
    if ledger.complete:
        return f"reaches further than its table: {of_them} there"
    return f"stopped before its end: {of_them} there"


def _due_of_search(one: Asked, game: Game, start: Any, asked: Options) -> Due:
    from luckbase.cluster.search.planned import plan_below
    from luckbase.cluster.search.roots import root_keys
    from luckbase.cluster.search.solve import goal_of
    from luckbase.solver.graph.keys import unpack_all

    keys = root_keys(game, roots_of(game, start))
    wanted, part = goal_of(game, keys, asked)
    table = table_directory(asked.folder, game)
    if not asked.force and complete_ledger(game, table, part, wanted) is not None:
        return Due(one, "complete", (), table)
    planned = plan_below(game, unpack_all(game.bits, keys), asked.folder, asked.workers)
    planned.check()
    state, why = "missing", ["nothing below its start yet" if start is None else "nothing below it"]
    if asked.force:
        state, why = "again", [f"{option('force')}: all of it again"]
    else:
        changed = _changed(game.board, asked.folder)
        state, why = ("stale", list(changed)) if changed else (state, why)
    if planned.at_least:
        why.append("maybe many times as many states")
    return Due(
        one, state, tuple(why), table, planned.states, planned.table_bytes, planned.seconds,
        about=not planned.exact,
    )  # fmt: skip


def _changed(board: Board, results: Path) -> tuple[str, ...]:
    return words.some(4, changed_since(board, results))
