"""``luckbase diff`` and ``evaluate``: compare tables by decision; compute payoffs of agents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.jobs import app, terminal
from luckbase.solver import sentences
from luckbase.solver.sentences import Help, capital, figures

if TYPE_CHECKING:
    from luckbase import Evaluated, Matrix
    from luckbase.cluster.answers.comparison import Comparison


@app.command(
    "luckbase diff pig/tiny pig/tiny --set-second sides=4",
    "luckbase diff pig/tiny pig/tiny --set-second sides=4 --out moved.csv",
)
def diff(
    first: app.TableName,
    second: Annotated[str, app.Argument("Another table of the game.", "TABLE")],
    out: Annotated[
        str | None, Help("Write all changed decisions to a .csv or .parquet file.", "FILE")
    ] = None,
    picture: Annotated[
        str | None, Help("Draw the changes to a .png, .svg, .pdf or .html file.", "FILE")
    ] = None,
    worst: Annotated[int, Help("Print the N most costly changes.", "N", 0)] = 10,
    sample: Annotated[int | None, Help("Compare only N random states.", "N", 1)] = None,
    settings: app.Settings = None,
    set_second: Annotated[
        list[str] | None, Help("Like --set, for the second board only.", "NAME=VALUE")
    ] = None,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> int:
    """Compare two tables: the decisions that differ, and their cost.

    The cost is the loss of the player who decides, if they take the first table's action in the
    game of the second table. Toss-ups are counted separately. Exit code 1 if the tables differ."""
    from luckbase.cluster.answers.charts import PICTURES
    from luckbase.cluster.answers.files import check_place

    suffix = ""
    if picture is not None:
        suffix = app.check_ending("--picture", picture, PICTURES)
        check_place("--picture", picture)
    first_settings, second_settings = _settings_of(first, second, settings or [], set_second or [])
    with (
        app.open_named(first, results, first_settings) as old,
        app.open_named(second, results, second_settings) as new,
        terminal.rows_progress("diff") as on_rows,
    ):
        names = [old.origin, new.origin]
        app.say_unfinished(first, old)
        app.say_unfinished(second, new)
        result = old.diff(new, worst=worst, sample=sample, out=out, on_rows=on_rows)
    if out is not None:
        moved = result.actions + result.toss_ups + result.one_sided + result.unpriced
        terminal.say(f"{out}: {sentences.counted(moved, 'decision')}")
    if as_json:
        terminal.print_json({"tables": [name.as_json() for name in names]}, result)
    else:
        _print_comparison(result, names)
    if picture is not None:  # last, so that an error here does not hide the answer
        sys.stdout.flush()
        _draw(picture, suffix, result, names)
    return 1 if result.differs else 0


def _settings_of(
    first: str, second: str, both: list[str], settings: list[str]
) -> tuple[list[str], list[str]]:
    """Return the options of each table; `settings` are for the second. A folder has none."""
    in_first = [] if app.is_folder(first) else both
    in_second = [] if app.is_folder(second) else both
    names = [word.partition("=")[0].strip() for word in settings]
    inherited = [word for word in in_second if word.partition("=")[0].strip() not in names]
    return in_first, [*inherited, *settings]


def _draw(where: str, suffix: str, result: Comparison, names: Sequence[Any]) -> None:
    from luckbase.cluster.answers.charts import draw

    boards = [name.board for name in names]
    if boards[0] == boards[1]:
        boards = [f"{name.board} ({name.solve_id})" for name in names]
    drawn = draw(result.picture.heatmap(f"{boards[1]} in place of {boards[0]}"), suffix)
    size = sentences.size(terminal.write_file(where, drawn))
    terminal.say(f"{where}: where decisions moved, {size}")


def _print_comparison(result: Comparison, names: Sequence[Any]) -> None:
    if result.actions:
        heads, cases = result.case_rows()
        terminal.print_table("", heads, cases, sys.stdout)
    for sentence in result.notes:
        terminal.print_to_fit(f"{capital(sentence)}.")
    print(f"{'' if not result.notes else chr(10)}first   {names[0]}\nsecond  {names[1]}")
    counts = [f"{sentences.many(result.states, 'state')} in both"]
    sides = ("first are not in the second", "second are not in the first")
    counts += [f"{n:,} of the {side}" for side, n in zip(sides, result.only, strict=True)
             if n is not None]  # fmt: skip
    terminal.print_to_fit(f"{', '.join(counts)}; payoffs closer than {result.tolerance:.1e} agree")
    stored = ", of those with payoffs in both," * bool(result.unpriced)
    print(f"payoffs of {sentences.many(result.payoffs, 'state')}{stored} differ", end="")
    print(f", by {result.amount(result.largest)} at most" * bool(result.payoffs))
    if result.worst:
        columns = ("state", "cost", "before", "now")
        terminal.print_table("", columns, result.worst_rows(), sys.stdout)


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
        _print(payoff_name, result, how["seed"])


def _print_matrix(payoff_name: str, matrix: Matrix) -> None:
    heads = ["player 1, against player 2", *matrix.agents]
    rows = [
        [name, *(f"{x:z.9f}" for x in row)]
        for name, row in zip(matrix.agents, matrix.values, strict=True)
    ]
    terminal.print_table(f"{payoff_name} of player 1", heads, rows, sys.stdout)
    print(f"under the rules of {matrix.origin}")


def _print(payoff_name: str, result: Evaluated, seed: int) -> None:
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
