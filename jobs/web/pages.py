"""The pages: templates for the answers, and the format of numbers, forms and charts.

A page shows the same content as the JSON of its address. A state is an address: a form sends the
fields of a state and `was`, the state shown before, and the server redirects to the address of the
new state. If the new state is refused, the page shows the old answer dimmed, marks the invalid
input and links to the nearest allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from luckbase.cluster.answers.charts import for_page
from luckbase.cluster.play.game import new_seed
from luckbase.jobs.web import tables
from luckbase.jobs.web.charts import cell_state
from luckbase.jobs.web.http import ApiRequest, Given, QueryParams, Refusal, given, refusal_of
from luckbase.jobs.web.pictures import around, svg
from luckbase.jobs.web.states import StateView, state_answer
from luckbase.solver import sentences
from luckbase.solver.charts import Curves, Heatmap, Listing
from luckbase.solver.errors import LuckbaseError, MissingTableError
from luckbase.solver.game.capabilities import Follow
from luckbase.solver.result import Result
from luckbase.solver.scene import listed
from luckbase.solver.sentences import Payoffs

if TYPE_CHECKING:
    from luckbase.jobs.web.pool import TablePool

HERE = Path(__file__).parent
STATIC = HERE / "static"
WIDTHS = {"desktop": 560, "phone": 300}
"""Widths of a chart's panel, for desktops and phones."""
OF_A_PAGE = ("was", "take", "done", "right", "lost", "drawing")
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


def told(line: str) -> str:
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

    one, two = options(first), options(second)
    named = {**first["options"], **second["options"]}
    names = [name for name in named if one.get(name) != two.get(name)]
    if first["board"] != second["board"] or not names:
        return board_title(first), board_title(second)
    parts = [{name: of[name] for name in names if name in of} for of in (one, two)]
    return sentences.fields(parts[0], ", "), sentences.fields(parts[1], ", ")


def pairs(view: Mapping[str, Any]) -> list[list[tuple[float | None, str | None]]]:
    """Return the payoff to player 1 for each pair of choices, one row for each of their choices,
    with the address of the resulting state if there is only one."""
    mine, theirs = view["strategies"]
    found: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for each in view["outcomes"]:
        found.setdefault(tuple(each["pair"]), []).append(each)

    def cell(ways: list[Mapping[str, Any]]) -> tuple[float | None, str | None]:
        if not ways or any(each["value"] is None for each in ways):
            return None, None
        paid = sum(each["weight"] * (each["value"][0] + each["reward"][0]) for each in ways)
        return paid, ways[0]["query"] if len(ways) == 1 else None

    return [[cell(found.get((i, j), [])) for j in range(len(theirs))] for i in range(len(mine))]


# --- forms ---------------------------------------------------------------------------------------


def is_wrong(field: Mapping[str, Any], value: str) -> bool:
    """True if a value is not allowed in an input of a field."""
    if field["kind"] == "name" or (field["choices"] and isinstance(field["choices"][0], str)):
        return False
    if not re.fullmatch(r"-?\d{1,9}", value):
        return not (field["blank"] and not value)
    number, high = int(value), field["max"]
    allowed = field["min"] <= number and (high is None or number <= high)
    return not allowed or number % field["step"] != 0


def nearest_values(field: Mapping[str, Any], value: str) -> list[str]:
    """Return the allowed values nearest to an invalid one."""
    low, step, high = field["min"], field["step"], field["max"]
    if not re.fullmatch(r"-?\d{1,9}", value):
        return [str(low)]
    below = int(value) // step * step
    top = below + step if high is None else high
    return [*dict.fromkeys(str(min(max(each, low), top)) for each in (below, below + step))]


def boxes_of(field: Mapping[str, Any], said: Given, refused: bool) -> list[dict[str, Any]]:
    """Return the inputs of a field that is not a set: the name and value of each, and for an
    invalid value the nearest `(value, address)`. refused: the field was refused."""
    name, length = field["name"], field["length"]
    columns = [name] if length == 1 else [f"{name}_{i + 1}" for i in range(length)]
    default = "" if field["default"] is None else str(field["default"])
    values = [str(said.get(column, default)) for column in columns]
    if name in said:
        texts = sentences.listed(said[name]).split(",")
        values = [text.strip() for text in texts[:length]] + [""] * (length - len(texts))
    wrong = [refused and is_wrong(field, value) for value in values]
    shared = {n: v for n, v in said.items() if n != name} | dict(zip(columns, values, strict=True))

    def fixes(column: str, value: str) -> list[tuple[str, str]]:
        return [(each, urlencode(shared | {column: each}, safe=","))
                for each in nearest_values(field, value)]  # fmt: skip

    return [
        {"name": column, "value": value, "wrong": bad or (refused and not any(wrong)),
         "fixes": fixes(column, value) if bad else []}
        for column, value, bad in zip(columns, values, wrong, strict=True)
    ]  # fmt: skip


