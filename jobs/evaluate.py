"""``luckbase evaluate``: the exact payoff of a profile of agents, and what it costs them."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import agents as names_of
from jobs import options, render

if TYPE_CHECKING:
    from solver.game import Floats, Game, Ints
    from solver.policy import Moves


def evaluate(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")],
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[FIELD=VALUE...]", help="The rest of --from.")
    ] = None,
    agents: names_of.Agents = "optimal",
    start: options.From = None,
    settings: options.Settings = None,
    gain: Annotated[
        bool, typer.Option("--gain", help="What each player could gain by a best response.")
    ] = False,
    moves: Annotated[
        int, typer.Option(metavar="N", min=0, help="The N moves that cost the agents most.")
    ] = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="The value as a fraction (small one-player boards).")
    ] = False,
    max_states: Annotated[
        int, typer.Option(metavar="N", min=1, help="States that the agents may come to.")
    ] = 20_000_000,
    as_json: options.Json = False,
) -> None:
    """The exact payoff of a profile of agents: by name, optimal, best-response, random, a table's.

    Starts from the game's start, or from --from."""
    from solver import load_game
    from solver.board import read_board
    from solver.graph import Graph
    from solver.policy import BEST_RESPONSE, costly_moves, evaluate_profile

    game = load_game(read_board(Path(board), options.read_settings(settings)))
    root = options.read_start(game, options.split_from(more or [], start)[1])
    with ExitStack() as tables:
        names, profile = names_of.for_players(game, agents, tables)
        said: dict[str, Any] = {"agents": names}
        if exact:
            said |= _fraction(game, names[0], root)
        optimal = None
        if moves or "optimal" in names:
            optimal = Graph(game, max_states=max_states)
            optimal.solve(root.reshape(1, -1))
        found = evaluate_profile(game, root, profile, max_states=max_states, optimal=optimal)
        said = {"agents": names, "value": found.value.tolist()} | said
        if gain:
            said["gain"] = []
            for player in range(game.players):
                other = [*profile[:player], BEST_RESPONSE, *profile[player + 1 :]]
                best = evaluate_profile(
                    game, root, other, max_states=max_states, optimal=optimal
                ).value[player]
                said["gain"].append(max(0.0, float(best - found.value[player])))
        costly = costly_moves(found, optimal) if moves and optimal is not None else None
    if costly is not None and optimal is not None:
        said["loss"] = float((costly.reach * costly.regret).sum())
        said["costly_moves"] = len(costly.regret)
        said["moves"] = [
            {
                "state": game.describe(costly.states[i]),
                "player": int(costly.players[i]) + 1,
                "reach": float(costly.reach[i]),
                "regret": float(costly.regret[i]),
            }
            for i in range(min(moves, len(costly.regret)))
        ]
    if as_json:
        print(json.dumps(said))
    else:
        _print(game, said, found.value, len(found.chain.keys), costly)


def _fraction(game: Game, name: str, root: Ints) -> dict[str, str]:
    from solver.errors import OptionError
    from solver.policy import BEST_RESPONSE, OPTIMAL, Policy, named_agent

    own = game.start()
    if own is None or (own != root).any():
        raise OptionError("--exact: fractions are of the game's start; leave --from out")
    agent = None if name in (OPTIMAL, BEST_RESPONSE) else named_agent(game, name)
    return {"exact": str(game.exact_value(None if isinstance(agent, Policy) else agent))}


def _print(
    game: Game, said: dict[str, Any], value: Floats, states: int, costly: Moves | None
) -> None:
    heads = ["player", "agent", game.payoff_name] + ["could gain"] * ("gain" in said)
    rows = []
    for i, name in enumerate(said["agents"]):
        row = [str(i + 1), name, f"{value[i]:.10f}"]
        if "gain" in said:
            row.append(f"{said['gain'][i]:.2e}")
        rows.append(row)
    render.print_table("", heads, rows, sys.stdout)
    if "exact" in said:
        print(f"exactly {said['exact']}")
    print(f"{states:,} states can come up")
    if costly is None:
        return
    print(f"{len(costly.regret)} decisions cost something, {said['loss']:.3e} a play in all")
    listed = [
        (
            render.fields(move["state"]),
            str(move["player"]), f"{move['reach']:.3e}", f"{move['regret']:.3e}",
        )
        for move in said["moves"]
    ]  # fmt: skip
    if listed:
        heads = ["the costliest", "player", "reached", "costs"]
        render.print_table("", heads, listed, sys.stdout)
