"""``luckbase evaluate``: the exact payoff of a profile of agents, and what it costs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.play.evaluate import Evaluated, Matrix


@options.with_options_of(luckbase.evaluate)
def evaluate(
    board: options.BoardFile,
    more: options.More = None,
    agents: options.Agents = "optimal",
    start: options.From = None,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Two players: each agent against each.")
    ] = False,
    as_json: options.Json = False,
    **how: Any,
) -> None:
    """The exact payoff of a profile of agents: by name, optimal, best-response, random, a table's.

    Starts from the game's start, or from --from."""
    from luckbase.solver import load_game

    read, root = options.board_of(board, settings), options.read_start(start, more)
    payoff_name = load_game(read).payoff_name
    if matrix:
        every = luckbase.matrix(read, agents, root, results=results)
        if as_json:
            render.print_json(every)
        else:
            _print_matrix(payoff_name, every)
        return
    found = luckbase.evaluate(read, agents, root, results=results, **how)
    if as_json:
        render.print_json(found)
    else:
        _print(payoff_name, found)


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
        facts = [(agent, what, f"{number:z.9f}") for agent, what, number in found.facts]
        render.print_table("", ("agent", "what", ""), facts, sys.stdout)
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