def form(info: Mapping[str, Any], said: Given, wrong: str | None) -> list[dict[str, Any]]:
    """Return the fields of a state with their inputs, or the values of a set. wrong: the name of
    the field that was refused."""

    def filled(field: Mapping[str, Any]) -> dict[str, Any]:
        name, refused = field["name"], field["name"] == wrong
        if field["kind"] == "set":
            values = sentences.listed(said.get(name, "")).split(",")
            return {**field, "wrong": refused, "values": values}
        return {**field, "boxes": boxes_of(field, said, refused)}

    return [filled(field) for field in info["fields"]]


# --- templates -----------------------------------------------------------------------------------


def pictures(chart: Heatmap | Curves) -> dict[str, str]:
    """Return a picture as SVG for each of `WIDTHS`."""
    return {name: for_page(chart, f"chart-{name}", width) for name, width in WIDTHS.items()}


def address_of(said: Mapping[str, object], **more: object) -> str:
    """Return parameters as a URL query, without those that are None or empty."""
    there = {n: v for n, v in {**said, **more}.items() if v not in (None, "", [])}
    return urlencode(there, doseq=True, safe=",", quote_via=quote)


environment = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
environment.filters |= {
    "bound": sentences.bound, "capital": sentences.capital,
    "count": sentences.count, "duration": sentences.duration, "fields": sentences.fields,
    "percent": sentences.percent, "size": sentences.size, "spoken": sentences.spoken, "told": told,
}  # fmt: skip
environment.globals |= {
    "address_of": address_of, "around": around, "board_title": board_title,
    "form": form, "listed": sentences.listed, "many": sentences.many, "pairs": pairs,
    "short_names": short_names, "signed": signed, "svg": svg,
}  # fmt: skip


def render(template: str, **context: Any) -> str:
    """Return a page as HTML."""
    return environment.get_template(template).render(context)


def depth_of(request: Request) -> int:
    """Return the depth of an address below the home page."""
    path, root = request.scope["raw_path"], request.scope.get("root_path", "")
    return int(path.count(b"/") - root.count("/") - 1)


def error_page(request: Request, refusal: Refusal) -> Response:
    """Return the page of a refusal that no other page shows."""
    root = "../" * depth_of(request) or "./"
    page = render("error.html", root=root, refusal=refusal, info=None)
    return HTMLResponse(page, refusal.status)


Context = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """A template for an address that also returns JSON.

    prepare: adds omitted parameters, from the table's facts.
    more: returns further values for the template, from its context.
    """

    template: str
    prepare: Callable[[TablePool, Context], None] | None = None
    more: Callable[[TablePool, Context], Context] | None = None

    def respond(
        self, pool: TablePool, request: Request, params: type[QueryParams],
        answer: Callable[[TablePool, ApiRequest[Any]], Result], long: bool,
    ) -> Response:  # fmt: skip
        """Return the page of a request. Raises LuckbaseError for a table that cannot be read,
        LongAnswer if it needs a search and is not `long`."""
        context = self._context(pool, request, params)
        if self.prepare is not None:
            self.prepare(pool, context)

        def ask(said: Given) -> None:
            result = answer(pool, ApiRequest(params.read(said), request.path_params, long))
            context.update(result=result, view=result.as_json())

        said, of_page, refusal = context["said"], context["of_page"], None
        try:
            ask(said)
        except LuckbaseError as error:
            context["refusal"] = refusal = refusal_of(request, error)
            if of_page.get("was"):
                ask(dict(parse_qsl(of_page["was"], keep_blank_values=True)))
        if refusal is None and not {"was", "random", "sentence"}.isdisjoint({*of_page, *said}):
            return RedirectResponse(f"{self.template[:-5]}?{state_address(context)}", 303)
        if self.more is not None:
            context.update(self.more(pool, context))
        return HTMLResponse(render(self.template, **context), refusal.status if refusal else 200)

    def _context(self, pool: TablePool, request: Request, params: type[QueryParams]) -> Context:
        """Return the parameters of a request and the facts of its table."""
        said = {name: value for name, value in given(request, params.lists).items() if value}
        of_page = {name: said.pop(name) for name in OF_A_PAGE if name in said}
        depth = depth_of(request)
        context: Context = {
            "root": "../" * depth or "./", "at": "../" * (depth - 2), "said": said,
            "of_page": of_page, "path": request.path_params, "here": self.template[:-5],
            "info": None, "added": {}, "refusal": None, "view": None, "result": None,
        }  # fmt: skip
        if id := request.path_params.get("id"):
            context["info"], context["payoffs"] = facts(pool, id)
            context["at"] = context["at"] or ("" if depth == 2 else f"{id}/")
        return context


def state_address(context: Context) -> str:
    """Return the full address of the state that a page shows."""
    view = context["view"]
    if context["here"] != "compare":
        return str(view["query"])
    return f"second={quote(context['said']['second'])}&{view['first']['query']}"


