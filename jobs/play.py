"""``luckbase play``, ``evaluate`` and ``advise``: play against agents on the terminal
(`cluster.play.game`), compute payoffs of agents, and follow a real game in words."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.jobs import app, terminal
from luckbase.solver import sentences
from luckbase.solver.errors import RequestError
from luckbase.solver.sentences import Help, Payoffs, figures

if TYPE_CHECKING:
    from luckbase import Board, Evaluated, Matrix, Play
    from luckbase.cluster.play.advise import Following, Response
    from luckbase.cluster.play.game import Decision


@app.command(
    "luckbase play pig/race --hints",
    "luckbase play pig/race --against hold-at-20 --as 2",
)
def play(
    board: app.BoardFile,
    more: app.More = None,
    against: Annotated[
        str | None,
        Help("Opponents: names or tables' folders; one for all or one for each "
             "(default: optimal).", "A[,B...]"),
    ] = None,
    seat: Annotated[
        int | None, Help("Your player number (default: who decides first).", "PLAYER", 1)
    ] = None,
    seed: Annotated[int | None, Help("Seed of the random numbers.", "S", 0)] = None,
    start: app.From = None,
    settings: app.Settings = None,
    hints: Annotated[
        bool, Help("Show the payoff of each action before every decision.")
    ] = False,
    max_states: Annotated[
        int, Help("Maximum number of states in a search for payoffs.", "N", 1)
    ] = 20_000_000,
    results: app.Results = Path("results"),
) -> None:  # fmt: skip
    """Play against agents; at the end, see the cost of each decision.

    Answer with the name of an action, the beginning of the name, or its number; ? shows the payoff
    of each action, q quits. If both players choose at once, the field mine is yours."""
    from luckbase.cluster.play.game import new_seed

    read = app.board_of(board, settings)
    seed = new_seed() if seed is None else seed
    named = shlex.join([board, *_settings_of(read, settings)])
    with luckbase.play(
        read, app.read_start(start, more), results=results, max_states=max_states, seat=seat,
        against=against, seed=seed, hints=hints, on_note=terminal.say, named=named,
    ) as played:  # fmt: skip
        title = read.title or read.name
        if settings:  # a title describes the file without options
            title = f"{read.name} with {', '.join(settings)}"
        others = [seat.name for i, seat in enumerate(played.seats) if i != played.person]
        you = f"you are player {played.person + 1} against {' and '.join(others)}"
        opponents = you if others else "you play alone"
        terminal.print_to_fit(f"{title}, seed {seed}: {opponents}")
        terminal.print_to_fit(f"payoffs are from {played.table.source}")
        terminal.print_to_fit(f"write {played.help}")
        _converse(played)
    if played.decisions or played.over:
        _report(played.decisions, played.game.payoffs)


def _settings_of(board: Board, settings: list[str] | None) -> Iterator[str]:
    """Yield ``--set NAME=VALUE`` for the options that a table's board takes."""
    from luckbase.solver.game.capabilities import plain as plain_form
    from luckbase.solver.game.game import load_game

    plain = plain_form(load_game(board)).board
    for name, value in app.read_settings(settings).items():
        place = ".".join(map(str, plain.options()[name]))
        if attrgetter(place)(board) == attrgetter(place)(plain):
            yield from ("--set", f"{name}={value}")


def _converse(played: Play) -> None:
    """Print lines to stdout and read answers from stdin, one a line. Echo piped answers."""
    from luckbase.cluster.play.game import Question

    talk, answer = played.talk(), None
    _take_any_text()
    while True:
        try:
            message = talk.send(answer)
        except StopIteration:
            return
        answer = None
        if isinstance(message, Question):
            terminal.print_to_fit(message.prompt.rstrip(), end=" ")
            line = sys.stdin.readline()
            answer = line.rstrip("\n") if line else None
            if not (line and sys.stdin.isatty()):
                print(answer or "")
        else:
            terminal.print_to_fit(message)


def _report(decisions: list[Decision], payoffs: Payoffs) -> None:
    """Print the cost of each decision and the total."""
    count = sentences.many(len(decisions), "decision")
    total = sum(decision.cost for decision in decisions)
    if not total:
        print(f"no mistakes in {count}" if decisions else "you had no decision to make")
        return
    rows = [
        (sentences.fields(d.state), d.action, d.best, payoffs.change(d.cost) if d.cost else "")
        for d in decisions
    ]
    print()
    terminal.print_table("", ("your decisions", "you", "best", "cost"), rows, sys.stdout)
    wrong = sum(decision.cost > 0 for decision in decisions)
    print(f"{count}, {wrong} not the best; they cost {payoffs.change(total)} in all")


