"""``luckbase info``, ``query`` and ``export``: describe tables, answer queries, write rows."""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.jobs import app, terminal
from luckbase.solver import sentences
from luckbase.solver.board import registry
from luckbase.solver.compiled import in_python
from luckbase.solver.errors import (
    MissingTableError,
    OptionError,
    SearchLimitError,
    StateError,
)
from luckbase.solver.sentences import Help, capital, figures, nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from luckbase import Answer, Table
    from luckbase.cluster.info import FieldInfo, OptionInfo, TableAbout
    from luckbase.solver.game.arrays import Ints
    from luckbase.solver.game.capabilities import Position
    from luckbase.solver.game.fields import State
    from luckbase.solver.game.game import Game

WIDTH = 80
"""Maximum columns of printed text."""
NAME = 24
"""Maximum characters of a name beside its text; a longer name gets its own line."""
MAX_DIGITS = 17
"""Maximum decimals of a printed payoff: a 64-bit number has no more."""
MAX_STATES = 3_000_000
"""Default limit of states of a search: less than ten seconds."""
LEFT_OUT = "left out, so taken as: "
GivenState = Mapping[str, Any] | str
"""A state as a user typed it: fields, or a sentence."""


@app.command(
    "luckbase info pig/race",
    "luckbase info pig/race --copy --out mine.toml",
)
def info(
    table: Annotated[
        str | None, app.Argument("A board file or its name, or a table.", "[TABLE]")
    ] = None,
    settings: app.Settings = None,
    results: app.Results = Path("results"),
    copy: Annotated[bool, Help("Copy this board to a file, to edit.")] = False,
    out: Annotated[
        str | None, Help("With --copy: the file; else the board's name here.", "FILE")
    ] = None,
    as_json: app.Json = False,
) -> None:
    """List luckbase's boards, explain a board or a table, or copy a board.

    Without TABLE it lists the boards that luckbase brings; every command takes their names. With
    TABLE it explains the fields of a state, the options and their values, how to read the charts,
    and prints commands to copy; of a table also its size, age and origin."""
    if out is not None and not copy:
        raise OptionError("--out: goes with --copy; write both, or neither")
    if copy and settings:
        raise OptionError("--set: --copy copies the board as it is; edit the copy instead")
    if copy:
        _copy_board(table, out, as_json)
    elif table is not None:
        _explain(table, settings, results, as_json)
    elif settings:
        raise OptionError("--set: name the board whose options these are: luckbase info BOARD")
    else:
        _list_boards(as_json)


def _list_boards(as_json: bool) -> None:
    entries = luckbase.boards()
    if as_json:
        terminal.print_json({"boards": [each.as_json() for each in entries]})
        return
    for title, of_game in groupby(entries, lambda each: each.game_title):
        print(title)
        rows = [*of_game]
        width = max(len(each.name) for each in rows)
        for each in rows:
            print(f"  {each.name:{width}}  {each.about}")
    program = sentences.program()
    terminal.say(f"{program} info NAME explains a board; {program} info NAME --copy copies it")


def _copy_board(name: str | None, out: str | None, as_json: bool) -> None:
    """Copy one of luckbase's boards to a file. Raises OptionError."""
    by_name = {each.name: each for each in luckbase.boards()}
    if name is None:
        raise OptionError("--copy: name the board to copy: luckbase info NAME --copy")
    if name not in by_name:
        raise OptionError(f"--copy: luckbase has no board '{name[:60]}'; {nearest(name, by_name)}")
    path = by_name[name].copy(out)
    if as_json:
        terminal.print_json(by_name[name], {"file": str(path)})
    else:
        print(path)
        terminal.say(f"edit it, then: {sentences.program()} solve {shlex.quote(str(path))}")


