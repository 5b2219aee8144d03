"""What a table says of states: of one, along a line of play, in two tables, of many at once."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.cluster import words
from luckbase.cluster.table.files import encode, rows_in
from luckbase.cluster.table.moves import Addressed, Moves, Outcome, address, moves
from luckbase.cluster.table.table import StoredTable, Table
from luckbase.jobs.web import tables
from luckbase.jobs.web.pictures import drawing
from luckbase.solver.errors import OptionError, SearchLimitError, StateError, TableError
from luckbase.solver.result import Flat, Result

ROUNDING = 1e-12
"""Chances that differ by less are equal."""


@dataclass(frozen=True)
class StateView(Result):
    """The answer to a state, as luckbase query --json says it, and what can happen there. to_act:
    from 1; null: nobody, or both. actions: best first. outcomes: where chance moves, or both choose
    at once. drawing: SVG. held: the table has a row of it. playable: a game can begin there;
    why_not_playable: a sentence if not."""

    moves: Flat[Moves]
    playable: bool
    why_not_playable: str | None
    drawing: str | None


def state_view(table: StoredTable, state: Mapping[str, str], drawn: bool) -> StateView:
    """The answer to a state with what can happen there, and its drawing."""
    there = _moves(table, state)
    why = tables.why_not(there)
    return StateView(there, why is None, why, drawing(table.game, state) if drawn else None)


def _moves(table: StoredTable, state: Mapping[str, str]) -> Moves:
    """What can happen at a state; one above the table is searched, within a page's patience."""
    try:
        return moves(table, state, tables.SEARCH_STATES)
    except SearchLimitError:
        raise SearchLimitError(
            f"{words.fields(state)} is above this table, and a search down to it meets more than "
            f"{tables.SEARCH_STATES:,} states; this one goes on further: "
            f"luckbase query {table.path} {words.fields(state)}"
        ) from None


@dataclass(frozen=True)
class Step(Result):
    """A step of a main line: the best action and the likeliest outcome."""

    state: Addressed
    to_act: int | None
    action: str | None
    outcome: str | None
    chance: float | None
    value: tuple[float, ...]
    over: bool


@dataclass(frozen=True)
class MainLine(Result):
    """A main line; stopped: why it does not go on: the table knows no more, or it comes back to
    where it was."""

    line: list[Step]
    stopped: str | None


def main_line(table: StoredTable, state: Mapping[str, str], steps: int) -> MainLine:
    """The best action and the likeliest outcome, again and again, so many times at most; nowhere
    twice."""
    line: list[Step] = []
    met: set[str] = set()
    while len(line) < steps:
        try:
            there = _moves(table, state)
        except (TableError, SearchLimitError) as error:
            if not line:
                raise
            return MainLine(line, str(error))
        met.add(address(there.answer.state))
        step, outcome = _next(there, met)
        line.append(step)
        if outcome is None:
            break
        if address(outcome.state) in met:
            return MainLine(line, f"comes back to {words.fields(outcome.state)}")
        state = words.typed(outcome.state)
    return MainLine(line, None)


def _next(there: Moves, met: Set[str]) -> tuple[Step, Outcome | None]:
    """A step of a main line, and where it leads; None at the end."""
    answer = there.answer
    best = next((move for move in there.moves if move.best), None)
    outcomes = there.outcomes or (best.outcomes if best is not None else ())
    likeliest = _middle(outcomes, (answer.to_act or 1) - 1, met)
    step = Step(
        answer.state, answer.to_act,
        None if best is None or there.outcomes else best.action.name,
        None if likeliest is None else likeliest.name,
        None if likeliest is None else likeliest.chance, answer.value, there.over,
    )  # fmt: skip
    return step, likeliest


def _middle(outcomes: Sequence[Outcome], player: int, met: Set[str]) -> Outcome | None:
    """The likeliest outcome. Of equally likely ones, where there is one that was not met, the
    middle one of those by what they are worth to a player (from 0), so that a main line shows
    neither luck nor bad luck."""
    top = max((each.chance for each in outcomes), default=0.0)
    likely = [each for each in outcomes if each.chance > top - ROUNDING]
    fresh = [each for each in likely if address(each.state) not in met] or likely

    def payoff(each: Outcome) -> float:
        return 0.0 if each.value is None else each.value[player] + each.reward[player]

    ordered = sorted(fresh, key=payoff)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


