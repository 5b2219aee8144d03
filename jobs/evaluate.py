"""``luckbase evaluate``: the exact payoff of a profile of agents, and what it costs them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.play.evaluate import Evaluated, Matrix


@dataclass(frozen=True)
class Evaluate:
    """Whose payoffs, and what else is told of them."""

    board: options.BoardFile
    more: options.More = None
    agents: options.Agents = "optimal"
    start: options.From = None
    settings: options.Settings = None
    results: options.Results = Path("results")
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Two players: each agent against each.")
    ] = False
    as_json: options.Json = False


@options.takes(Evaluate, luckbase.evaluate)
def evaluate(args: Evaluate, **how: Any) -> None:
    """The exact payoff of a profile of agents: by name, optimal, best-response, random, a table's.

    Starts from the game's start, or from --from."""
    from luckbase.solver import load_game

    board = options.board_of(args.board, args.settings)
    start = options.read_start(args.start, args.more)
    if args.matrix:
        matrix = luckbase.matrix(board, args.agents, start, results=args.results)
        if args.as_json:
            print(json.dumps(matrix.as_json()))
        else:
            _print_matrix(load_game(board).payoff_name, matrix)
        return
    found = luckbase.evaluate(board, args.agents, start, results=args.results, **how)
    if args.as_json:
        print(json.dumps(found.as_json()))
    else:
        _print(load_game(board).payoff_name, found)


def _print_matrix(payoff_name: str, matrix: Matrix) -> None:
    heads = ["player 1, against player 2", *matrix.agents]
    rows = [
        [name, *(f"{x:z.9f}" for x in row)]
        for name, row in zip(matrix.agents, matrix.values, strict=True)
    ]
    render.print_table(f"{payoff_name} of player 1", heads, rows, sys.stdout)
    print(f"under the rules of {matrix.origin}")


def _print(payoff_name: str, found: Evaluated) -> None:
    heads = ["player", "agent", payoff_name] + ["could gain"] * (found.gain is not None)
    rows = []
    for i, name in enumerate(found.agents):
        row = [str(i + 1), name, f"{found.value[i]:z.10f}"]
        if found.gain is not None:
            row.append(f"{found.gain[i]:.2e}")
        rows.append(row)
    render.print_table("", heads, rows, sys.stdout)
    if found.exact is not None:
        print(f"exactly {found.exact}")
    print(f"under the rules of {found.origin}")
    if found.states is not None:
        print(f"{render.many(found.states, 'state')} can come up")
    if found.facts:
        told = [(agent, what, f"{number:z.9f}") for agent, what, number in found.facts]
        render.print_table("", ("agent", "what", ""), told, sys.stdout)
    if found.costly is None:
        return
    cost = "costs" if found.costly == 1 else "cost"
    said = f"{render.many(found.costly, 'decision')} {cost} something"
    print(f"{said}, {found.loss:.3e} a play in all")
    listed = [
        (render.fields(move.state), str(move.player), f"{move.reach:.3e}", f"{move.regret:.3e}")
        for move in found.moves or ()
    ]
    if listed:
        heads = ["the costliest", "player", "reached", "costs"]
        render.print_table("", heads, listed, sys.stdout)