def _explain(table: str, settings: list[str] | None, results: Path, as_json: bool) -> None:
    with in_python():
        facts = luckbase.info(table, results=results, **app.read_settings(settings))
    if as_json:
        terminal.print_json(facts)
        return
    named = facts.file if facts.table is None else facts.table.status.table
    paragraph = ["", *_lines(facts.about)] if facts.about else []
    print(facts.title, named, *paragraph, "", sep="\n")
    who = "of the player" if facts.players == 1 else f"of each of {facts.players} players"
    span = " to ".join(figures(bound, 6) for bound in facts.payoff_range or ())
    print(f"Payoff: {facts.payoff_name}, {who}{f', from {span}' if span else ''}.")
    print("\nA state, field by field")
    _print_pairs((each.name, _field_text(each)) for each in facts.fields)
    if facts.options:
        print("\nOptions: --set NAME=VALUE, or in a copy of the board file")
    _print_pairs(
        (each.name if each.value is None else f"{each.name}={each.value}", _option_text(each))
        for each in facts.options
    )
    if facts.charts:
        print("\nCharts: luckbase chart, --what NAME")
        _print_pairs((each.name, f"{capital(each.shows)}. {each.reading}") for each in facts.charts)
    agents = ", ".join([*sentences.families(facts.agents), "best-response"])
    print("", *_lines(f"Agents: {agents}"), sep="\n")
    print("\nTable")
    _print_pairs(_table_rows(facts.table))
    print("\nTry")
    for example in facts.examples:
        print(*_command_lines(example), sep="\n")


# --- text in 80 columns --------------------------------------------------------------------------


def _text_width() -> int:
    """Return the columns of a line: the terminal's, at most 80."""
    return min(terminal.width(sys.stdout) or WIDTH, WIDTH)


def _lines(text: str) -> list[str]:
    return textwrap.wrap(text, _text_width(), break_on_hyphens=False)


def _command_lines(command: str) -> list[str]:
    """Return a command over several lines if it is long, in a form that can be copied."""
    lines = [""]
    for word in command.split(" "):
        if len(lines[-1]) + len(word) + 4 > _text_width() and lines[-1]:
            lines[-1] += " \\"
            lines.append(" " * 4)
        lines[-1] += f" {word}"
    return [f" {line}" for line in lines]


