"""The options of a solve."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from luckbase.cluster.machine import cores
from luckbase.cluster.table.storage import place_of
from luckbase.solver.sentences import Help

if TYPE_CHECKING:
    from luckbase.cluster.run.progress import Progress

Place = str | os.PathLike[str]
ONE_PIECE = 1_000_000
"""States up to which a search is solved in one piece: a second."""


@dataclass(frozen=True)
class Options:
    """The options of a solve, with what is meant where nothing is given.

    A `Help` is of the command line too, whose options are made from these fields (`jobs.app`).
    """

    results: Place = "results"
    """The folder of tables, or a URI."""
    memory: int | None = None
    """Bytes that shards in flight may need; a share of what is free if not given."""
    max_states: Annotated[int | None, Help("The most states of a search.", "N", 1)] = None
    workers: Annotated[int | None, Help("Pieces solved at once; else one a core.", "N", 1)] = None
    address: Annotated[str | None, Help("A Ray cluster; local starts one here.", "ADDR")] = None
    force: Annotated[bool, Help("Solve all of it again.")] = False
    one_piece: int = ONE_PIECE
    """Up to so many states a search is solved in one piece."""
    on_progress: Callable[[Progress], None] = lambda progress: None
    """Called with how far it is."""
    on_note: Callable[[str], None] = lambda text: None
    """Called with a sentence that a person should know."""

    @property
    def slots(self) -> int:
        """How many shards at once."""
        return self.workers or cores()

    @property
    def joins(self) -> bool:
        """Whether the workers are those of a Ray cluster that runs already."""
        return self.address not in (None, "local")

    @property
    def folder(self) -> Path:
        """The folder of tables, or where a URI says."""
        return place_of(self.results).absolute()

    @property
    def searches(self) -> bool:
        """Whether there is an option that only a search has."""
        return self.max_states is not None


class SolveOptions(TypedDict, total=False):
    """The same as keywords (`Options`), for type checkers; every one may be left out."""

    results: Place
    memory: int | None
    max_states: int | None
    workers: int | None
    address: str | None
    force: bool
    one_piece: int
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]
