"""``luckbase play``: a person plays against agents on the terminal (`cluster.play.game`)."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import luckbase
from luckbase.cluster import words
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal

if TYPE_CHECKING:
    from luckbase import Board, Play
    from luckbase.cluster.play.game import Decision


@options.command(
    "luckbase play pig/race --hints",
    "luckbase play pig/race --against hold-at-20 --as 2",
)
def play(
    board: options.BoardFile,
    more: options.More = None,
    against: Annotated[
        str | None,
        Help("Opponents by name, or tables' directories; one for all, or one for each "
             "(default: optimal).", "A[,B...]"),
    ] = None,
    seat: Annotated[
        int | None, Help("Which player you are; who decides first if not given.", "PLAYER", 1)
    ] = None,
    seed: Annotated[int | None, Help("Seed of the random numbers.", "S", 0)] = None,
    start: options.From = None,
    settings: options.Settings = None,
    hints: Annotated[
        bool, Help("Show what each action is worth before every decision.")
    ] = False,
    max_states: Annotated[
        int, Help("The most states that a search for payoffs may find.", "N", 1)
    ] = 20_000_000,
    results: options.Results = Path("results"),
) -> None:  # fmt: skip
    """Play against agents; afterwards, see what each decision cost you.

    Answer with an action's name, its beginning or its number; ? shows what each is worth, q
    quits. Where both choose at once, fields are as you see them: mine is yours."""
    from luckbase.cluster.play.game import new_seed

    read = options.board_of(board, settings)
    seed = new_seed() if seed is None else seed
    named = shlex.join([board, *_settings_of(read, settings)])
    with luckbase.play(
        read, options.read_start(start, more), results=results, max_states=max_states, seat=seat,
        against=against, seed=seed, hints=hints, on_note=terminal.say, named=named,
    ) as played:  # fmt: skip
        title = read.title or read.name
        if settings:  # a title is of the file as it stands
            title = f"{read.name} with {', '.join(settings)}"
        others = [seat.name for i, seat in enumerate(played.seats) if i != played.person]
        you = f"you are player {played.person + 1} against {' and '.join(others)}"
        said = you if others else "you play alone"
        terminal.print_to_fit(f"{title}, seed {seed}: {said}")
        terminal.print_to_fit(f"payoffs are from {played.table.source}")
        terminal.print_to_fit(f"write {played.help}")
        _converse(played)
    _report(played.decisions, played.game.pays_chances)


def _settings_of(board: Board, settings: list[str] | None) -> Iterator[str]:
    """The words ``--set NAME=VALUE`` without those that a table's board does not take."""
    from luckbase.solver import load_game
    from luckbase.solver.game.capabilities import plain as plain_form

    plain = plain_form(load_game(board)).board
    for name, value in options.read_settings(settings).items():
        place = ".".join(map(str, plain.options()[name]))
        if attrgetter(place)(board) == attrgetter(place)(plain):
            yield from ("--set", f"{name}={value}")


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
            terminal.print_to_fit(said.prompt.rstrip(), end=" ")
            line = sys.stdin.readline()
            answer = line.rstrip("\n") if line else None
            if not (line and sys.stdin.isatty()):
                print(answer or "")
        else:
            terminal.print_to_fit(said)


def _report(decisions: list[Decision], chance: bool) -> None:
    """What each decision cost, and all of them. chance: payoffs are chances."""
    count = words.many(len(decisions), "decision")
    total = sum(decision.cost for decision in decisions)
    if not total:
        print(f"no mistakes in {count}" if decisions else "nothing was yours to decide")
        return
    rows = [
        (words.fields(d.state), d.action, d.best, words.cost(d.cost, chance) if d.cost else "")
        for d in decisions
    ]
    print()
    terminal.print_table("", ("your decisions", "you", "best", "cost"), rows, sys.stdout)
    wrong = sum(decision.cost > 0 for decision in decisions)
    print(f"{count}, {wrong} not the best; they cost {words.cost(total, chance)} in all")
