"""Agents on the command line: ``--agents A[,B…]``, one for all players or one for each."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.solver.errors import OptionError

if TYPE_CHECKING:
    from luckbase.solver.game.game import Agent, Game
    from luckbase.solver.policy.chain import Decider
    from luckbase.solver.policy.evaluate import Policy

Agents = Annotated[
    str,
    typer.Option(
        metavar="A[,B...]",
        help="Agents by name, or tables' directories; one for all, or one for each player.",
    ),
]


def split(text: str, option: str = "--agents") -> list[str]:
    """The names in ``A,B``; raises OptionError for an empty one."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise OptionError(f"{option}: '{text}' has an empty name; write A, or one a player: A,B")
    return names


def for_players(
    game: Game, text: str, open_tables: ExitStack
) -> tuple[list[str], list[str | Agent | Policy]]:
    """The names, one a player, and what `solver.policy.evaluate` takes for them.

    A directory is a table, whose best actions are played; `open_tables` closes it.
    """
    names = split(text)
    if len(names) == 1:
        names *= game.players
    if len(names) != game.players:
        players = "one player" if game.players == 1 else f"{game.players} players"
        raise OptionError(
            f"--agents: {len(names)} names, and {game.board.game} has {players}; give one for all "
            "or one for each"
        )
    return names, [_found(game, name, open_tables, "--agents") for name in names]


def opponents(
    game: Game, text: str | None, open_tables: ExitStack
) -> list[tuple[str, Decider | None]]:
    """``--against A[,B…]``, one for all opponents of one player or one for each: their names, and
    what decides for them, None for `optimal`."""
    from luckbase.solver.policy.evaluate import (
        BEST_RESPONSE,
        OPTIMAL,
        RANDOM,
        Policy,
        asking,
        random_player,
    )

    option, others = "--against", game.players - 1
    if not others and text is not None:
        raise OptionError(f"{option}: {game.board.game} has one player; leave it out")
    names = split(OPTIMAL if text is None else text, option)
    if len(names) == 1:
        names *= others
    if len(names) != others:
        raise OptionError(
            f"{option}: {len(names)} names, and you have {others} "
            f"opponent{'s' * (others > 1)}; give one for all or one for each"
        )
    found: list[tuple[str, Decider | None]] = []
    for name in names:
        if name == BEST_RESPONSE:
            raise OptionError(
                f"{option}: {name} has to know beforehand how you will play; {OPTIMAL} does not"
            )
        agent = _found(game, name, open_tables, option)
        if isinstance(agent, Policy):
            found.append((name, agent.decide))
        elif isinstance(agent, str):
            found.append((name, asking(random_player) if name == RANDOM else None))
        else:
            found.append((name, asking(agent)))
    return found


def _found(game: Game, name: str, open_tables: ExitStack, option: str) -> str | Agent | Policy:
    """An agent: a table's in a directory, the game's own, or the name of one that needs none."""
    from luckbase.solver.policy.evaluate import BEST_RESPONSE, OPTIMAL, RANDOM, named_agent

    if "/" in name and Path(name).is_dir():
        from luckbase.cluster.table.table import open_table, policy_of
        from luckbase.solver.board.identity import rules_identity
        from luckbase.solver.game.capabilities import plain

        table = open_tables.enter_context(open_table(name))
        if table.ledger.head.identity not in map(rules_identity, (game, plain(game))):
            raise OptionError(
                f"{option}: {name} is a table of {table.origin}, not of this board with these "
                "options"
            )
        return policy_of(table)
    if name in (OPTIMAL, BEST_RESPONSE, RANDOM):
        return name
    return named_agent(game, name, option)
