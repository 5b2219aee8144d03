"""``luckbase play``: a person plays against agents on the terminal (`jobs.playing`)."""

from __future__ import annotations

import io
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs import agents as names_of
from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.solver.game.capabilities import as_seen_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luckbase.jobs.playing import Decision, Draw, Play, Seat
    from luckbase.solver.game.arrays import Floats
    from luckbase.solver.game.game import Game


def play(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE...]", help="Start here, as with --from."),
    ] = None,
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
    import numpy as np

    from luckbase.jobs.playing import Play, Seat
    from luckbase.jobs.worth import find_worth
    from luckbase.solver import load_game
    from luckbase.solver.board.file import read_board
    from luckbase.solver.errors import OptionError, StateError
    from luckbase.solver.game.capabilities import detailed

    game = detailed(load_game(read_board(Path(board), options.read_settings(settings))))
    if seat > game.players:
        raise OptionError(f"--as: there is no player {seat}; write 1 to {game.players}")
    given = [*(start or []), *(more or [])]
    root = options.read_start(game, given)
    if given:
        root = as_seen_by(game, seat - 1, root)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    with ExitStack() as tables:
        others = names_of.opponents(game, against, tables)
        seats = [
            Seat(f"player {i + 1 + (i + 1 >= seat)} ({name})", decide)
            for i, (name, decide) in enumerate(others)
        ]
        seats.insert(seat - 1, Seat("you"))
        named = [board, *_settings_of(game, settings)]
        worth = find_worth(game, shlex.join(named), root, results, max_states, tables)
        played = Play(game, root, worth, seats, seat - 1, _draw(seed), hints)
        if played.edges.terminal[0]:
            raise StateError(f"{render.fields(played.shown)}: the game is over there")
        title = game.board.title or game.board.name
        if settings:  # a title is of the file as it stands
            title = f"{game.board.name} with {', '.join(settings)}"
        for line in (
            f"{title}, seed {seed}: {_seated(seats, seat)}", f"payoffs are from {worth.source}",
            f"write {played.help}",
        ):  # fmt: skip
            print(render.to_fit(line, sys.stdout))
        _converse(played)
    _report(played.decisions)


def _settings_of(game: Game, settings: list[str] | None) -> Iterator[str]:
    """The words ``--set NAME=VALUE`` without those that a table's board does not take."""
    from luckbase.solver.game.capabilities import plain as plain_form

    plain = plain_form(game).board
    for name, value in options.read_settings(settings).items():
        held: tuple[object, object] = (game.board, plain)
        for part in plain.options()[name]:
            held = (getattr(held[0], str(part)), getattr(held[1], str(part)))
        if held[0] == held[1]:
            yield from ("--set", f"{name}={value}")


def _seated(seats: list[Seat], seat: int) -> str:
    """Who plays against whom."""
    others = [other.name for i, other in enumerate(seats) if i != seat - 1]
    you = f"you are player {seat}" if others else "you play alone"
    return f"{you} against {' and '.join(others)}" if others else you


def _draw(seed: int) -> Draw:
    """Chance from a seeded generator: one random number a draw."""
    import numpy as np

    rng = np.random.default_rng(seed)

    def draw(chances: Floats) -> int:
        sums = np.cumsum(chances)
        at = np.searchsorted(sums, rng.random() * sums[-1], side="right")
        return int(min(at, np.flatnonzero(chances)[-1]))

    return draw


def _converse(played: Play) -> None:
    """Lines to stdout, answers from stdin, a line each; what is piped in is written out too."""
    from luckbase.jobs.playing import Question

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
    from luckbase.jobs.bidding import small

    count = f"{len(decisions)} decision{'s' * (len(decisions) != 1)}"
    total = sum(decision.cost for decision in decisions)
    if not total:
        print(f"no mistakes in {count}" if decisions else "nothing was yours to decide")
        return
    rows = [
        (render.fields(d.state), d.action, d.best, small(d.cost) if d.cost else "")
        for d in decisions
    ]
    print()
    render.print_table("", ("your decisions", "you", "best", "cost"), rows, sys.stdout)
    wrong = sum(decision.cost > 0 for decision in decisions)
    print(f"{count}, {wrong} not the best; they cost {small(total)} in all")
