"""``luckbase evaluate``: the exact payoff of a profile of agents, and what it costs them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luckbase.jobs import agents as names_of
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.solver.game.arrays import Floats, Ints
    from luckbase.solver.game.game import Game
    from luckbase.solver.policy.evaluate import Moves


FLOAT64_ERROR = 1e-12
"""What the sums of a payoff lose, with room to spare."""


def evaluate(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE...]", help="Start here, as with --from."),
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
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Two players: each agent against each.")
    ] = False,
    facts: Annotated[
        bool, typer.Option("--facts", help="What else the game says of the agents.")
    ] = False,
    max_states: Annotated[
        int, typer.Option(metavar="N", min=1, help="States that the agents may come to.")
    ] = 20_000_000,
    as_json: options.Json = False,
) -> None:
    """The exact payoff of a profile of agents: by name, optimal, best-response, random, a table's.

    Starts from the game's start, or from --from."""
    from luckbase.cluster.table.answer import origin_of
    from luckbase.solver import load_game
    from luckbase.solver.board.file import read_board
    from luckbase.solver.graph.game_graph import Graph
    from luckbase.solver.policy.evaluate import BEST_RESPONSE, costly_moves, evaluate_profile

    game = load_game(read_board(Path(board), options.read_settings(settings)))
    root = options.read_start(game, [*(start or []), *(more or [])])
    own = game.start()
    at_start = own is not None and bool((own == root).all())
    origin = origin_of(game)
    if matrix:
        _matrix(game, names_of.split(agents), root if not at_start else None, as_json)
        return
    quick = _quick(game, agents, facts) if at_start and not (gain or moves or exact) else None
    if quick is not None:
        if as_json:
            print(json.dumps(origin.as_json() | quick))
        else:
            _print(game, quick, quick["value"], None, None)
        return
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
                best = evaluate_profile(game, root, other, max_states=max_states, optimal=optimal)
                error = FLOAT64_ERROR + best.graph.error + found.graph.error
                said["gain"].append(gain_of(best.value[player], found.value[player], error))
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
        print(json.dumps(origin.as_json() | said))
    else:
        _print(game, said, found.value, len(found.chain.keys), costly)


def gain_of(best: float, own: float, error: float) -> float:
    """What a best response gains. It can not lose: what is below 0 by no more than `error` is 0,
    and what is by more is said, as something is wrong then."""
    gain = float(best - own)
    return 0.0 if -error <= gain < 0 else gain


def _quick(game: Game, agents: str, facts: bool) -> dict[str, Any] | None:
    """The answer by the game's own way, where it has one."""
    from luckbase.solver.errors import OptionError
    from luckbase.solver.game.capabilities import ClosedForms

    names = names_of.split(agents)
    names = names * game.players if len(names) == 1 else names
    if len(names) != game.players:
        return None  # refused further on
    forms = game.get(ClosedForms)
    value = None if forms is None else forms.value(names)
    if forms is None or value is None:
        if facts:
            raise OptionError(f"--facts: {game.board.game} has none of these agents; leave it out")
        return None
    said: dict[str, Any] = {"agents": names, "value": list(value)}
    if facts:
        listed = forms.facts(names)
        said["facts"] = [{"agent": a, "what": what, "number": n} for a, what, n in listed]
    return said


def _matrix(game: Game, names: list[str], root: Ints | None, as_json: bool) -> None:
    """Each agent as player 1 (rows) against each as player 2 (columns)."""
    from luckbase.cluster.table.answer import origin_of
    from luckbase.solver.errors import OptionError
    from luckbase.solver.game.capabilities import ClosedForms
    from luckbase.solver.policy.evaluate import evaluate_profile

    if game.players != 2:
        raise OptionError(f"--matrix: for games of two, and {game.board.game} has {game.players}")
    start = root if root is not None else game.start()
    assert start is not None
    forms = game.get(ClosedForms)
    values: list[list[float]] = []
    for one in names:
        values.append([])
        for two in names:
            quick = forms.value([one, two]) if root is None and forms is not None else None
            found = quick if quick is not None else evaluate_profile(game, start, [one, two]).value
            values[-1].append(float(found[0]))
    if as_json:
        print(json.dumps(origin_of(game).as_json() | {"agents": names, "matrix": values}))
        return
    heads = ["player 1, against player 2", *names]
    rows = [[name, *(f"{x:.9f}" for x in row)] for name, row in zip(names, values, strict=True)]
    render.print_table(f"{game.payoff_name} of player 1", heads, rows, sys.stdout)
    print(f"under the rules of {origin_of(game)}")


def _fraction(game: Game, name: str, root: Ints) -> dict[str, str]:
    from luckbase.solver.errors import OptionError
    from luckbase.solver.game.capabilities import ExactValues
    from luckbase.solver.policy.evaluate import BEST_RESPONSE, OPTIMAL, Policy, named_agent

    own = game.start()
    if own is None or (own != root).any():
        raise OptionError("--exact: fractions are of the game's start; leave --from out")
    exact = game.need(ExactValues)
    agent = None if name in (OPTIMAL, BEST_RESPONSE) else named_agent(game, name)
    return {"exact": str(exact.of(None if isinstance(agent, Policy) else agent))}


def _print(
    game: Game,
    said: dict[str, Any],
    value: Sequence[float] | Floats,
    states: int | None,
    costly: Moves | None,
) -> None:
    from luckbase.cluster.table.answer import origin_of

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
    print(f"under the rules of {origin_of(game)}")
    if states is not None:
        print(f"{states:,} states can come up")
    if said.get("facts"):
        told = [(f["agent"], f["what"], f"{f['number']:.9f}") for f in said["facts"]]
        render.print_table("", ("agent", "what", ""), told, sys.stdout)
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