def _print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names with their texts beside them; a name that is too long gets its own line."""
    rows = [*pairs]
    column = 4 + max((len(name) for name, _ in rows if len(name) <= NAME), default=0)
    width = _text_width()
    for name, text in rows:
        lines = textwrap.wrap(text, max(width - column, 20), break_on_hyphens=False) or [""]
        if len(name) > NAME:
            lines.insert(0, "")
        heads = [f"  {name}", *[""] * len(lines)]
        for head, line in zip(heads, lines, strict=False):
            print(f"{head:{column}}{line}".rstrip())


def _field_text(field: FieldInfo) -> str:
    about, most = field.help, field.max
    texts = [about if not about or about.endswith((".", "!", "?")) else f"{about}."]
    step = f" in steps of {field.step}" if field.step > 1 else ""
    if field.choices and isinstance(field.choices[0], str):
        texts.append(f"Values: {', '.join(map(str, field.choices))}.")
    elif field.kind not in ("set", "name") and most is not None and str(most) not in about:
        texts.append(f"{field.min} to {most}{step}.")
    if field.default is not None and not field.blank:
        texts.append(f"If left out: {'none' if field.default == '' else field.default}.")
    return " ".join([*filter(None, texts), f"Example: {field.name}={field.example}"])


def _option_text(option: OptionInfo) -> str:
    values = [each for each in option.values if each not in ("true", "false")]
    source = {"default": "", "board": "the board file", "command": "--set"}[option.set_by]
    otherwise = f"; otherwise {option.default}" if option.default is not None else ""
    parts = (
        option.help, values and f"Values: {', '.join(values)}.",
        source and f"Set by {source}{otherwise}.",
    )  # fmt: skip
    return " ".join(part for part in parts if part)


def _table_rows(about: TableAbout | None) -> Iterable[tuple[str, str]]:
    if about is None:
        yield "none", "It is not solved yet, with these options."
        return
    status = about.status
    size = f"{sentences.counted(status.states, 'state')}, {sentences.size(status.bytes)}"
    size += f" of {status.stores}" * (status.stores != "payoffs")
    within = f"each payoff within {sentences.bound(about.error_bound)}"
    yield status.state, f"{size} on disk; {within}"
    for why in status.why:
        yield "", why
    for line in status.grid or ():
        yield "grid", line
    age = (datetime.now() - datetime.fromisoformat(about.solved)).total_seconds()
    yield "solved", f"{about.solved}, {_ago(age)}"
    for command in about.commands:
        yield "by", command


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{sentences.many(int(seconds // size), unit)} ago"
    return "just now"


@app.command(
    "luckbase query pig/race mine=0 yours=87 turn=12",
    "luckbase query pig/race --batch states.csv --best --out answers.csv",
)
def query(
    table: app.TableName,
    fields: Annotated[
        list[str] | None,
        app.Argument(
            "The state, as scores=0,2000,3500 earned=0,1,0, or in a sentence: "
            "'Ed 5000, 2 spins; Peter 8000; Michael 3000'; else the start.",
            "[FIELD=VALUE...]",
        ),
    ] = None,
    batch: Annotated[
        str | None, Help("States as CSV, JSON lines or Parquet; - is stdin.", "FILE")
    ] = None,
    out: Annotated[str, Help("Where a batch's answers go; - is stdout.", "FILE")] = "-",
    best: Annotated[bool, Help("In a batch, the best action too, not the payoffs only.")] = False,
    actions: Annotated[
        bool, Help("In a batch, every action's payoffs, the margin, who acts.")
    ] = False,
    games: Annotated[
        int | None,
        Help(
            "If the table has the best action alone, payoffs from so many games an action.", "N", 1
        ),
    ] = None,
    max_states: Annotated[
        int, Help("The most states that a search above the table may find.", "N", 1)
    ] = MAX_STATES,
    digits: Annotated[int | None, Help("Payoffs as numbers with so many decimals.", "N", 0)] = None,
    settings: app.Settings = None,
    strict: app.Strict = False,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> None:
    """Answer by state: the best action, and the payoffs of every action.

    Without a state the start of the game is answered. A state above the table's frontier is
    answered by a search down to it."""
    if batch is not None and fields:
        raise OptionError("--batch: has the states; leave FIELD=VALUE out")
    for name, value in (("games", games), ("digits", digits)) if batch is not None else ():
        if value is not None:
            why = "is of one state; leave it out, or give a state for --batch"
            raise OptionError(f"--{name}: {why}")
    if digits is not None and (as_json or digits > MAX_DIGITS):
        why = "--json has every digit" if as_json else f"expected 0 to {MAX_DIGITS}"
        raise OptionError(f"--digits {digits}: {why}")
    from luckbase.cluster.answers.grids import grid_notes

    text = " ".join(fields or [])
    given: GivenState | None = app.read_fields(fields or []) if "=" in text else text or None
    with (
        in_python(batch is None),
        _opened(table, results, settings, strict, given, max_states) as named,
    ):
        if batch is not None:
            alone = named.decided is not None
            columns = {"best": best or alone, "toss_up": best and not alone, "actions": actions}
            _answer_batch(named, batch, out, None if as_json else columns)
            terminal.say(f"answered by {named.origin}")
            return
        source = named if given is None else named.for_state(given)

        def instead(state: State) -> str:
            from luckbase.cluster.inputs import table_that_answers

            return table_that_answers(table, app.read_settings(settings), results, state)

        answer, reasons, position, state = _answered(
            source, table, given, instead, games, max_states, as_json
        )
        game = source.game
        defaults, grid = game.fields.left_out(state), grid_notes(source)(game.parse(state))
    if as_json:
        terminal.print_json(answer, {"why": reasons}, {"grid": grid} if grid else {})
        return
    _print(answer, reasons, position, defaults, digits)
    if grid:
        terminal.print_to_fit(grid, "dim")


def _opened(
    name: str, results: Path, settings: list[str] | None, strict: bool, state: GivenState | None,
    max_states: int,
) -> Table:  # fmt: skip
    """Open the table that a user names. If there is none, solve the states below a state in memory,
    if one is given and there are at most `max_states`."""
    try:
        return app.open_named(name, results, settings, strict)
    except MissingTableError:
        if state is None or Path(name).is_dir():
            raise
        from luckbase.cluster.inputs import searched_for

        words = app.read_settings(settings)
        table = searched_for(name, results, words, state, max_states)
        if table is None:
            raise
    states = sentences.counted(table.rows, "state")
    terminal.say(f"{name}: no table of this board; searched {states} below it")
    return table


def _answered(
    table: Table, name: str, given: GivenState | None, instead: Callable[[GivenState], str],
    games: int | None, max_states: int, as_json: bool,
) -> tuple[Answer, list[str], Position | None, Mapping[str, Any]]:  # fmt: skip
    """Return the answer to a state or to the start, with reasons, the position as given, and the
    state.

    name: the table as the user typed it.
    instead: returns a clause with a command for a state that is too far above the table.
    """
    from luckbase.cluster.answers.moves import moves
    from luckbase.cluster.answers.why import why
    from luckbase.solver.game.capabilities import position_of

    game, position = table.game, None
    state = _start_of(table, name) if given is None else given
    if isinstance(state, str):
        position = position_of(game, state)
        state = game.describe(game.parse(state) if position is None else position.state)
    if given is not None:
        _check_over(game, state)
    if table.stores_best_alone(state):
        answer, reasons = _beyond_frontier(table, state, position, games, max_states, as_json)
    elif games is not None:
        raise OptionError(f"--games {games}: this table has the exact payoffs; leave it out")
    else:
        progress = terminal.search_progress(max_states)
        try:
            result = moves(table, state, max_states, progress)
            reasons = why(table, result)
        except SearchLimitError as error:
            in_dollars = given if isinstance(given, str) else state  # for any grid
            clause = instead(in_dollars)
            raise SearchLimitError(f"{error}; {clause}" if clause else str(error)) from None
        answer = result.answer
        if position is not None:
            answer = table.answer_position(position, answer)
    return answer, reasons, position, state


def _start_of(table: Table, name: str) -> dict[str, Any]:
    """Return the game's start. Raises OptionError if there is none or more than one."""
    start = table.game.start()
    if start is not None:
        return table.game.describe(start)
    form = "query: give a state as FIELD=VALUE, or states with --batch FILE"
    files = sorted({os.path.relpath(e.file.path) for e in registry.entries.values() if e.file})
    words = shlex.join([name, *(word for file in files for word in ("--game", file))])
    raise OptionError(f"{form}; examples: {sentences.program()} info {words}")


