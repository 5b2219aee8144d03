"""``luckbase play``: a person plays against agents on the terminal (`cluster.play.game`)."""

from __future__ import annotations

import io
import shlex
import sys
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luckbase.cluster.play.game import Decision, Play
    from luckbase.solver.board.model import Board


def play(
    board: options.BoardFile,
    more: options.More = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="A[,B...]",
            help="Opponents by name, or tables' directories; one for all, or one for each "
            "(default: optimal).",
        ),
    ] = None,
    seat: Annotated[
        int, typer.Option("--as", metavar="PLAYER", min=1, help="Which player you are.")
    ] = 1,
    seed: Annotated[
        int | None,
        typer.Option(metavar="S", min=0, help="Of the random numbers; any if not given."),
    ] = None,
    start: options.From = None,
    settings: options.Settings = None,
    hints: Annotated[
        bool, typer.Option("--hints", help="Show what each action is worth before every decision.")
    ] = False,
    max_states: Annotated[
        int, typer.Option(metavar="N", min=1, help="States that a search for their worth may meet.")
    ] = 20_000_000,
    results: options.Results = Path("results"),
) -> None:
    """Play against the optimal or other agents; afterwards, what each of your decisions cost.

    Answer with an action's name, its beginning or its number; ? shows what each is worth, q
    quits. Where both choose at once, fields are as you see them: mine is yours."""
    from luckbase.cluster.play.game import new_seed

    read = options.board_of(board, settings)
    seed = new_seed() if seed is None else seed
    named = shlex.join([board, *_settings_of(read, settings)])
    with luckbase.play(
        read, options.read_start(start, more), results=results, max_states=max_states, seat=seat,
        against=against, seed=seed, hints=hints, on_note=render.say, named=named,
    ) as played:  # fmt: skip
        title = read.title or read.name
        if settings:  # a title is of the file as it stands
            title = f"{read.name} with {', '.join(settings)}"
        for line in (
            f"{title}, seed {seed}: {_seated(played)}", f"payoffs are from {played.table.source}",
            f"write {played.help}",
        ):  # fmt: skip
            print(render.to_fit(line, sys.stdout))
        _converse(played)
    _report(played.decisions)


def _settings_of(board: Board, settings: list[str] | None) -> Iterator[str]:
    """The words ``--set NAME=VALUE`` without those that a table's board does not take."""
    from luckbase.solver import load_game
    from luckbase.solver.game.capabilities import plain as plain_form

    plain = plain_form(load_game(board)).board
    for name, value in options.read_settings(settings).items():
        place = ".".join(map(str, plain.options()[name]))
        if attrgetter(place)(board) == attrgetter(place)(plain):
            yield from ("--set", f"{name}={value}")


def _seated(played: Play) -> str:
    """Who plays against whom."""
    others = [seat.name for i, seat in enumerate(played.seats) if i != played.person]
    you = f"you are player {played.person + 1}" if others else "you play alone"
    return f"{you} against {' and '.join(others)}" if others else you


def _converse(played: Play) -> None:
    """Lines to stdout, answers from stdin, a line each; what is piped in is written out too."""
    from luckbase.cluster.play.game import Question

    talk, answer = played.talk(), None
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    while True:
        try:
            said = talk.send(answer)
        except StopIteration:
            return
        answer = None
        if isinstance(said, Question):
            print(render.to_fit(said.prompt.rstrip(), sys.stdout), end=" ", flush=True)
            line = sys.stdin.readline()
            answer = line.rstrip("\n") if line else None
            if not (line and sys.stdin.isatty()):
                print(answer or "")
        else:
            print(render.to_fit(said, sys.stdout))


def _report(decisions: list[Decision]) -> None:
    """What each decision cost, and all of them."""
    from luckbase.cluster.words import cost

    count = f"{len(decisions)} decision{'s' * (len(decisions) != 1)}"
    total = sum(decision.cost for decision in decisions)
    if not total:
        print(f"no mistakes in {count}" if decisions else "nothing was yours to decide")
        return
    rows = [
        (render.fields(d.state), d.action, d.best, cost(d.cost) if d.cost else "")
        for d in decisions
    ]
    print()
    render.print_table("", ("your decisions", "you", "best", "cost"), rows, sys.stdout)
    wrong = sum(decision.cost > 0 for decision in decisions)
    print(f"{count}, {wrong} not the best; they cost {cost(total)} in all")
