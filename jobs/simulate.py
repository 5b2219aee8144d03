"""``luckbase simulate``: the payoff of a profile of agents by Monte Carlo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render


@options.with_options_of(luckbase.simulate)
def simulate(
    board: options.BoardFile,
    more: options.More = None,
    agents: options.Agents = "optimal",
    start: options.From = None,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
    **how: Any,
) -> None:
    """Play N games of a profile of agents: mean payoffs with their standard errors.

    Starts from the game's start, or from --from; the same seed gives the same plays."""
    from luckbase.cluster.play.evaluate import errors_off
    from luckbase.solver import load_game

    read = options.board_of(board, settings)
    root = options.read_start(start, more)
    found = luckbase.simulate(read, agents, start=root, results=results, **how)
    if as_json:
        render.print_json(found)
        return
    rows = []
    for i, name in enumerate(found.agents):
        known, errors = "", ""
        if found.exact is not None:
            known = f"{found.exact[i]:z.10f}"
            errors = errors_off(found.mean[i], found.exact[i], found.error[i])
        rows.append(
            (str(i + 1), name, f"{found.mean[i]:z.6f}", f"{found.error[i]:z.6f}", known, errors)
        )
    payoff = load_game(read).payoff_name
    heads = ("player", "agent", payoff, "standard error", "exactly", "errors off")
    render.print_table("", heads, rows, sys.stdout)
    print(f"under the rules of {found.origin}")
    print(
        f"{render.counted(found.games, 'game')} in {render.duration(found.seconds)}, "
        f"{found.games / found.seconds / 1e6:.2f} M games/s, seed {how['seed']}"
    )