# --- two tables --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change(Result):
    """What an action is worth in the second table, less what it is in the first."""

    action: str
    change: list[float] | None


@dataclass(frozen=True)
class CompareView(Result):
    """Two answers to one state; change: the second's payoffs less the first's."""

    first: StateView
    second: StateView
    change: list[float] | None
    differences: list[Change]
    same_best: bool


def compared(first: StateView, second: StateView) -> CompareView:
    """The second answer less the first."""
    one, other = first.moves.answer, second.moves.answer
    values = {move.action.name: move.action.value for move in first.moves.moves}
    differences = [
        Change(move.action.name, _less(move.action.value, values[move.action.name]))
        for move in second.moves.moves
        if move.action.name in values
    ]
    change = _less(other.value, one.value)
    return CompareView(first, second, change, differences, one.best == other.best)


def _less(one: Sequence[float], other: Sequence[float]) -> list[float] | None:
    """The differences; None between games of different numbers of players."""
    if len(one) != len(other):
        return None
    return [a - b for a, b in zip(one, other, strict=True)]


# --- many states: JSON lines, CSV or Parquet in, the same out ----------------------------------

ROW_TYPES = {
    "application/x-ndjson": "jsonl", "application/jsonl": "jsonl", "application/json": "jsonl",
    "application/vnd.apache.parquet": "parquet", "application/octet-stream": "parquet",
    "text/csv": "csv",
}  # fmt: skip
SENT_TYPES = {"jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet",
        "csv": "text/csv"}  # fmt: skip
MAX_BYTES = 64_000_000
MAX_ROWS = 1_000_000
MAX_READ = 1_000_000_000
"""Bytes that a Parquet file may come to when it is read."""
PIECE_ROWS = 20_000
"""Rows that are answered together: each has some 60 children."""


def format_of(content_type: str, body: bytes) -> str:
    """The format that a request names, or else that its bytes show. Raises OptionError."""
    name = content_type.partition(";")[0].strip().lower()
    if body[:4] == b"PAR1":
        return "parquet"
    if name in ROW_TYPES:
        return ROW_TYPES[name]
    if body.lstrip()[:1] == b"{":
        return "jsonl"
    raise OptionError(
        f"content-type: '{name[:40]}' is none of {', '.join([*ROW_TYPES][:1] + [*ROW_TYPES][3:])}"
    )


def rows_of(table: Table, body: bytes, kind: str, best: bool) -> bytes:
    """The rows with payoffs, in their format. Raises OptionError, StateError with the row."""
    if kind == "parquet":
        _check_parquet(body)
    read = rows_in(body, kind, "body")
    if len(read) > MAX_ROWS:
        raise OptionError(f"body: has {len(read):,} rows; the most is {MAX_ROWS:,}")
    pieces = []
    for start in range(0, max(len(read), 1), PIECE_ROWS):
        try:
            piece = read.slice(start, PIECE_ROWS)
            pieces.append(table.values(piece, best=best, toss_up=best, solve_id=True))
        except StateError as error:
            raise StateError(_row_moved(str(error), start)) from None
    out = io.BytesIO()
    encode(pa.concat_tables(pieces), out, kind)
    return out.getvalue()


def _check_parquet(body: bytes) -> None:
    """Raises OptionError for a file that is none, or comes to more than `MAX_READ` bytes."""
    try:
        about = pq.ParquetFile(pa.BufferReader(body)).metadata
    except (pa.ArrowException, OSError) as error:
        raise OptionError(f"body: {' '.join(str(error).split())[:150].rstrip('.')}") from None
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if about.num_rows > MAX_ROWS or size > MAX_READ:
        raise OptionError(
            f"body: has {about.num_rows:,} rows of {size:,} bytes; the most is {MAX_ROWS:,} rows "
            f"of {MAX_READ:,} bytes"
        )


def _row_moved(sentence: str, by: int) -> str:
    return re.sub(r"^row ([0-9]+):", lambda found: f"row {int(found[1]) + by}:", sentence)
