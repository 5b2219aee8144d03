"""``luckbase simulate``: the payoff of a profile of agents by Monte Carlo."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from jobs import agents as names_of
from jobs import options, render


def simulate(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")],
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[FIELD=VALUE...]", help="The rest of --from.")
    ] = None,
    agents: names_of.Agents = "optimal",
    games: Annotated[int, typer.Option(metavar="N", min=1, help="Plays.")] = 1_000_000,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Of the random numbers.")] = 0,
    start: options.From = None,
    settings: options.Settings = None,
    max_states: Annotated[
        int, typer.Option(metavar="N", min=1, help="States that the agents may come to.")
    ] = 20_000_000,
    as_json: options.Json = False,
) -> None:
    """Play N games of a profile of agents: mean payoffs with their standard errors.

    Starts from the game's start, or from --from; the same seed gives the same plays."""
    from solver import load_game
    from solver.board import read_board
    from solver.policy import evaluate_profile
    from solver.simulate import simulate as play

    game = load_game(read_board(Path(board), options.read_settings(settings)))
    root = options.read_start(game, options.split_from(more or [], start)[1])
    with ExitStack() as tables:
        names, profile = names_of.for_players(game, agents, tables)
        found = evaluate_profile(game, root, profile, max_states=max_states)
    started = time.perf_counter()
    played = play(found.chain, games, seed)
    seconds = time.perf_counter() - started
    if as_json:
        said = {
            "agents": names, "games": games, "value": played.mean.tolist(),
            "stderr": played.error.tolist(),
        }  # fmt: skip
        print(json.dumps(said))
        return
    rows = []
    for i, name in enumerate(names):
        off = played.mean[i] - found.value[i]
        errors = f"{off / played.error[i]:+.2f}" if played.error[i] else "0"
        rows.append(
            (str(i + 1), name, f"{played.mean[i]:.6f}", f"{played.error[i]:.6f}",
             f"{found.value[i]:.10f}", errors)
        )  # fmt: skip
    heads = ("player", "agent", game.payoff_name, "standard error", "exactly", "errors off")
    render.print_table("", heads, rows, sys.stdout)
    print(
        f"{render.count(games)} games in {render.duration(seconds)}, "
        f"{games / seconds / 1e6:.2f} M games/s, seed {seed}"
    )