def _take_any_text() -> None:
    """Read invalid UTF-8 on stdin as a replacement character, which no command contains, instead of
    raising an error."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


@app.command(
    "luckbase evaluate pig/tiny --agents hold-at-4,hold-at-6,optimal --matrix",
    "luckbase evaluate jackpot/seed --agents hilo --games 100000 --seed 7",
    api=luckbase.evaluate,
)
def evaluate(
    board: app.BoardFile,
    more: app.More = None,
    agents: app.Agents = "optimal",
    start: app.From = None,
    settings: app.Settings = None,
    results: app.Results = Path("results"),
    matrix: Annotated[bool, Help("For two players: play each agent against each.")] = False,
    as_json: app.Json = False,
    **how: Any,
) -> None:
    """Print the payoffs of agents who play each other.

    An agent is optimal, best-response, random, a table, or an agent of the game. Games begin at the
    game's start, or at --from. Payoffs are exact; with --games they are means of simulated games,
    with standard errors. The same --seed gives the same games."""
    from luckbase.solver.game.game import load_game

    read, root = app.board_of(board, settings), app.read_start(start, more)
    payoff_name = load_game(read).payoff_name
    result: Matrix | Evaluated
    if matrix:
        app.check_one(matrix=True, games=how["games"], gain=how["gain"])
        result = luckbase.matrix(read, agents, root, results=results)
    else:
        result = luckbase.evaluate(read, agents, root, results=results, **how)
    if as_json:
        terminal.print_json(result)
    elif isinstance(result, luckbase.Matrix):
        _print_matrix(payoff_name, result)
    else:
        _print_payoffs(payoff_name, result, how["seed"])


def _print_matrix(payoff_name: str, matrix: Matrix) -> None:
    heads = ["player 1, against player 2", *matrix.agents]
    rows = [
        [name, *(f"{x:z.9f}" for x in row)]
        for name, row in zip(matrix.agents, matrix.values, strict=True)
    ]
    terminal.print_table(f"{payoff_name} of player 1", heads, rows, sys.stdout)
    print(f"under the rules of {matrix.origin}")


def _print_payoffs(payoff_name: str, result: Evaluated, seed: int) -> None:
    heads, digits = ["player", "agent", payoff_name], 10 if result.stderr is None else 6
    rows = [
        [str(i + 1), name, f"{result.value[i]:z.{digits}f}"] for i, name in enumerate(result.agents)
    ]
    for head, form, numbers in (
        ("could gain", ".2e", result.gain), ("standard error", "z.6f", result.stderr),
    ):  # fmt: skip
        if numbers is not None:
            heads.append(head)
            for row, number in zip(rows, numbers, strict=True):
                row.append(f"{number:{form}}")
    terminal.print_table("", heads, rows, sys.stdout)
    if result.facts:
        facts = [(agent, what, f"{number:z.9f}") for agent, what, number in result.facts]
        terminal.print_table("", ("agent", "what", ""), facts, sys.stdout)
    if result.counts:
        counts = [
            (each.what, str(each.player or ""), figures(each.mean, 6), f"{each.stderr:.2g}")
            for each in result.counts
        ]
        counted = ("mean of a game", "player", "", "standard error")
        terminal.print_table("", counted, counts, sys.stdout)
    if result.starts is not None:
        others = "the agents' tables do not have the other starts"
        print(f"only the starts of {100 * result.starts:.1f}% of all games; {others}")
    print(f"under the rules of {result.origin}")
    if result.states is not None:
        print(f"{sentences.many(result.states, 'state')} can occur")
    if result.games is not None:
        print(
            f"{sentences.counted(result.games, 'game')} in {sentences.duration(result.seconds)}, "
            f"{sentences.count(result.games / result.seconds)} games/s, seed {seed}"
        )


@app.command(
    "luckbase advise press-your-luck/1985-02",
    "luckbase advise press-your-luck/tiny --from scores=1000,500,1500 earned=1,1,1",
    api=luckbase.advise,
)
def advise(
    board: app.BoardFile,
    more: app.More = None,
    start: app.From = None,
    settings: app.Settings = None,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
    **how: Any,
) -> None:
    """Follow a real game line by line: whose turn, best action, and why.

    Type the scores (Ed 0, 4 spins; Peter 2500, 3 spins; Michael 0), then each event (Ed 3000 +
    spin; Ed passes 4 to Peter; Peter whammy); the line help lists all forms. You can shorten
    names. With --json each line returns one JSON object."""
    options: dict[str, Any] = dict(app.read_settings(settings))
    line = " ".join(more or [])
    has_line = bool(line) and "=" not in line
    root = app.read_start(start, [] if has_line else more)
    with luckbase.advise(board, root, results=results, **how, **options) as following:
        if has_line:
            _show(following, following.say(line), as_json)
            following.offered = True  # it is shown already
        _follow(following, as_json)


def _follow(following: Following, as_json: bool) -> None:
    """Respond to lines from stdin until the end. An invalid line on a terminal prints an error;
    elsewhere it ends the command."""
    asks = sys.stdin.isatty()
    if not as_json:
        terminal.say(f"{following.game.board.name}: help lists the forms of lines, quit leaves")
        if following.offered:
            terminal.say(f"the board starts at: {following.words.say(following.here)}; "
                         "or type other scores")  # fmt: skip
        elif not following.positions:
            terminal.say(f"type the scores in turn order: {following.words.words[0][0]}")
    if following.positions and not following.offered:
        _show(following, following.advise(), as_json)
    for number, line in enumerate(_lines(asks and not as_json), start=1):
        if not line or line.startswith("#"):
            continue
        if line.lower() in ("quit", "q", "exit"):
            return
        try:
            answer = following.say(line)
        except RequestError as error:
            if asks:
                terminal.say(f"{error}")
                continue
            text = sentences.shorten(line, 60)
            raise type(error)(f"line {number}: '{text}': {error}") from None
        _show(following, answer, as_json)


def _lines(prompt: bool) -> Iterator[str]:
    _take_any_text()
    while True:
        if prompt:
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line.strip()


def _show(following: Following, answer: Response, as_json: bool) -> None:
    from luckbase.cluster.play.advise import in_words

    if as_json:
        terminal.print_json(answer)
        return
    for line in [answer.text] * bool(answer.text) + in_words(answer, following.game):
        terminal.print_to_fit(line)
    sys.stdout.flush()
