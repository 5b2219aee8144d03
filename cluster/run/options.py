"""What is asked of a solve beside the board, how far it is while it runs, and what it did."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from luckbase.cluster import shown, words
from luckbase.cluster.machine import cores
from luckbase.cluster.table.ledger import Ledger
from luckbase.cluster.table.lines import Goal

Place = str | os.PathLike[str]
MOST_STATES = 200_000_000
"""States that a search in one piece may meet unless told otherwise."""
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


class SolveOptions(TypedDict, total=False):
    """The options of a solve; every one may be left out.

    results: the folder of tables ("results"). workers: how many shards at once (all cores).
    address: a running Ray cluster, or "local" for one that is started here; threads if not given.
    memory: bytes that shards in flight
    may need (a share of what is free). margin: with a column `margin`. force: solve all of it
    again. check: read every byte first, and solve again what has changed. on_progress: told how far
    it is. on_note: told in a sentence what a person should know.

    Of a search: using: a table's directory, at which it ends. max_states: that it may meet (200
    million in one piece). one_piece: up to so many states it is solved in one piece (a million).
    """

    results: Place
    workers: int | None
    address: str | None
    memory: int | None
    margin: bool
    force: bool
    check: bool
    using: Place | None
    max_states: int | None
    one_piece: int
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """The same, with what is meant where nothing is given (`SolveOptions`)."""

    results: Place = "results"
    workers: int | None = None
    address: str | None = None
    memory: int | None = None
    margin: bool = False
    force: bool = False
    check: bool = False
    using: Place | None = None
    max_states: int | None = None
    one_piece: int = ONE_PIECE
    on_progress: Callable[[Progress], None] = lambda progress: None
    on_note: Callable[[str], None] = lambda text: None

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
        """Whether anything is asked that only a search does."""
        asked = (self.using, self.max_states)
        return any(one is not None for one in asked)


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
        return shown.facts(f"{ledger.head.board} is solved", rows)

    @property
    def overlap(self) -> float:
        """States solved over distinct states: 1 where no two shards solved the same one."""
        return self.solved / self.states if self.states else 1.0
