"""Which board a table is of, and the command that solves it."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.solver.board import registry
from luckbase.solver.board.file import name_of, read_board
from luckbase.solver.board.model import Board, changed_options, rules_form, rules_identity
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.result import PythonOnly, Result
from luckbase.solver.sentences import Payoffs, fields, many, program, quoted

if TYPE_CHECKING:
    from luckbase.solver.game.game import Game
from luckbase.cluster.store.manifest import Goal, Roots


def as_its_file_begins(board: Board, goal: Goal | None) -> Board:
    """Return a board with the values in its file that do not change payoffs and are therefore not
    in the manifest, such as how plays begin. Return it unchanged if the file is missing or
    different."""
    more = [name for name, field in type(board).model_fields.items() if field.exclude]
    if goal is None or not goal.board_file or not more:
        return board
    with suppress(LuckbaseError):
        current = read_board(Path(goal.board_file), goal.settings)
        if rules_form(current) == rules_form(board):
            return board.model_copy(update={name: getattr(current, name) for name in more})
    return board


@dataclass(frozen=True)
class Origin(Result):
    """The table that answers a query."""

    board: str  # its name
    options: dict[str, Any] = field(default_factory=dict)
    """Those that differ from the game's defaults."""
    solve_id: str = ""  # its rules identity
    stale: tuple[str, ...] = ()  # why it is stale, if it was named by its path
    payoffs: PythonOnly[Payoffs] = field(default=Payoffs(), repr=False, compare=False)
    """How its payoffs are written."""

    def __str__(self) -> str:
        return f"{f'{self.board} {fields(self.options)}'.rstrip()}, solve {self.solve_id}"


def origin_of(game: Game, stale: tuple[str, ...] = ()) -> Origin:
    board = game.board
    return Origin(
        board.name, changed_options(board), rules_identity(game), stale, game.payoffs
    )  # fmt: skip


RESULTS = "results"
"""The default results folder."""


def board_command(
    board_file: str, settings: dict[str, str], game: str, results: Path | None = None,
    words: str | None = None,
) -> str:  # fmt: skip
    """Return the command that solves a board, with its options, and its results folder if it is not
    the default. words: other first words than ``luckbase solve``."""
    words = f"{program()} solve" if words is None else words
    options = [word for k, v in settings.items() for word in ("--set", f"{k}={v}")]
    if results is not None and os.path.realpath(results) != os.path.realpath(RESULTS):
        options += ["--results", str(results)]
    file = registry.find(game).file
    if file is not None:
        options += ["--game", os.path.relpath(file.path)]
    return shlex.join([*words.split(), name_of(board_file), *options])


def solve_command(
    goal: Goal, game: Game, results: Path | None = None, words: str | None = None, file: str = ""
) -> str:
    """Return the command that solves a goal.

    results: the folder of its table.
    words: as in `board_command`.
    file: the board file, if not the goal's.
    """
    file = file or goal.board_file or "BOARD"
    line = board_command(file, goal.settings, game.board.game, results, words)
    if goal.roots is None:
        return line
    start = goal.roots.start
    if len(start) == 1 or not is_its_start(game, goal.roots):
        line += f" --from {quoted(in_order(start[0], game))}"
        line += f" (and {many(len(start) - 1, 'more state')})" if len(start) > 1 else ""
    return line


def is_its_start(game: Game, roots: Roots) -> bool:
    """True if these are the states in which plays of the game begin."""
    words = [game.describe(state) for _, state in game.starts()]
    return len(words) == len(roots.start) and all(each in roots.start for each in words)


def in_order(state: Mapping[str, Any], game: Game) -> dict[str, Any]:
    """Return the fields of a state in the game's order; the manifest sorts them by name."""
    return {name: state[name] for name in game.fields.names if name in state}


def board_file(form: Mapping[str, Any]) -> str:
    """Return a board's canonical form as a board file (TOML)."""

    def lines(section: Mapping[str, Any]) -> list[str]:
        return [f"{key(name)} = {json.dumps(value)}" for name, value in section.items()
                if not isinstance(value, dict)]  # fmt: skip

    def key(name: str) -> str:
        return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)

    text = lines(form)
    for name, section in form.items():
        if isinstance(section, dict):
            text += ["", f"[{key(name)}]", *lines(section)]
    return "\n".join(text) + "\n"


def file_of(goal: Goal) -> str:
    """Return the board file of a goal: its name, or its path below a folder ``boards``."""
    parts = Path(name_of(goal.board_file or "BOARD")).parts
    last = len(parts) - parts[::-1].index("boards") - 1 if "boards" in parts else 0
    return str(Path(*parts[last:]))
