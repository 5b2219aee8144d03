"""``luckbase simulate``: the payoff of a profile of agents by Monte Carlo."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render


@dataclass(frozen=True)
class Simulate:
    """Whose plays, and how many."""

    board: options.BoardFile
    more: options.More = None
    agents: options.Agents = "optimal"
    start: options.From = None
    settings: options.Settings = None
    results: options.Results = Path("results")
    as_json: options.Json = False


@options.takes(Simulate, luckbase.simulate)
def simulate(args: Simulate, **how: Any) -> None:
    """Play N games of a profile of agents: mean payoffs with their standard errors.

    Starts from the game's start, or from --from; the same seed gives the same plays."""
    from luckbase.cluster.play.simulate import errors_off
    from luckbase.solver import load_game

    board = options.board_of(args.board, args.settings)
    start = options.read_start(args.start, args.more)
    found = luckbase.simulate(board, args.agents, start=start, results=args.results, **how)
    if args.as_json:
        print(json.dumps(found.as_json()))
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
    payoff = load_game(board).payoff_name
    heads = ("player", "agent", payoff, "standard error", "exactly", "errors off")
    render.print_table("", heads, rows, sys.stdout)
    print(f"under the rules of {found.origin}")
    print(
        f"{render.counted(found.games, 'game')} in {render.duration(found.seconds)}, "
        f"{found.games / found.seconds / 1e6:.2f} M games/s, seed {how['seed']}"
    )
