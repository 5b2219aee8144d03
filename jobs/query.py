"""``luckbase query``: ask a table about one state, or about a file of states."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.table.answer import Answer


def query(
    table: options.TableName,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE...", help="The state: scores=0,2000,3500 earned=0,1,0"),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="States as CSV, JSON lines or Parquet; - is stdin."),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Where a batch's answers go; - is stdout.")
    ] = "-",
    best: Annotated[
        bool, typer.Option("--best", help="In a batch, the best action too, not the payoffs only.")
    ] = False,
    max_states: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="States that a search above the frontier may meet."),
    ] = 20_000_000,
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Answer by state: the payoff of the state and of every action, best first.

    A state above the table's frontier is answered by a search down to it."""
    from luckbase.solver.errors import OptionError

    if (batch is None) == (not fields):
        raise OptionError("query: give a state as FIELD=VALUE, or states with --batch FILE")
    with options.open_found(table, results, settings, strict) as opened:
        if batch is not None:
            from luckbase.jobs.batch import answer_batch

            answer_batch(opened, batch, out, best)
            render.say(f"answered by {opened.origin}")
            return
        answer = opened.ask(options.read_fields(fields or []), max_states)
    if as_json:
        print(json.dumps(answer.as_json()))
    else:
        _print(answer, opened.game.payoff_name)


def _print(answer: Answer, payoff_name: str) -> None:
    said = f"{answer.board}  {render.fields(answer.state, '  ')}"
    print(render.to_fit(said, sys.stdout))
    if answer.strategies is not None:
        _print_strategies(answer)
    elif answer.to_act is None:
        print("nobody chooses here" if answer.error else "the game is over")
    elif len(answer.actions) > 1:
        toss = "  (a toss-up)" if answer.toss_up else ""
        best = answer.best or "not decided by these bounds"
        ahead = "" if answer.margin is None else f", by {answer.margin:.7f}"
        print(f"player {answer.to_act} is up; best: {best}{ahead}{toss}")
    elif answer.best and answer.to_act:
        print(f"player {answer.to_act} is up and must {answer.best}")
    players = [f"player {i + 1}" for i in range(len(answer.value))]
    rows = [("this state", *_worth(answer.value, answer.upper))]
    rows += [(a.name, *_worth(a.value, a.upper)) for a in answer.actions]
    render.print_table("", (payoff_name, *players), rows, sys.stdout)
    if answer.upper is not None:
        print("between these bounds: the search was cut")
    else:
        print(f"each within {answer.error:.1e}, from the {answer.source}")
    print(f"answered by {answer.origin}")


def _print_strategies(answer: Answer) -> None:
    """Both sides' optimal lotteries, and how far the chances may go in others."""
    assert answer.strategies is not None
    other = "; other strategies are optimal too" if answer.toss_up else ""
    print(f"both choose at once; an optimal strategy of each{other}")
    rows = []
    for player, side in enumerate(answer.strategies):
        for bid in side:
            if bid.chance > 1e-9 or bid.most > 1e-4:
                span = "" if bid.sure else f"{bid.least:.4f} – {bid.most:.4f}"
                rows.append((f"player {player + 1}: {bid.name}", f"{bid.chance:.6f}", span))
    render.print_table("", ("", "chance", "in any optimal one"), rows, sys.stdout)


def _worth(value: tuple[float, ...], upper: tuple[float, ...] | None) -> list[str]:
    """One text a player: the payoff, or its bounds."""
    if upper is None:
        return [f"{x:.7f}" for x in value]
    return [f"{low:.5f} – {high:.5f}" for low, high in zip(value, upper, strict=True)]
