"""``luckbase evaluate`` and ``simulate``: what agents are worth, exactly and by Monte Carlo."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.cluster import words
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal

if TYPE_CHECKING:
    from luckbase import Evaluated, Matrix
    from luckbase.cluster.play.evaluate import Count


@options.command(
    "luckbase evaluate pig/race --agents hold-at-20,optimal",
    "luckbase evaluate pig/tiny --agents hold-at-4,hold-at-6,optimal --matrix",
    api=luckbase.evaluate,
)
def evaluate(
    board: options.BoardFile,
    more: options.More = None,
    agents: options.Agents = "optimal",
    start: options.From = None,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    matrix: Annotated[bool, Help("Two players: each agent against each.")] = False,
    as_json: options.Json = False,
    **how: Any,
) -> None:
    """Print the exact payoffs of agents who play each other.

    An agent is a name of the game's own, optimal, best-response, random, or a table. Starts
    from the game's start, or from --from."""
    from luckbase.solver import load_game

    read, root = options.board_of(board, settings), options.read_start(start, more)
    payoff_name = load_game(read).payoff_name
    found: Matrix | Evaluated
    if matrix:
        found = luckbase.matrix(read, agents, root, results=results)
    else:
        found = luckbase.evaluate(read, agents, root, results=results, **how)
    if as_json:
        terminal.print_json(found)
    elif isinstance(found, luckbase.Matrix):
        _print_matrix(payoff_name, found)
    else:
        _print(payoff_name, found)


def _print_matrix(payoff_name: str, matrix: Matrix) -> None:
    heads = ["player 1, against player 2", *matrix.agents]
    rows = [
        [name, *(f"{x:z.9f}" for x in row)]
        for name, row in zip(matrix.agents, matrix.values, strict=True)
    ]
    terminal.print_table(f"{payoff_name} of player 1", heads, rows, sys.stdout)
    print(f"under the rules of {matrix.origin}")


def _print(payoff_name: str, found: Evaluated) -> None:
    heads = ["player", "agent", payoff_name]
    rows = [[str(i + 1), name, f"{found.value[i]:z.10f}"] for i, name in enumerate(found.agents)]
    if found.gain is not None:
        heads.append("could gain")
        for row, gain in zip(rows, found.gain, strict=True):
            row.append(f"{gain:.2e}")
    terminal.print_table("", heads, rows, sys.stdout)
    if found.exact is not None:
        print(f"exactly {found.exact}")
    print(f"under the rules of {found.origin}")
    if found.states is not None:
        print(f"{words.many(found.states, 'state')} can come up")
    if found.facts:
        facts = [(agent, what, f"{number:z.9f}") for agent, what, number in found.facts]
        terminal.print_table("", ("agent", "what", ""), facts, sys.stdout)
    _print_counts(found.distribution)
    if found.costly is None:
        return
    cost = "costs" if found.costly == 1 else "cost"
    said = f"{words.many(found.costly, 'decision')} {cost} something"
    print(f"{said}, {found.loss:.3e} a play in all")
    listed = [
        (words.fields(move.state), str(move.player), f"{move.reach:.3e}", f"{move.regret:.3e}")
        for move in found.moves or ()
    ]
    if listed:
        heads = ["the costliest", "player", "reached", "costs"]
        terminal.print_table("", heads, listed, sys.stdout)


def _print_counts(counts: Sequence[Count] | None) -> None:
    """How what is counted of a play is spread: a line each."""
    if counts is None:
        return
    wide = any(each.stderr is not None for each in counts)
    shares = next((each.quantiles for each in counts if each.quantiles), {})
    heads = ["counted of a play", "player", "mean", *["standard error"] * wide]
    heads += [f"{100 * float(share):g}%" for share in shares]
    rows = []
    for each in counts:
        row = [each.what, "" if each.player is None else str(each.player), f"{each.mean:z.6g}"]
        row += [f"{each.stderr or 0:.2g}"] * wide
        rows.append(row + [f"{each.quantiles[s]:,g}" if each.quantiles else "" for s in shares])
    terminal.print_table("", heads, rows, sys.stdout)


@options.command(
    "luckbase simulate pig/tiny --agents hold-at-5,optimal --games 100000",
    "luckbase simulate jackpot/seed --agents hilo --games 100000 --seed 7",
    api=luckbase.simulate,
)
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
    """Play many games of agents: mean payoffs and standard errors.

    Starts from the game's start, or from --from; the same seed gives the same plays."""
    from luckbase.cluster.play.evaluate import errors_off
    from luckbase.solver import load_game

    read, root = options.board_of(board, settings), options.read_start(start, more)
    found = luckbase.simulate(read, agents, start=root, results=results, **how)
    if as_json:
        terminal.print_json(found)
        return
    rows = []
    for i, name in enumerate(found.agents):
        mean, error, known, off = found.mean[i], found.error[i], "", ""
        if found.exact is not None:
            known, off = f"{found.exact[i]:z.10f}", errors_off(mean, found.exact[i], error)
        rows.append((str(i + 1), name, f"{mean:z.6f}", f"{error:z.6f}", known, off))
    payoff = load_game(read).payoff_name
    heads = ("player", "agent", payoff, "standard error", "exactly", "errors off")
    terminal.print_table("", heads, rows, sys.stdout)
    _print_counts(found.distribution)
    if found.starts is not None:
        said = "the others begin beyond the agents' tables and are left out"
        print(f"{100 * found.starts:.1f}% of all games, by how they begin; {said}")
    print(f"under the rules of {found.origin}")
    print(
        f"{words.counted(found.games, 'game')} in {words.duration(found.seconds)}, "
        f"{found.games / found.seconds / 1e6:.2f} M games/s, seed {how['seed']}"
    )
