"""Agents on the command line: ``--agents A[,B…]``, one for all players or one for each."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from solver.errors import OptionError

if TYPE_CHECKING:
    from solver.game import Agent, Game
    from solver.policy import Policy

Agents = Annotated[
    str,
    typer.Option(
        metavar="A[,B...]",
        help="Agents by name, or tables' directories; one for all, or one for each player.",
    ),
]


def split(text: str) -> list[str]:
    """The names in ``A,B``; raises OptionError for an empty one."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise OptionError(f"--agents: '{text}' has an empty name; write A, or one a player: A,B")
    return names


def for_players(
    game: Game, text: str, open_tables: ExitStack
) -> tuple[list[str], list[str | Agent | Policy]]:
    """The names, one a player, and what `solver.policy` takes for them.

    A directory is a table, whose best actions are played; `open_tables` closes it.
    """
    from solver.policy import BEST_RESPONSE, OPTIMAL, RANDOM, named_agent

    names = split(text)
    if len(names) == 1:
        names *= game.players
    if len(names) != game.players:
        players = "one player" if game.players == 1 else f"{game.players} players"
        raise OptionError(
            f"--agents: {len(names)} names, and {game.board.game} has {players}; give one for all "
            "or one for each"
        )
    found: list[str | Agent | Policy] = []
    for name in names:
        if "/" in name and Path(name).is_dir():
            from cluster import open_table
            from cluster.answer import policy_of

            found.append(policy_of(open_tables.enter_context(open_table(name))))
            continue
        if name not in (OPTIMAL, BEST_RESPONSE, RANDOM):
            named_agent(game, name)
        found.append(name)
    return names, found
