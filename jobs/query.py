"""``luckbase query`` and ``export``: ask a table about states, and write its rows for others."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from luckbase.cluster import words
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal
from luckbase.solver.compiled import in_python
from luckbase.solver.errors import OptionError

if TYPE_CHECKING:
    from luckbase import Answer, Table


@options.command(
    "luckbase query pig/race mine=0 yours=87 turn=12",
    "luckbase query pig/race --batch states.csv --best --out answers.csv",
)
def query(
    table: options.TableName,
    fields: Annotated[
        list[str] | None,
        options.Argument("The state: scores=0,2000,3500 earned=0,1,0", "FIELD=VALUE..."),
    ] = None,
    batch: Annotated[
        str | None, Help("States as CSV, JSON lines or Parquet; - is stdin.", "FILE")
    ] = None,
    out: Annotated[str, Help("Where a batch's answers go; - is stdout.", "FILE")] = "-",
    best: Annotated[bool, Help("In a batch, the best action too, not the payoffs only.")] = False,
    actions: Annotated[
        bool, Help("In a batch, every action's payoffs, the margin, who acts.")
    ] = False,
    payoffs: Annotated[
        bool, Help("Of a table of decisions, payoffs from what these lead to.")
    ] = False,
    games: Annotated[
        int | None, Help("The same from so many games an action, with the error.", "N", 1)
    ] = None,
    max_states: Annotated[
        int, Help("The most states that a search above the table may find.", "N", 1)
    ] = 20_000_000,
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Answer by state: its payoff, and that of every action, best first.

    A state above the table's frontier is answered by a search down to it."""
    if (batch is None) == (not fields):
        raise OptionError("query: give a state as FIELD=VALUE, or states with --batch FILE")
    with options.open_found(table, results, settings, strict) as opened, in_python(batch is None):
        if batch is not None:
            opened.need_payoffs("a batch")
            columns = {"best": best, "toss_up": best, "actions": actions}
            _answer_batch(opened, batch, out, None if as_json else columns)
            terminal.say(f"answered by {opened.origin}")
            return
        state = options.read_fields(fields or [])
        if opened.decisions_alone:
            _print_decision(opened, state, payoffs, games, max_states, as_json)
            return
        if games is not None:
            raise OptionError(f"--games {games}: this table has the exact payoffs; leave it out")
        from luckbase.cluster.table.why import explain

        progress = terminal.search_progress(opened, state, max_states)
        there, claims = explain(opened, state, max_states, progress)
        reasons = list(map(str, claims))
        name, defaults = opened.game.payoff_name, opened.game.fields.left_out(state)
    if as_json:
        terminal.print_json(there.answer, {"why": reasons})
        return
    if defaults:
        terminal.print_to_fit(f"left out, so taken as: {words.fields(defaults)}")
    _print(there.answer, name, reasons)


def _print_decision(
    table: Table, state: dict[str, str], payoffs: bool, games: int | None, max_states: int,
    as_json: bool,
) -> None:  # fmt: skip
    """What a table of decisions says of a state. payoffs: followed where they are not stored, or
    from so many games."""
    from luckbase.cluster.table.moves import moves
    from luckbase.cluster.table.why import reason

    answer = table.ask(state, max_states)
    if games is not None and len(answer.actions) < 2:
        answer = table.simulate(state, games)
    elif payoffs and len(answer.actions) < 2:
        answer = table.follow(
            state, max_states,
            lambda n: terminal.say(f"following decisions through {words.many(n, 'state')}"),
        )  # fmt: skip
    if as_json:
        terminal.print_json(answer)
    else:
        reasons = [f"{turn}." for turn in [reason(table, moves(table, state))] if turn]
        _print(answer, table.game.payoff_name, reasons if answer.margin_class is not None else [])


def _answer_batch(table: Table, batch: str, out: str, columns: dict[str, bool] | None) -> None:
    """Answer every state in a file; write when all of them are answered. columns: which there are
    beside the payoffs; None for JSON lines with all."""
    from luckbase.cluster.table.frames import format_of, read_rows, write_lines, write_rows

    target = None if out == "-" else format_of(out)
    if columns is None and target not in (None, "jsonl"):
        raise OptionError(f"--json: writes JSON lines, and --out {out} says another format")
    kind, read = read_rows(batch)
    if columns is None:
        write_lines((json.dumps(answer.as_json()) for answer in table.ask_all(read)), out)
    else:
        write_rows(table.values(read, solve_id=True, **columns), out, target or kind)


def _print(answer: Answer, payoff_name: str, reasons: list[str]) -> None:
    terminal.print_to_fit(f"{answer.board}  {words.fields(answer.state, '  ')}")
    if answer.note:
        terminal.print_to_fit(answer.note)
    if answer.headline:
        print(answer.headline)
    heads, rows = answer.table()
    if answer.strategies is not None:
        terminal.print_table("", heads, rows, sys.stdout)
        heads, rows = replace(answer, strategies=None).table()
    if rows:
        terminal.print_table("", [payoff_name, *heads[1:]], rows, sys.stdout)
    for sentence in reasons:
        terminal.print_to_fit(sentence)
    print(answer.footline.replace("; ", "\n", 1))


@options.command(
    "luckbase export pig/race yours=87 'margin<0.001' --out close.csv",
    "luckbase export pig/race mine=0 --columns yours,turn,best --format csv",
)
def export(
    table: options.TableName,
    where: Annotated[
        list[str] | None,
        options.Argument(
            "Only these rows: COLUMN OP VALUE, as spins=2 'scores_1>=8000' 'margin<0.001'",
            "[WHERE...]",
        ),
    ] = None,
    out: Annotated[
        str, Help("Ends in .csv, .xlsx, .parquet, .arrow or .jsonl; - is stdout.", "FILE")
    ] = "-",
    format: Annotated[
        str | None,
        Help("csv, parquet, arrow, jsonl; into a pipe csv. Or delta, storm.", "FORMAT"),
    ] = None,
    columns: Annotated[str | None, Help("Only these columns, in this order.", "A,B,...")] = None,
    no_actions: Annotated[
        bool, Help("Only what is stored, nothing worked out: far faster.")
    ] = False,
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Write rows as CSV, Excel, Parquet or Arrow, all or those you name.

    A row has every action's payoff, the best action, its margin and who acts. WHERE is what
    must hold of a row, in the words of its columns or of the fields of a query.

    --format delta makes the table's folder a Delta table as well. --format storm --out NAME
    writes NAME.tra, NAME.lab and NAME.rew, for model checkers."""
    if as_json and out == "-" and format != "delta":
        raise OptionError("--json: says what was written to a file; give --out FILE")
    chosen = None
    if columns is not None:
        chosen = [name.strip() for name in columns.split(",") if name.strip()]
    with (
        options.open_found(table, results, settings, strict) as opened,
        terminal.rows_progress("export") as on_rows,
    ):
        options.say_unfinished(table, opened)
        done = opened.export(
            out, where or None, columns=chosen, actions=not no_actions, format=format,
            on_rows=on_rows,
        )  # fmt: skip
        origin, left = opened.origin, opened.unfinished()
    if as_json:
        terminal.print_json(origin, {"unfinished": left}, done)
        return
    counts = f"{words.many(done.rows, 'row')}, {words.many(len(done.columns), 'column')}"
    if done.out != "-":
        counts = f"{done.out}: {counts}, {words.size(done.bytes)}"
    terminal.say(f"{counts}, of {origin}")
