"""``luckbase coarsen``: a board with fewer outcomes of a spin, what it keeps and what it moves."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.jobs.written import check_out, write

if TYPE_CHECKING:
    from luckbase.solver.game.odds import Odds


@dataclass(frozen=True)
class Coarsen:
    """Which board, on how many outcomes, and where the file goes."""

    board: Annotated[Path, typer.Argument(metavar="BOARD", help="A board file.")]
    outcomes: Annotated[
        int, typer.Option("--outcomes", metavar="K", help="At most so many outcomes of a spin.")
    ]
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Write it as a board file.")
    ] = None
    settings: options.Settings = None
    as_json: options.Json = False


@options.takes(Coarsen)
def coarsen(asked: Coarsen) -> None:
    """Show a board with fewer outcomes of a spin: what it keeps and what it moves.

    Means and odds are kept exactly, and every amount is on the board's grid. `luckbase solve BOARD
    --set outcomes=K` solves it; `python -m tests.bench coarsen` measures how far off its table is.
    """
    from luckbase.solver import load_game
    from luckbase.solver.errors import OptionError
    from luckbase.solver.game.odds import SIGNED, Odds

    if "outcomes" in options.read_settings(asked.settings):
        raise OptionError("--set: outcomes is given by --outcomes")
    if asked.out is not None:
        if asked.out.suffix != ".toml":
            raise OptionError(f"--out: {asked.out}: a board file ends in .toml")
        check_out(asked.out, [asked.board], SIGNED, "luckbase coarsen")
    load_game(options.board_of(asked.board, asked.settings)).need(Odds)
    settings = [*(asked.settings or []), f"outcomes={asked.outcomes}"]
    odds = load_game(options.board_of(asked.board, settings)).need(Odds)
    if asked.as_json:
        print(json.dumps(as_json(odds)))
    else:
        _print(asked.board, odds)
    if asked.out is not None:
        write(asked.out, odds.file().encode())
        render.say(f"{asked.out}: {len(odds.outcomes)} outcomes")


def as_json(odds: Odds) -> dict[str, object]:
    """Facts before and after, the outcomes with their chances, and what moved, as JSON values."""
    return {
        "facts": [
            {"name": one.name, "unit": one.unit, "board": float(one.value),
             "coarse": float(other.value), "kept": one.value == other.value}
            for one, other in zip(odds.written, odds.solved, strict=True)
        ],
        "outcomes": {name: str(chance) for name, chance in odds.outcomes},
        "moved": float(odds.moved.value),
    }  # fmt: skip


def _print(board: Path, odds: Odds) -> None:
    rows = [
        (one.name, str(one), str(other), "kept" if one.value == other.value else "")
        for one, other in zip(odds.written, odds.solved, strict=True)
    ]
    title = f"{board.stem} on {len(odds.outcomes)} outcomes"
    render.print_table(title, ("one spin", "the board", "coarser", ""), rows, sys.stdout)
    render.print_table(
        "", ("outcome", "chance", ""),
        [(name, f"{float(chance):.5f}", str(chance)) for name, chance in odds.outcomes], sys.stdout,
    )  # fmt: skip
    print(f"amounts move by {odds.moved} a spin, on average")
