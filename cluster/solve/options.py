"""The options of a solve."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from luckbase.cluster.machine import cores
from luckbase.cluster.notebook import Bar
from luckbase.cluster.store.storage import place_of
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import Help, nearest

if TYPE_CHECKING:
    from luckbase.cluster.solve.progress import Progress

Place = str | os.PathLike[str]
ONE_PIECE = 1_000_000
"""Maximum number of states of a search in one piece: about a second of work."""


def solve_bar() -> Callable[[Progress], None]:
    """Return a function that shows the progress of a solve in a notebook."""
    bar = Bar()
    return lambda now: bar.show(*now.parts, now.text)


@dataclass(frozen=True)
class Options:
    """The options of a solve, with their defaults. Fields with a `Help` are also options of the
    command line, which is generated from them (`jobs.app`)."""

    results: Place = "results"
    """The results folder, or a URI."""
    memory: int | None = None
    """Bytes that running shards may use; by default a share of the free memory."""
    max_states: Annotated[int | None, Help("The most states of a search.", "N", 1)] = None
    workers: Annotated[int | None, Help("Pieces solved at once; else one a core.", "N", 1)] = None
    address: Annotated[str | None, Help("A Ray cluster; local starts one here.", "ADDR")] = None
    force: Annotated[bool, Help("Solve all of it again.")] = False
    one_piece: int = ONE_PIECE
    """Maximum number of states of a search in one piece."""
    on_progress: Callable[[Progress], None] = field(default_factory=solve_bar)
    """Called with the progress; by default a notebook shows a bar."""
    on_note: Callable[[str], None] = lambda text: None
    """Called with a sentence for the user."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Options:
        """Return options given as keywords. Raises OptionError for an unknown one."""
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                raise OptionError(
                    f"{name}: is not an option of a solve; {nearest(name, known)}; options of a "
                    "board go to load_board"
                )
        return cls(**given)

    @property
    def slots(self) -> int:
        """The number of shards solved at once."""
        return self.workers or cores()

    @property
    def joins(self) -> bool:
        """True if the solve uses the workers of an existing Ray cluster."""
        return self.address not in (None, "local")

    @property
    def folder(self) -> Path:
        """The results folder, or the location of a URI."""
        return place_of(self.results).absolute()

    @property
    def searches(self) -> bool:
        """True if an option is given that applies only to searches."""
        return self.max_states is not None


class SolveOptions(TypedDict, total=False):
    """The fields of `Options` as keywords, for type checkers; all are optional."""

    results: Place
    memory: int | None
    max_states: int | None
    workers: int | None
    address: str | None
    force: bool
    one_piece: int
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]
