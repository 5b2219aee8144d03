"""The options of a solve, how far it is while it runs, and what it did."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from luckbase.cluster import words
from luckbase.cluster.machine import cores
from luckbase.cluster.words import Help
from luckbase.solver.sentences import html_facts

if TYPE_CHECKING:
    from luckbase.cluster.table.ledger import Goal, Ledger

Place = str | os.PathLike[str]
MOST_STATES = 200_000_000
"""States that a search in one piece may meet if nothing is said."""
ONE_PIECE = 1_000_000
"""States up to which a search is solved in one piece: a second."""


@dataclass(frozen=True)
class Progress:
    """How far a solve is: shards and rows of this run, seconds since it started. compiling: it has
    not, all else is 0. finding: of a search that does not know yet how many states there are, where
    it is; rows are those found, about: how many there are by an estimate, 0 before there is one.
    of: what a shard is called. before: rows that were there when it started."""

    shards: int
    shards_total: int
    rows: int
    rows_total: int
    seconds: float
    compiling: bool = False
    finding: str = ""
    about: int = 0
    of: str = "tiers"
    before: int = 0

    @property
    def rate(self) -> float:
        """Rows a second of this run."""
        return (self.rows - self.before) / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values, with states a second and the seconds that are left, about."""
        rate = self.rate
        left = (self.rows_total - self.rows) / rate if rate and self.rows_total else None
        return {
            "shards": self.shards, "shards_total": self.shards_total, "states": self.rows,
            "states_total": self.rows_total, "seconds": round(self.seconds, 1),
            "states_a_second": round(rate), "finding": self.finding or None,
            "states_about": self.about or None,
            "seconds_left": None if left is None else round(max(0.0, left), 1),
        }  # fmt: skip


@dataclass(frozen=True)
class Options:
    """The options of a solve, with what is meant where nothing is given.

    A `Help` is of the command line too, whose options are made from these fields (`jobs.options`).
    """

    results: Place = "results"
    """The folder of tables."""
    memory: int | None = None
    """Bytes that shards in flight may need; a share of what is free if not given."""
    using: Annotated[Place | None, Help("A table at which a search may end.", "TABLE")] = None
    max_states: Annotated[int | None, Help("States that a search may meet.", "N", 1)] = None
    workers: Annotated[int | None, Help("Shards at once; all cores if not given.", "N", 1)] = None
    address: Annotated[str | None, Help("A Ray cluster, or local: one here.", "ADDR")] = None
    margin: Annotated[bool, Help("Store what the second best action would cost.")] = False
    force: Annotated[bool, Help("Solve all of it again.")] = False
    check: Annotated[bool, Help("Read every byte first; solve again what has changed.")] = False
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
        """The folder of tables."""
        return Path(self.results).absolute()

    @property
    def most(self) -> int:
        """States that a search in one piece may meet."""
        return MOST_STATES if self.max_states is None else self.max_states

    @property
    def searches(self) -> bool:
        """Whether there is an option that only a search has."""
        return self.using is not None or self.max_states is not None


class SolveOptions(TypedDict, total=False):
    """The same as keywords (`Options`), for type checkers; every one may be left out."""

    results: Place
    memory: int | None
    using: Place | None
    max_states: int | None
    workers: int | None
    address: str | None
    margin: bool
    force: bool
    check: bool
    one_piece: int
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]


@dataclass(frozen=True)
class Solved:
    """What a solve did; 0 or empty where all was there. Numbers are of states.

    goal: what was asked for. kept: were there; states: new. shards: handed out. seconds: from the
    first shard handed out to the last commit, starting Ray included. solve_seconds: of the workers,
    added up. peak_memory: bytes, of this process and of the workers' together (`memory_used`).
    damaged: the files that were not as they should be and were made again, a sentence each.

    Of a full table: again: solved again for those that read them, in `again_seconds` of the kernel;
    read: read back for them. compile_seconds: before the first shard. tally: what the game counted.

    Of a search: solved: over all shards, so that solved / states is the overlap. edges: expanded.
    levels, stages: by which it went; 0 where it was one piece.
    bytes_a_state: of its arrays then.
    """

    table: Path
    ledger: Ledger
    goal: Goal
    kept: int = 0
    states: int = 0
    shards: int = 0
    seconds: float = 0.0
    solve_seconds: float = 0.0
    peak_memory: int = 0
    workers: int = 1
    ray: bool = False
    damaged: tuple[str, ...] = ()
    again: int = 0
    read: int = 0
    again_seconds: float = 0.0
    compile_seconds: float = 0.0
    tally: dict[str, float] = field(default_factory=dict)
    solved: int = 0
    edges: int = 0
    levels: int = 0
    stages: int = 0
    bytes_a_state: float = 0.0

    @property
    def searched(self) -> bool:
        """Whether it was a search, not the solve of a full table."""
        return self.goal.roots is not None

    def _repr_html_(self) -> str:
        """What was solved, in a notebook."""
        ledger = self.ledger
        how = f"{self.workers} {'Ray workers' if self.ray else 'threads'}"
        rows = [("states", f"{self.states:,} solved now, {self.kept:,} were there"),
                ("table", f"{ledger.rows:,} states in {words.many(len(ledger.files), 'file')}, "
                          f"{words.size(ledger.bytes)}"),
                ("time", f"{words.duration(self.seconds)} with {how}" * bool(self.shards)),
                ("memory", words.size(self.peak_memory) * bool(self.peak_memory)),
                ("payoffs within", f"{ledger.error(self.goal.part):.1e}"),
                ("where", str(self.table))]  # fmt: skip
        return html_facts(f"{ledger.head.board} is solved", rows)

    @property
    def overlap(self) -> float:
        """States solved over distinct states: 1 where no two shards solved the same one."""
        return self.solved / self.states if self.states else 1.0
