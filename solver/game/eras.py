"""The capability `Eras`: boards of one game under one rule set, compared by what their tables say.

A game makes the parts of a page as data; `luckbase eras` writes and draws them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from luckbase.solver.charts.model import Cell, Curves, Look
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Capability


@dataclass(frozen=True)
class Era:
    """A board with its full table. look: payoffs (n, players) of canonical states (n, fields) that
    the table holds; error: the bound on each."""

    game: Game
    look: Look
    error: float

    @property
    def name(self) -> str:
        """The board's name."""
        return self.game.board.name


@dataclass(frozen=True)
class Part:
    """A part of a page: heading, sentences, a table (columns, rows) or none, a picture or none; the
    picture's file is named by `name`."""

    heading: str
    name: str
    text: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    picture: Curves | None = None


class Eras(Capability, ABC):
    """Boards compared."""

    missing: ClassVar[str] = "has nothing to say of several boards; luckbase diff compares two"

    @abstractmethod
    def compare(self, eras: Sequence[Era]) -> list[Part]:
        """What the tables of several boards with the same options say side by side. Raises
        StateError, OptionError for boards on which there is nothing to compare."""