def facts(pool: TablePool, id: str) -> tuple[dict[str, Any], Payoffs]:
    """Return the facts of a table as JSON, and the format of its payoffs."""
    listed = tables.summary(pool, pool.find(id))

    def question(table: Any) -> tuple[dict[str, Any], Payoffs]:
        game = table.game
        info = tables.info(listed, table).as_json()
        return info, game.payoffs

    return pool.ask(id, question)


# --- single pages --------------------------------------------------------------------------------


def complete(pool: TablePool, context: Context) -> None:
    """Complete a partial state with the values of the table's first state."""
    info, said = context["info"], context["said"]
    if not info["start"] or not {each["name"] for each in info["fields"]}.intersection(
        re.sub(r"_\d+$", "", name) for name in said
    ):
        return
    for each in info["fields"]:
        name = each["name"]
        names = {name, *(f"{name}_{i + 1}" for i in range(each["length"]))}
        if each["default"] is None and names.isdisjoint(said) and name in info["start"]:
            context["added"][name] = said[name] = sentences.listed(info["start"][name])


def with_seed(pool: TablePool, context: Context) -> None:
    """Draw a new decision each time."""
    context["said"].setdefault("seed", str(new_seed()))


def with_axes(pool: TablePool, context: Context) -> None:
    """Use the first two columns as axes by default."""
    for axis, column in zip("xy", context["info"]["axes"], strict=False):
        context["said"].setdefault(axis, column["name"])


def with_second(pool: TablePool, context: Context) -> None:
    """Compare with the most similar table of the same game by default."""
    info = context["info"]
    others = [tables.summary(pool, each).as_json() for each in pool.listed()]
    context["rivals"] = rivals = sorted(
        (each for each in others if each["game"] == info["game"] and each["id"] != info["id"]
         and each["state"] not in ("damaged", "refused")),
        key=lambda each: (each["board"] != info["board"],
                          len({*each["options"].items()} ^ {*info["options"].items()})),
    )  # fmt: skip
    context["said"].setdefault("second", rivals[0]["id"] if rivals else info["id"])


def draw(pool: TablePool, context: Context) -> Context:
    """Return a chart's pictures, and the state that its cells share."""
    result = context["result"]
    if result is None or isinstance(result.chart, Listing):
        return {"svgs": {}, "cells": None}
    cells = None
    if isinstance(result.chart, Heatmap):
        id = context["info"]["id"]
        cells = pool.ask(id, lambda table: cell_state(table.game, result.chart))
    return {"svgs": pictures(result.chart), "cells": cells}


def names(pool: TablePool, context: Context) -> Context:
    """Return names that distinguish the tables of a comparison."""
    if context["view"] is None:
        return {"second": None, "names": ("", "")}
    second, _ = facts(pool, context["said"]["second"])
    return {"second": second, "names": differences(context["info"], second)}


def home(pool: TablePool, context: Context) -> Context:
    """Return the tables by game, and a question from the largest."""
    listed = context["view"]["tables"]
    games: dict[str, list[dict[str, Any]]] = {}
    for each in listed:
        games.setdefault(each["game"], []).append(each)
    usable = [each for each in listed if each["state"] == "complete" and each["states"]]
    asked: Context = {"question": None}
    for each in sorted(usable, key=lambda each: -each["states"]):
        with suppress(LuckbaseError):
            info, _ = facts(pool, each["id"])
            asked = {"question": question(pool, info), "info": info}
            break
    return {**asked, "games": games, "running": any(each["running"] for each in listed)}


def question(pool: TablePool, info: Mapping[str, Any]) -> Context:
    """Return a decision of a table in words, with its drawing, and the table's other questions."""
    drawn = re.compile("a |another |where ")
    own = [each for each in info["examples"] if not drawn.match(each["label"])]

    def find(table: Any) -> Context:
        # The game's own questions first, then where plays begin.
        for each in [*own, *(one for one in info["examples"] if one not in own)]:
            state = dict(parse_qsl(each["query"], keep_blank_values=True))
            with suppress(LuckbaseError):
                view = state_answer(table, state)
                answer = view.moves.answer
                if answer.to_act and len(answer.actions) > 1 and not answer.toss_up:
                    said = view.as_json()
                    others = [one for one in own if one is not each]
                    return {"view": said, "scene": view.scene, "words": words(table, view),
                            "others": others}  # fmt: skip
        raise MissingTableError(f"{info['id']}: has no question")

    return pool.ask(info["id"], find)


def words(table: Any, view: StateView) -> str:
    """Return a state as a question: ``You have $8,000, 2 spins, against $0 and $3,000.``"""
    follow, up = table.game.get(Follow), (view.moves.answer.to_act or 1) - 1
    if follow is None:
        return "" if view.scene is None else view.scene.about
    players = [f"player {i + 1}" for i in range(table.game.players)]
    position = follow.place(players, view.moves.numbers)
    desks = [follow.desk(position, i) for i in range(table.game.players)]
    others = [desk.replace(", ", " with ", 1) for i, desk in enumerate(desks) if i != up]
    return f"You have {desks[up].replace(', ', ' and ')}, against {listed(others)}."
