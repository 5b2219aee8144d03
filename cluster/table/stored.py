"""A table in a folder: what its ledger says, opened."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from luckbase.cluster.table import OnRows
from luckbase.cluster.table.answer import Origin, origin_of
from luckbase.cluster.table.find import command, results_of, why_stale
from luckbase.cluster.table.keyed import KeyPart
from luckbase.cluster.table.ledger import Ledger, furthest, read_ledger
from luckbase.cluster.table.lines import TIERS
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.table import Table
from luckbase.cluster.table.tiers import TierPart
from luckbase.cluster.words import many, program
from luckbase.solver import load_game
from luckbase.solver.charts import FULL, STATES, Kind
from luckbase.solver.errors import MissingTableError, OptionError


class StoredTable(Table):
    """A table in a folder."""

    def __init__(self, path: Path, ledger: Ledger, *, named_by_board: bool = False) -> None:
        """named_by_board: found by the rules of a board file as it stands, so never stale."""
        self.path, self.ledger, self.named_by_board = path, ledger, named_by_board
        goal = furthest(ledger)
        game = load_game(ledger.board({} if goal is None else goal.reach))
        storage = Folder(path)
        super().__init__(
            game,
            [
                (TierPart if name == TIERS else KeyPart)(storage, path, ledger, name, game)
                for name in ledger.part_names()
            ],
            path,
        )

    @cached_property
    def origin(self) -> Origin:
        stale = () if self.named_by_board else tuple(why_stale(self.ledger, absent_is_stale=False))
        return origin_of(self.game, stale)

    @property
    def identity(self) -> str:
        return self.ledger.head.identity

    def check_files(self, on_rows: OnRows) -> tuple[list[str], int]:
        from luckbase.cluster.table.verify import check_files

        return check_files(self, on_rows), len(self.ledger.files)

    def unfinished(self, part: str | None = None) -> list[str]:
        goal, found = furthest(self.ledger), []
        if part in (None, TIERS) and goal is not None and not self.ledger.is_done(goal):
            there = len(self.ledger.of_part(TIERS))
            are = "is" if goal.files == 1 else "are"
            found.append(f"{there} of its {many(goal.files, 'tier')} {are} solved")
        searches = [g for g in self.ledger.goals if g.part != TIERS and part in (None, g.part)]
        left = sum(not self.ledger.is_done(g) for g in searches)
        if left:
            of = "1 search" if len(searches) == 1 else f"{len(searches)} searches"
            found.append(f"{left} of its {of} did not end")
        return found

    def check_chart(self, kind: Kind) -> None:
        if kind.needs == STATES:
            return
        goal = furthest(self.ledger)
        latest = goal or self.ledger.latest
        said = ("BOARD", {}) if latest is None else (latest.board_file or "BOARD", latest.settings)
        results = results_of(self.path)
        again = command(f"{program()} solve", *said, self.game.board.game, results)
        if goal is None and kind.needs == FULL:
            raise OptionError(
                f"{self.path}: holds what lies below some states, and a chart needs the full "
                f"table: {again}"
            )
        super().check_chart(kind)
        if goal is not None and not self.ledger.is_done(goal):
            raise MissingTableError(
                f"{self.path}: {self.unfinished(TIERS)[0]}, and a chart needs them all: {again}"
            )


def open_table(path: str | os.PathLike[str], *, named_by_board: bool = False) -> StoredTable:
    """Open the table in a directory. Raises MissingTableError, CorruptTableError."""
    where = Path(path)
    return StoredTable(where, read_ledger(Folder(where), where), named_by_board=named_by_board)
