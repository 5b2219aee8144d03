"""The description of the API, OpenAPI 3.1: made of the types of answers, which tests hold to it.

Each class is an object of an answer, its annotations the types; keys that stand in a `NotRequired`
may be missing. Nothing else may be in an answer.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

Number = int | float
Only = with_config(ConfigDict(extra="forbid"))


@Only
class Refusal(TypedDict):
    """Why a request is not answered. field: of the state, if the sentence is of one."""

    error: str
    field: NotRequired[str]


@Only
class Summary(TypedDict):
    """A table in the list. id: names it in addresses. bytes: on the disk. why: what is missing,
    stale or damaged, in sentences. running: what a solve that runs says of itself. error_bound: no
    payoff is further off."""

    id: str
    game: str
    board: str
    options: dict[str, Any]
    solve_id: str
    kind: str
    state: Literal["complete", "partial", "stale", "damaged"]
    states: int
    bytes: int
    complete: bool
    stale: list[str]
    why: list[str]
    running: dict[str, Any] | None
    error_bound: float
    path_name: str


@Only
class Tables(TypedDict):
    """The tables that are served."""

    tables: list[Summary]


@Only
class FieldSaid(TypedDict):
    """A field of a state. kind: players (one number a player), list (several other numbers), set
    (of numbers from 1), choice (one of few), number. min, max, step: of each number, null for no
    bound; held_max: the most among rows of this table. default: null where it must be said."""

    name: str
    label: str
    kind: Literal["players", "list", "set", "choice", "number"]
    players: bool
    length: int
    min: int
    max: int | None
    step: int
    held_max: int | None
    choices: list[int] | None
    default: int | None
    optional: bool
    blank: bool


@Only
class Example(TypedDict):
    """A state worth looking at; query: as an address has it."""

    label: str
    state: dict[str, str]
    query: str
    text: str


@Only
class ChartKind(TypedDict):
    """A chart of the game; picture: a heat map or curves, else a list."""

    name: str
    shows: str
    picture: bool


@Only
class AxisKind(TypedDict):
    """A column that a grid can be over, and between which values the table holds it."""

    name: str
    label: str
    min: int
    max: int
    step: int


@Only
class TableSaid(Summary):
    """A table, its game, and how far it reaches."""

    title: str
    players: int
    payoff_name: str
    payoff_range: list[float]
    simultaneous: bool
    fields: list[FieldSaid]
    start: dict[str, str] | None
    examples: list[Example]
    charts: list[ChartKind]
    axes: list[AxisKind]
    agents: list[str]
    full: bool
    board_file: dict[str, Any]


@Only
class OutcomeSaid(TypedDict):
    """What can happen: so many (weight) of so many (cases) equally likely cases; where there are no
    few of them cases is null and weight is the chance. reward: what it pays at once. query, text:
    the state it leads to. value: its payoffs, null where the table does not know them. pair: where
    both players choose at once, the places of their choices in strategies."""

    name: str
    weight: Number
    cases: int | None
    chance: float
    reward: list[float]
    query: str
    text: str
    value: list[float] | None
    over: bool
    pair: NotRequired[list[int]]


@Only
class ActionSaid(TypedDict):
    """An action. toss_up: as good as the best as far as can be told. cost: against the best, for
    the one who decides. next: the one state it leads to, else outcomes: all that can come of it,
    likeliest first."""

    action: str
    value: list[float]
    best: bool
    toss_up: bool
    cost: float | None
    next: NotRequired[OutcomeSaid]
    outcomes: NotRequired[list[OutcomeSaid]]


@Only
class BidSaid(TypedDict):
    """A choice of a player where both choose at once: its chance in an optimal strategy, and the
    least and the most that it can have in one."""

    action: str
    chance: float
    least: float
    most: float


@Only
class StateSaid(TypedDict):
    """The answer to a state, as luckbase query --json says it, and what can happen there. to_act:
    from 1; null: nobody, or both. actions: best first. outcomes: where chance moves, or both choose
    at once. drawing: SVG. held: the table has a row of it. playable: a game can begin there;
    why_not_playable: a sentence if not."""

    board: str
    options: dict[str, Any]
    solve_id: str
    stale: list[str]
    state: dict[str, Any]
    to_act: int | None
    value: list[float]
    actions: list[ActionSaid]
    best: str | None
    margin: float | None
    toss_up: bool
    error: float
    source: Literal["table", "search"]
    strategies: NotRequired[list[list[BidSaid]]]
    query: str
    text: str
    over: bool
    held: bool
    playable: bool
    why_not_playable: str | None
    outcomes: list[OutcomeSaid]
    drawing: str | None


@Only
class Step(TypedDict):
    """A step of a main line: the best action and the likeliest outcome."""

    query: str
    text: str
    to_act: int | None
    action: str | None
    outcome: str | None
    chance: float | None
    value: list[float]
    over: bool


@Only
class Line(TypedDict):
    """A main line; stopped: why it does not go on: the table knows no more, or it comes back to
    where it was."""

    line: list[Step]
    stopped: str | None


@Only
class ListingSaid(TypedDict):
    """A chart to read: lines for people, rows for machines."""

    name: str
    kind: Literal["listing"]
    note: str
    lines: list[str]
    columns: list[str]
    rows: list[list[str | int | float]]


@Only
class LineDrawn(TypedDict):
    """A line on a heat map, in the units of its axes; null is a gap."""

    label: str
    xs: list[float | None]
    ys: list[float | None]


@Only
class WordsDrawn(TypedDict):
    """Words on a picture, centred on a point in the units of its axes."""

    text: str
    x: float
    y: float


@Only
class HeatmapSaid(TypedDict):
    """A picture: values[i][j] at xs[i], ys[j]; null where there is none. blank: gets no colour.
    rest: where a cell is a state, its fields beside names[0] and names[1]; else null."""

    name: str
    kind: Literal["heatmap"]
    title: str
    about: str
    names: list[str]
    rest: dict[str, str] | None
    xs: list[int]
    ys: list[int]
    values: list[list[float | None]]
    x_label: str
    y_label: str
    colour_label: str
    limits: list[float] | None
    levels: list[float]
    blank: list[list[bool]] | None
    lines: list[LineDrawn]
    words: list[WordsDrawn]


@Only
class CurveDrawn(TypedDict):
    """A curve; null where it has no number."""

    label: str
    name: str
    values: list[float | None]


@Only
class BandDrawn(TypedDict):
    """A stretch of the x axis that is marked, and why."""

    first: float
    last: float
    text: str


@Only
class CurvesSaid(TypedDict):
    """Curves over one axis: values[i] at xs[i]."""

    name: str
    kind: Literal["curves"]
    title: str
    about: str
    x_name: str
    x_label: str
    y_label: str
    xs: list[int]
    limits: list[float] | None
    curves: list[CurveDrawn]
    bands: list[BandDrawn]
    words: list[WordsDrawn]


@Only
class AxisSaid(TypedDict):
    """A column over which a grid goes, with its values."""

    name: str
    label: str
    values: list[int]


@Only
class GridSaid(TypedDict):
    """A table over two columns: cells[i][j] at the i-th value of x and the j-th of y, null where
    there is no such number. best: into actions. queries, state: all other fields, in full."""

    x: AxisSaid
    y: AxisSaid
    colour: str
    cells: list[list[float | None]]
    best: list[list[int | None]]
    to_act: list[list[int]]
    actions: list[str]
    queries: str
    state: dict[str, Any]
    payoff_name: str


@Only
class Change(TypedDict):
    """What an action is worth in the second table, less what it is in the first."""

    action: str
    change: list[float] | None


@Only
class Compared(TypedDict):
    """Two answers to one state; change: the second's payoffs less the first's."""

    first: StateSaid
    second: StateSaid
    change: list[float] | None
    differences: list[Change]
    same_best: bool


@Only
class GameAsked(TypedDict, total=False):
    """A game so far. seed: of the dice, any if not given. seat: which player you are, from 1.
    against: one agent, or one for each other player. state: where it begins, an address or fields.
    moves: your answers so far. hints: say what each action is worth."""

    seed: int
    seat: int
    against: str | list[str] | None
    state: str | dict[str, Any] | None
    moves: list[str]
    hints: bool


@Only
class Hint(TypedDict):
    """What an action is worth to you and what it costs; chance: in an optimal strategy."""

    action: str
    value: float
    cost: float
    best: bool
    chance: NotRequired[float]


@Only
class Wanted(TypedDict):
    """What you are asked."""

    actions: list[str]
    hints: list[Hint] | None


@Only
class Decided(TypedDict):
    """A decision of yours and what it cost."""

    text: str
    query: str
    action: str
    best: str
    cost: float


@Only
class GameSaid(TypedDict):
    """A game so far: what happened, where it stands, what is asked next (null: it is over)."""

    seed: int
    seat: int
    seats: list[str]
    said: list[str]
    state: dict[str, Any]
    text: str
    query: str
    drawing: str
    value: list[float] | None
    ask: Wanted | None
    over: bool
    result: str | None
    decisions: list[Decided]
    cost: float


_STRICT = ("strict", "1: refuse a table whose board has changed since (409)", "0")
_DRAWN = ("drawing", "0: without the drawing", "0")
_SEED = ("random", "with no fields: a state drawn by this seed", "7")
_FIELDS = "The fields of a state, as /api/tables/{id} lists them, are parameters too."
_GRID = (
    ("x", "a column", "mine"), ("y", "another", "yours"),
    ("colour", "value_1, …: a player's payoff; margin; best", "value_1"), _STRICT, _SEED,
)  # fmt: skip
PATHS: tuple[tuple[str, str, str, Any, tuple[tuple[str, str, str], ...]], ...] = (
    ("/api/tables", "The tables that are served.", "", Tables, ()),
    ("/api/tables/{id}", "One table, its game and its fields.", "", TableSaid, (_STRICT,)),
    ("/api/tables/{id}/state", "A state: payoffs, actions, outcomes.", _FIELDS, StateSaid,
     (_STRICT, _DRAWN, _SEED)),
    ("/api/tables/{id}/mainline", "The best action and the likeliest outcome, to the end.",
     _FIELDS + " Of equally likely outcomes the middle one for who acts.",
     Line, (("most", "steps, 1 to 200", "20"), _STRICT, _SEED)),
    ("/api/tables/{id}/chart/{name}", "A chart of the game; fields choose its lines.", _FIELDS,
     ListingSaid | HeatmapSaid | CurvesSaid,
     (("reachable", "1: without what no play comes to", "1"), _STRICT)),
    ("/api/tables/{id}/grid", "Payoffs, margins or best actions over two columns.",
     _FIELDS + " COLUMN_from, COLUMN_to, COLUMN_step bound an axis; at most 40,000 cells.",
     GridSaid, _GRID),
    ("/api/compare", "One state in two tables.", _FIELDS, Compared,
     (("first", "a table's id", "ID"), ("second", "another's", "ID"), _STRICT, _DRAWN, _SEED)),
)  # fmt: skip
BATCHES = ("application/x-ndjson", "text/csv", "application/vnd.apache.parquet")


@cache
def described() -> dict[str, Any]:
    """The OpenAPI document."""
    from luckbase.jobs.web.views import VIEWS

    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for path, summary, more, answer, parameters in PATHS:
        paths[path] = {"get": _operation(path, summary, more, _schema(answer, schemas), parameters)}
    batch = _operation(AT_BATCH, "Many states at once, as luckbase query --batch.", _BATCH, None,
                       (("best", "1: the best action and toss-ups too", "1"), _STRICT))  # fmt: skip
    rows = {kind: {"schema": {"type": "string"}} for kind in BATCHES}
    batch["requestBody"] = {"required": True, "content": rows}
    batch["responses"]["200"]["content"] = rows
    paths[AT_BATCH] = {"post": batch}
    game = _operation(AT_PLAY, "A person's game, played from its seed and moves.", "",
                      _schema(GameSaid, schemas), (_STRICT,))  # fmt: skip
    game["requestBody"] = {"content": _json(_schema(GameAsked, schemas))}
    paths[AT_PLAY] = {"post": game}
    assert {view.path for view in VIEWS} | {"/api/tables"} == set(paths)
    _schema(Refusal, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "luckbase", "version": "1", "description": _ABOUT},
        "paths": paths,
        "components": {"schemas": schemas},
    }


_ABOUT = (
    "The exact payoff of every state of a game. Nothing is written. Payoffs are lists over players "
    "in turn order; players count from 1; errors are sentences."
)
_BATCH = "JSON lines, CSV or Parquet in, the same out, with payoff_1, …; at most 1,000,000 rows."
AT_BATCH, AT_PLAY = "/api/tables/{id}/batch", "/api/tables/{id}/play"
_WRONG = {
    "400": "The request is wrong; the sentence says what would be right.",
    "404": "There is no such table, or it does not reach the state.",
    "409": "The table is damaged, or stale and strict=1.",
    "503": "Too much is asked at once; ask again in a moment.",
    "500": "A mistake of luckbase's.",
}
_WRONG_SENT = {
    "403": "A page of another site sends it.",
    "408": "Its body has not come in time.",
}


def _schema(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; those of its parts are added to `schemas`."""
    made = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
    schemas |= made.pop("$defs", {})
    if "title" in made:
        schemas[made["title"]] = made
        return {"$ref": f"#/components/schemas/{made['title']}"}
    return made


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _operation(
    path: str, summary: str, more: str, schema: dict[str, Any] | None,
    parameters: tuple[tuple[str, str, str], ...],
) -> dict[str, Any]:  # fmt: skip
    """An operation of an address; schema: of its answer, if it is JSON."""
    named: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("id", "name") if f"{{{name}}}" in path
    ]  # fmt: skip
    required = {"x", "y", "first", "second"}
    named += [
        {"name": name, "in": "query", "required": name in required, "description": says,
         "schema": {"type": "string"}, "example": example}
        for name, says, example in parameters
    ]  # fmt: skip
    if more.startswith(_FIELDS):
        fields = {"type": "object", "additionalProperties": {"type": "string"}}
        named.append({"name": "fields", "in": "query", "style": "form", "explode": True,
                      "description": _FIELDS, "schema": fields})  # fmt: skip
    wrong = _json({"$ref": "#/components/schemas/Refusal"})
    answers: dict[str, Any] = {"200": {"description": "The answer."}}
    if schema is not None:
        answers["200"]["content"] = _json(schema)
    answers |= {code: {"description": said, "content": wrong} for code, said in _WRONG.items()}
    if path in (AT_BATCH, AT_PLAY):
        answers |= {c: {"description": said, "content": wrong} for c, said in _WRONG_SENT.items()}
    return {"summary": summary, "description": more, "parameters": named, "responses": answers}