def _check_over(game: Game, state: Mapping[str, Any]) -> None:
    """Raise StateError if the game is over at a state only because a field was left out.

    The first field that can end the game decides: if it was given, its values are meant.
    """
    from luckbase.solver.game.rules import TERMINAL
    from luckbase.solver.search.expand import who_acts

    def over(state: Mapping[str, Any]) -> bool:
        with suppress(StateError):
            return bool(who_acts(game, game.parse(state).reshape(1, -1))[0][0] == TERMINAL)
        return True

    left_out = game.fields.left_out(state)
    for field in game.fields if left_out and over(state) else ():
        for k in range(field.length):
            example = {field.name: [field.unit * (i == k) for i in range(field.length)]}
            if not over({**state, **example}):
                if field.name not in left_out:
                    return
                default = sentences.fields({field.name: left_out[field.name]})
                raise StateError(
                    f"nobody can act with {default}, which was left out; write, for example, "
                    f"{sentences.fields(example)}"
                )


def _beyond_frontier(
    table: Table, state: Mapping[str, Any], position: Position | None, games: int | None,
    max_states: int, as_json: bool,
) -> tuple[Answer, list[str]]:  # fmt: skip
    """Return the answer to a state of which only the best action is stored, with payoffs of actions
    if the stored decisions are followed (`moves.chances`), and reasons. position: the state as
    given in words."""
    from luckbase.cluster.answers.moves import chances, moves
    from luckbase.cluster.answers.why import about, reason

    stored = table.ask(state)
    if not as_json:
        terminal.say(f"{stored.verdict}; its chances take a little longer")

    def say_states(states: int) -> None:
        terminal.say(f"following decisions through {sentences.many(states, 'state')}")

    def price(states: Ints, weights: Sequence[float]) -> list[Answer]:
        return chances(table, states, weights, games, max_states, say_states)

    answer = stored if position is None else table.answer_position(position, stored, price)
    if not answer.value:
        (priced,) = price(table.game.parse(state).reshape(1, -1), [1.0])
        answer = replace(priced, given=stored.given, remark=answer.remark)
    claims = reason(table, moves(table, state)), about(answer)
    return answer, [f"{claim}." for claim in claims if claim]


def _answer_batch(table: Table, batch: str, out: str, columns: dict[str, bool] | None) -> None:
    """Answer every state in a file, and write the answers when all are computed. columns: columns
    in addition to payoffs; None for JSON lines with everything."""
    from luckbase.cluster.answers.files import format_of, read_rows, write_lines, write_rows
    from luckbase.cluster.answers.grids import grid_notes

    target = None if out == "-" else format_of(out)
    if columns is None and target not in (None, "jsonl"):
        raise OptionError(f"--json: writes JSON lines, and --out {out} says another format")
    kind, frame = read_rows(batch)
    if columns is None:
        note, parse = grid_notes(table), table.game.parse
        answers = ((answer.as_json(), note(parse(answer.state))) for answer in table.ask_all(frame))
        lines = (json.dumps({**each, "grid": grid} if grid else each) for each, grid in answers)
        write_lines(lines, out)
    else:
        write_rows(table.values(frame, solve_id=True, **columns), out, target or kind)
    complete = [name for name in frame.column_names if not _is_blank_somewhere(frame[name])]
    if defaults := table.game.fields.left_out(dict.fromkeys(complete, 0)):
        terminal.say(f"{LEFT_OUT}{sentences.fields(defaults)}")


