"""The pages: templates for the answers, and the format of numbers, forms and charts.

A page shows the same content as the JSON of its address. A state is an address: a form sends the
fields of a state and `was`, the state shown before, and the server redirects to the address of the
new state. If the new state is refused, the page shows the old answer dimmed, marks the invalid
input and links to the nearest allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader

from luckbase.cluster.answers.examples import nearest_known
from luckbase.jobs.web.pool import Context, Query, Refusal, View, ViewRequest
from luckbase.solver import sentences
from luckbase.solver.errors import CorruptTableError, LuckbaseError
from luckbase.solver.game.capabilities import Follow
from luckbase.solver.scene import around, listed, svg
from luckbase.solver.sentences import Payoffs

if TYPE_CHECKING:
    from luckbase.jobs.web.views import StateView

HERE = Path(__file__).parent
STATIC = HERE / "static"
OF_A_PAGE = ("was", "take", "done", "right", "lost")
"""Parameters that only the page uses, not the answer."""


# --- numbers and words ---------------------------------------------------------------------------


def signed(payoffs: Payoffs, value: float) -> str:
    """Return a difference with its sign: ``+4.1 points``."""
    text = payoffs.change(value)
    if not value or text.startswith("under"):
        return f"±{payoffs.change(0.0)}"
    return f"{'+' if value > 0 else '−'}{text}"


def arrows(text: str) -> str:
    """Return a text with arrows in place of ``->``."""
    return text.replace(" -> ", " → ")


def log_line(line: str) -> str:
    """Return a line of a game's log in words, without the fields of states."""
    line = re.sub(r" \([^()]*->[^()]*\)$", "", line.strip())
    line = re.sub(r"^(the game is over|.* (?:is|are) up|.* choose at once): .*=.*$", r"\1", line)
    return sentences.capital(arrows(line))


def short_names(outcomes: Iterable[Mapping[str, Any]]) -> Callable[[str], str]:
    """Return a function that omits the player from outcomes' names if all have the same one."""
    names = [each["name"] for each in outcomes]
    head = re.match(r"player \d+: ", names[0]) if names else None
    same = head and all(name.startswith(head[0]) and "; " not in name for name in names)
    return lambda name: arrows(name.removeprefix(head[0]) if head and same else name)


def board_title(table: Mapping[str, Any]) -> str:
    """Return a board's title without the name of its game in front."""
    head = f"{table['game_title']}, ".lower()
    title = str(table["title"])
    return sentences.capital(title[len(head) :] if title.lower().startswith(head) else title)


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[str, str]:
    """Return the difference between two tables in words: their options or their boards."""

    def options(table: Mapping[str, Any]) -> dict[str, Any]:
        parts = [part for part in table["board_file"].values() if isinstance(part, dict)]
        return {name: value for part in parts for name, value in part.items()} | table["options"]

    first_options, second_options = options(first), options(second)
    named = {**first["options"], **second["options"]}
    names = [name for name in named if first_options.get(name) != second_options.get(name)]
    if first["board"] != second["board"] or not names:
        return board_title(first), board_title(second)

    def differing(options: Mapping[str, Any]) -> str:
        return sentences.fields({name: options[name] for name in names if name in options}, ", ")

    return differing(first_options), differing(second_options)


def words(view: StateView) -> str:
    """Return a state as a question: ``You have $8,000 and 2 spins, against $0 and $3,000.``"""
    follow, up = view.game.get(Follow), (view.moves.answer.to_act or 1) - 1
    if follow is None:
        return view.scene.about
    players = [f"player {i + 1}" for i in range(view.game.players)]
    position = follow.place(players, view.moves.numbers)
    desks = [follow.desk(position, i) for i in range(view.game.players)]
    others = [desk.replace(", ", " with ", 1) for i, desk in enumerate(desks) if i != up]
    return f"You have {listed(desks[up].split(', '))}, against {listed(others)}."


def pairs(view: Mapping[str, Any]) -> list[list[tuple[float | None, str | None]]]:
    """Return the payoff to player 1 for each pair of choices, one row for each of their choices,
    with the address of the resulting state if there is only one."""
    mine, theirs = view["strategies"]
    pairs_found: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for each in view["outcomes"]:
        pairs_found.setdefault(tuple(each["pair"]), []).append(each)

    def cell(ways: list[Mapping[str, Any]]) -> tuple[float | None, str | None]:
        if not ways or any(each["value"] is None for each in ways):
            return None, None
        paid = sum(each["weight"] * (each["value"][0] + each["reward"][0]) for each in ways)
        return paid, ways[0]["query"] if len(ways) == 1 else None

    return [
        [cell(pairs_found.get((i, j), [])) for j in range(len(theirs))] for i in range(len(mine))
    ]


# --- forms ---------------------------------------------------------------------------------------


def corrections(field: Mapping[str, Any], value: str) -> list[str]:
    """Return the allowed numbers nearest to the value of an input; none if it is allowed."""
    low, step, high = field["min"], field["step"], field["max"]
    is_name = field["kind"] == "name" or isinstance((field["choices"] or [0])[0], str)
    if is_name or (field["blank"] and not value):
        return []
    if not re.fullmatch(r"-?\d{1,9}", value):
        return [str(low)]
    below = int(value) // step * step
    top = below + step if high is None else high
    if below == int(value) and low <= below <= top:
        return []
    return [*dict.fromkeys(str(min(max(each, low), top)) for each in (below, below + step))]


