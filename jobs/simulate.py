"""``luckbase simulate``: the payoff of a profile of agents by Monte Carlo."""

from __future__ import annotations

import json
import math
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from luckbase.jobs import agents as names_of
from luckbase.jobs import options
from luckbase.jobs.terminal import render

SAME = 1e-9
"""Where every play pays the same, how far from it the exact payoff may be computed."""


def simulate(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE...]", help="Start here, as with --from."),
    ] = None,
    agents: names_of.Agents = "optimal",
    games: Annotated[int, typer.Option(metavar="N", min=1, help="Plays.")] = 1_000_000,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Of the random numbers.")] = 0,
    start: options.From = None,
    settings: options.Settings = None,
    max_states: Annotated[
        int, typer.Option(metavar="N", min=1, help="States to expand before playing.")
    ] = 1_000_000,
    as_json: options.Json = False,
) -> None:
    """Play N games of a profile of agents: mean payoffs with their standard errors.

    Starts from the game's start, or from --from; the same seed gives the same plays."""
    from luckbase.cluster.table.answer import origin_of
    from luckbase.solver import load_game
    from luckbase.solver.board.file import read_board
    from luckbase.solver.errors import OptionError, SearchLimitError
    from luckbase.solver.game.capabilities import ClosedForms
    from luckbase.solver.policy.evaluate import deciders_of, evaluate_profile
    from luckbase.solver.policy.simulate import simulate as play
    from luckbase.solver.policy.simulate import simulate_on_the_way

    game = load_game(read_board(Path(board), options.read_settings(settings)))
    root = options.read_start(game, [*(start or []), *(more or [])])
    with ExitStack() as tables:
        names, profile = names_of.for_players(game, agents, tables)
        started = time.perf_counter()
        forms = game.get(ClosedForms)
        exact = None if forms is None or more or start else forms.value(names)
        try:
            found = evaluate_profile(game, root, profile, max_states=max_states)
            exact = tuple(found.value.tolist())
            started = time.perf_counter()
            played = play(found.chain, games, seed)
        except SearchLimitError:
            if "optimal" in names or "best-response" in names:
                raise OptionError(
                    f"--agents: {game.board.name} is too large to solve on the way; solve a table "
                    "and name its directory as the agent"
                ) from None
            deciders = [d for d in deciders_of(game, profile, root[None]) if d is not None]
            started = time.perf_counter()
            played = simulate_on_the_way(game, root, deciders, games, seed)
    seconds = time.perf_counter() - started
    if as_json:
        said = origin_of(game).as_json() | {
            "agents": names, "games": games, "value": played.mean.tolist(),
            "stderr": played.error.tolist(),
        }  # fmt: skip
        print(json.dumps(said))
        return
    rows = []
    for i, name in enumerate(names):
        known, errors = "", ""
        if exact is not None:
            known = f"{exact[i]:.10f}"
            errors = errors_off(float(played.mean[i]), exact[i], float(played.error[i]))
        rows.append(
            (str(i + 1), name, f"{played.mean[i]:.6f}", f"{played.error[i]:.6f}",
             known, errors)
        )  # fmt: skip
    heads = ("player", "agent", game.payoff_name, "standard error", "exactly", "errors off")
    render.print_table("", heads, rows, sys.stdout)
    print(f"under the rules of {origin_of(game)}")
    print(
        f"{render.count(games)} games in {render.duration(seconds)}, "
        f"{games / seconds / 1e6:.2f} M games/s, seed {seed}"
    )


def errors_off(mean: float, exact: float, error: float) -> str:
    """How many standard errors a mean lies above (+) or below (-) the exact payoff."""
    off = mean - exact
    if error == 0:  # every play paid the same
        return (
            "0" if abs(off) <= SAME * max(1.0, abs(exact)) else f"{math.copysign(math.inf, off):+}"
        )
    return f"{off / error:+.2f}"