def _is_blank_somewhere(column: pa.ChunkedArray) -> bool:
    """True if a cell is blank, so that the field's default is used."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = pa.types.is_string(column.type)
    return column.null_count > 0 or (is_text and pc.index(column, "").as_py() >= 0)


def _print(
    answer: Answer, reasons: list[str], position: Position | None = None,
    defaults: Mapping[str, Any] = {}, digits: int | None = None,
) -> None:  # fmt: skip
    """Print an answer, with the verdict first and the details last.

    position: as given in words, for the players' names.
    defaults: fields that were left out.
    digits: decimals of payoffs.
    """
    from luckbase.cluster.answers.why import named

    def with_names(text: str) -> str:
        return named(text, position.names) if position is not None else text

    payoffs = replace(answer.origin.payoffs, digits=digits)
    answer = replace(answer, origin=replace(answer.origin, payoffs=payoffs))
    terminal.print_to_fit(with_names(answer.verdict), "bold")
    for line in filter(None, (answer.standing, answer.note)):
        terminal.print_to_fit(with_names(line))
    heads, rows = answer.table()
    if answer.strategies is not None:
        terminal.print_table("", heads, rows, sys.stdout)
        heads, rows = replace(answer, strategies=None).table()
    if rows:
        heads = [payoffs.name, *map(with_names, heads[1:])]
        rows = [[with_names(row[0]), *row[1:]] for row in rows]
        terminal.print_table("", heads, rows, sys.stdout)
    for sentence in reasons:
        terminal.print_to_fit(with_names(sentence))
    terminal.print_to_fit(answer.details[0], "dim")
    if defaults:
        terminal.print_to_fit(f"{LEFT_OUT}{sentences.fields(defaults)}", "dim")
    for line in answer.details[1:]:
        terminal.print_to_fit(line, "dim")


@app.command(
    "luckbase export pig/race yours=87 'margin<0.001' --out close.csv",
    "luckbase export pig/race mine=0 --columns yours,turn,best --format csv",
)
def export(
    table: app.TableName,
    where: Annotated[
        list[str] | None,
        app.Argument(
            "Only these rows: COLUMN OP VALUE, as spins=2 'scores_1>=8000' 'margin<0.001'",
            "[WHERE...]",
        ),
    ] = None,
    out: Annotated[
        str, Help("Ends in .csv, .jsonl, .json (the same) or .parquet; - is stdout.", "FILE")
    ] = "-",
    format: Annotated[
        str | None,
        Help("csv, jsonl or parquet; to stdout csv.", "FORMAT"),
    ] = None,
    columns: Annotated[str | None, Help("Only these columns, in this order.", "A,B,...")] = None,
    settings: app.Settings = None,
    strict: app.Strict = False,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> None:
    """Write rows as CSV, JSON lines or Parquet: all, or those you name.

    A row has the payoffs of every action, the best action, its margin and who acts. WHERE names
    conditions on columns or on the fields of a query; a row must meet them all."""
    if as_json and out == "-":
        raise OptionError("--json: says what was written to a file; give --out FILE")
    names = None
    if columns is not None:
        names = [name.strip() for name in columns.split(",") if name.strip()]
    with (
        app.open_named(table, results, settings, strict) as source,
        terminal.rows_progress("export") as on_rows,
    ):
        app.say_unfinished(table, source)
        done = source.export(out, where or None, columns=names, format=format, on_rows=on_rows)
        origin, unfinished = source.origin, source.unfinished()
    if as_json:
        terminal.print_json(origin, {"unfinished": unfinished}, done)
        return
    counts = f"{sentences.many(done.rows, 'row')}, {sentences.many(len(done.columns), 'column')}"
    if done.out != "-":
        counts = f"{done.out}: {counts}, {sentences.size(done.bytes)}"
    terminal.say(f"{counts}, of {origin}")
