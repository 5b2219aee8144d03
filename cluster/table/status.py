"""What of a table is complete, partial, stale or damaged, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from luckbase.cluster import words
from luckbase.cluster.table import RUNNING
from luckbase.cluster.table.find import (
    find_table,
    results_of,
    tables_of,
    why_stale,
)
from luckbase.cluster.table.folder import damaged_files, read_ledger
from luckbase.cluster.table.ledger import TIERS, Goal, Ledger, furthest
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.summary import solve_command
from luckbase.solver import load_game
from luckbase.solver.board.file import read_board
from luckbase.solver.board.identity import changed_options
from luckbase.solver.errors import OptionError, TableError, UnknownGameError
from luckbase.solver.result import PythonOnly, Result
from luckbase.solver.sentences import html_facts

SILENT_SECONDS = 60.0
"""A solve that has said nothing for so long was ended without a word."""


Condition = Literal["complete", "partial", "stale", "damaged", "refused", "missing"]


@dataclass(frozen=True)
class Status(Result):
    """What is known of a table without opening its files.

    state: complete, partial, stale or damaged; refused of a table whose game is not known here; of
    a board that has no table missing, of one that can not be read refused: then `table` is its
    file. options: not at the game's defaults.
    tiers: files of the full table, of `tiers_in_all`. roots: of searches. why: sentences, with
    what would help. error: the bound on a payoff's. running: what a solve that runs says of itself
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

    def _repr_html_(self) -> str:
        """The status in a notebook."""
        files = (
            f"{self.tiers:,} of {words.many(self.tiers_in_all, 'file')}"
            if self.tiers_in_all
            else ""
        )
        rows = [("options", words.fields(self.options)), ("states", f"{self.states:,}"),
                ("full table", files), ("roots of searches", f"{self.roots:,}" * bool(self.roots)),
                ("size", words.size(self.bytes)), ("why", "; ".join(self.why))]  # fmt: skip
        return html_facts(f"{self.state}: {self.table}", rows)


def statuses_of(
    names: Sequence[str], results: Path, settings: Mapping[str, str] = {}
) -> list[Status]:
    """The status of the tables that are named, by directory or board file.

    Raises OptionError, MissingTableError for what is not there.
    """
    return [status_of(path) for path in _chosen(names, results, dict(settings))]


def _chosen(names: Sequence[str], results: Path, settings: dict[str, str]) -> list[Path]:
    """The folders of what was named: of a board file all tables, with settings the one with these
    rules."""
    chosen: list[Path] = []
    for name in names:
        if Path(name).is_dir():
            chosen.append(Path(name))
            continue
        if not Path(name).exists():
            raise OptionError(f"{name}: no such table or board file")
        if settings:
            chosen.append(find_table(name, results, settings).path)
            continue
        of_board = tables_of(read_board(Path(name)), results)
        chosen += of_board or [find_table(name, results, {}).path]
    return chosen


def status_of(path: Path) -> Status:
    """The status of the table in a folder."""
    try:
        storage = Folder(path)
        ledger = read_ledger(storage, path)
        stale, bad = why_stale(ledger), damaged_files(storage, path, ledger)
        goal = furthest(ledger)
        shown = changed_options(ledger.board({} if goal is None else goal.reach))
    except UnknownGameError as error:
        return Status(
            str(path), "refused", {}, states=ledger.rows, bytes=ledger.bytes, why=(str(error),),
            running=running(path),
        )  # fmt: skip
    except TableError as error:
        return Status(str(path), "damaged", {}, why=(str(error),), running=running(path))
    state, why = _state(ledger, stale, bad, results_of(path))
    asked = [goal for goal in ledger.goals if goal.roots is not None]
    return Status(
        str(path), state, shown | ({"margin": True} if ledger.margin else {}),
        len(ledger.of_part(TIERS)), 0 if goal is None else goal.files,
        len({json.dumps(start) for g in asked if g.roots for start in g.roots.start}),
        ledger.rows, ledger.bytes, ledger.error(), tuple(why), running(path),
    )  # fmt: skip


def running(path: Path) -> dict[str, Any] | None:
    """What a solve of the table says of itself; None where none runs, on any machine."""
    try:
        said: dict[str, Any] = json.loads((path / RUNNING).read_text())
        age = datetime.now().astimezone() - datetime.fromisoformat(said["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return said if abs(age.total_seconds()) < SILENT_SECONDS else None


def _state(
    ledger: Ledger, stale: list[str], bad: dict[str, str], results: Path | None
) -> tuple[Condition, list[str]]:
    """(the state in a word, why)."""
    if bad:
        parts = {ledger.files[name].part for name in bad}
        again = [_again(goal, ledger, results) for goal in ledger.goals if goal.part in parts]
        made = [f"made again by: {each}" for each in dict.fromkeys(again)]
        return "damaged", [*words.some(5, list(bad.values())), *made]
    if stale:
        return "stale", list(stale)
    if ledger.complete:
        return "complete", []
    left = [goal for goal in ledger.goals if not ledger.is_done(goal)]
    return "partial", [f"goes on with: {_again(each, ledger, results)}" for each in left]


def _again(goal: Goal, ledger: Ledger, results: Path | None) -> str:
    """The command that solves what a goal asked for."""
    game = load_game(ledger.board(goal.reach))
    return solve_command(goal, game, words.program(), goal.board_file or "BOARD", results)