def boxes_of(field: Mapping[str, Any], given: Context, refused: bool) -> list[dict[str, Any]]:
    """Return the inputs of a field that is not a set: the name and value of each, and for an
    invalid value the nearest `(value, address)`. refused: the field was refused."""
    name, length = field["name"], field["length"]
    columns = [name] if length == 1 else [f"{name}_{i + 1}" for i in range(length)]
    default = "" if field["default"] is None else str(field["default"])
    values = [str(given.get(column, default)) for column in columns]
    if name in given:
        texts = sentences.listed(given[name]).split(",")
        values = [text.strip() for text in texts[:length]] + [""] * (length - len(texts))
    inputs = dict(zip(columns, values, strict=True))
    right = {column: corrections(field, value) if refused else []
             for column, value in inputs.items()}  # fmt: skip
    shared = {n: v for n, v in given.items() if n != name} | inputs
    return [
        {"name": column, "value": value,
         "wrong": bool(right[column]) or (refused and not any(right.values())),
         "fixes": [(each, urlencode(shared | {column: each}, safe=",")) for each in right[column]]}
        for column, value in inputs.items()
    ]  # fmt: skip


def form(info: Mapping[str, Any], given: Context, wrong: str | None) -> list[dict[str, Any]]:
    """Return the fields of a state with their inputs, or the values of a set. wrong: the name of
    the field that was refused."""
    rows = []
    for field in info["fields"]:
        name, refused = field["name"], field["name"] == wrong
        values = sentences.listed(given.get(name, "")).split(",")
        is_set = field["kind"] == "set"
        filled = {"wrong": refused, "values": values} if is_set else {}
        rows.append(field | (filled or {"boxes": boxes_of(field, given, refused)}))
    return rows


# --- templates -----------------------------------------------------------------------------------


def address_of(given: Mapping[str, object], **more: object) -> str:
    """Return parameters as a URL query, without those that are None or empty."""
    there = {n: v for n, v in {**given, **more}.items() if v not in (None, "", [])}
    return urlencode(there, doseq=True, safe=",", quote_via=quote)


environment = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
environment.filters |= {
    "bound": sentences.bound, "capital": sentences.capital,
    "count": sentences.count, "duration": sentences.duration, "fields": sentences.fields,
    "log_line": log_line, "percent": sentences.percent, "size": sentences.size,
    "spoken": sentences.spoken,
}  # fmt: skip
environment.globals |= {
    "address_of": address_of, "around": around, "board_title": board_title,
    "differences": differences, "form": form, "listed": sentences.listed, "many": sentences.many,
    "pairs": pairs,
    "short_names": short_names, "signed": signed, "svg": svg, "words": words,
}  # fmt: skip


def render(template: str, **context: Any) -> str:
    """Return a page as HTML."""
    return environment.get_template(template).render(context)


def error_page(depth: int, refusal: Refusal) -> str:
    """Return the page of a refusal that no other page shows."""
    return render("error.html", root=_root(depth), refusal=refusal, info=None)


def _root(depth: int) -> str:
    """Return the address of the home page from a page of this depth below it."""
    return "../" * depth or "./"


def page(
    view: View, view_request: ViewRequest, given: Sequence[tuple[str, str]], depth: int
) -> tuple[int, str]:
    """Return the status and the page of a request; or 303 and the address of its page. Raises
    LuckbaseError for a table that cannot be read.

    given: the parameters.
    depth: of the address below the home page.
    """
    of_page = {name: value for name, value in given if name in OF_A_PAGE and value}
    query = view_request.query = Query([each for each in given if each[0] not in OF_A_PAGE], view)
    context = _context(view, view_request, depth) | {"of_page": of_page}

    def answer() -> None:
        result = view.answer(view_request)
        context.update(result=result, view=result.as_json())

    try:
        answer()
    except LuckbaseError as error:
        if isinstance(error, CorruptTableError) or not view.takes_state:
            raise
        context["refusal"] = view_request.refusal(error)
        if view.template == "state.html" and query.state and context["refusal"].status == 404:
            context["nearest"] = [
                (f"{name.replace('_', ' ')} {state[name]}", urlencode(state, safe=","))
                for name, state in nearest_known(view_request.table, query.state)
            ]
        if "was" in of_page:
            view_request.query = Query(parse_qsl(of_page["was"], keep_blank_values=True), view)
            answer()
    refusal: Refusal | None = context["refusal"]
    if refusal is None and not {"was", "sentence"}.isdisjoint({*of_page, *query}):
        return 303, f"{context['here']}?{context['view']['query']}"
    if view.more is not None:
        context |= view.more(view_request, context)
    return refusal.status if refusal else 200, render(view.template, **context)


def _context(view: View, view_request: ViewRequest, depth: int) -> Context:
    """Return the values of a template before its answer. depth: of the address below the home
    page."""
    context: Context = {
        "root": _root(depth), "at": "../" * (depth - 2), "given": view_request.query,
        "path": view_request.path, "here": view.template[:-5], "info": None,
        "refusal": None, "view": None, "result": None, "nearest": [],
    }  # fmt: skip
    if id := view_request.path.get("id"):
        context["info"] = view_request.info().as_json()
        context["payoffs"] = view_request.table.game.payoffs
        context["at"] = context["at"] or ("" if depth == 2 else f"{id}/")
    return context
