"""A plan for people: what a solve will take, level by level, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luckbase.cluster.machine import cores, free_memory
from luckbase.cluster.run.opening import check_room
from luckbase.cluster.run.plan import Plan, make_plan
from luckbase.cluster.table.ledger import table_directory
from luckbase.cluster.table.storage import Folder
from luckbase.solver import load_layout
from luckbase.solver.board.model import Board

MEMORY_SHARE = 0.7
"""Of the machine's free memory, what shards in flight may use unless told otherwise."""


@dataclass(frozen=True)
class Level:
    """Shards that have something in common: what, how many, their states, bytes of the largest."""

    name: str
    shards: int
    states: int
    memory: int


@dataclass(frozen=True)
class Planned:
    """What a solve will take.

    table_bytes: on disk. kept_bytes: payoffs for shards that read them, at their fullest.
    peak_memory: bytes. seconds: of wall time with so many workers. budget: bytes that they may
    use.
    """

    board: str
    tiers: int
    states: int
    table_bytes: int
    kept_bytes: int
    peak_memory: int
    seconds: float
    workers: int
    levels: tuple[Level, ...]
    plan: Plan
    table: Path
    budget: int
    smaller: str

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return len(self.plan.shards)

    def check(self) -> None:
        """Raises MemoryLimitError, DiskLimitError for what is still to do and will not fit."""
        there = set(Folder(self.table).list("tiers"))
        todo = [i for i, name in enumerate(self.plan.files) if name not in there]
        check_room(self.plan, self.budget, self.table, self.smaller, todo, self.workers)

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "board": self.board, "tiers": self.tiers, "shards": self.shards, "states": self.states,
            "table_bytes": self.table_bytes, "kept_bytes": self.kept_bytes,
            "peak_memory": self.peak_memory, "seconds": round(self.seconds, 1),
            "workers": self.workers,
        }  # fmt: skip


def planned(
    board: Board, results: Path, workers: int | None = None, memory: int | None = None
) -> Planned:
    """The plan of a board's full table. Raises BoardError, OptionError where it has none."""
    layout = load_layout(board)
    count = workers or cores()
    made, tiers = make_plan(layout, count), layout.tiers()
    levels: dict[Any, list[int]] = {}
    for shard, (index, _) in zip(made.shards, made.parts, strict=True):
        fields = layout.tier_fields(tiers[index])
        none = (layout.tier_name(tiers[index]), "")
        level = levels.setdefault(next(iter(fields.items()), none), [0, 0, 0])
        level[0] += 1
        level[1] += shard.rows
        level[2] = max(level[2], shard.memory)
    listed = (Level(f"{name} {value}".strip(), *of) for (name, value), of in sorted(levels.items()))
    return Planned(
        board.name, len(tiers), made.rows, made.table_bytes, made.kept_bytes,
        made.peak_memory(count), made.wall_seconds(count), count, tuple(listed), made,
        table_directory(results.absolute(), layout.game),
        memory if memory is not None else int(free_memory() * MEMORY_SHARE), layout.smaller,
    )  # fmt: skip
