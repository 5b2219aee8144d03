"""A game that was written down, as a page in one file: ``luckbase advise --out PAGE.html``.

The chances of all players line by line, as a chart; every line with what it cost; the accuracy of
each player. The page is made as a report is (`jobs.web.report`): it loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from luckbase.cluster import words
from luckbase.cluster.play.episode import Decided, Episode
from luckbase.jobs.web.report import Detail, ReportChart, chart_section, table, whole_page
from luckbase.solver.charts import Curve, Curves
from luckbase.solver.errors import need


def page(of: Episode) -> str:
    """The page. Raises OptionError where there is no matplotlib."""
    need("a page", "matplotlib", extra="report")
    body = ["<main>", *_head(of), *_chart(of), *_lines(of), *_missing(of), "</main>"]
    return whole_page(f"luckbase: {of.title}", "".join(body))


def _head(of: Episode) -> Iterator[str]:
    options = words.fields(of.origin.options, ", ") or "all at their defaults"
    yield f"<header><h1>{escape(of.title)}</h1><p>"
    yield (
        f"Board <b>{escape(of.origin.board)}</b>, options: {escape(options)}. Costs are of the "
        f"{escape(of.payoff)}, against the best action, all playing the best from there on. The "
        "accuracy is the share that a player kept of what they could have lost.</p></header>"
    )
    yield table(*of.summary())


def _chart(of: Episode) -> Iterator[str]:
    """The payoffs of all players before each line."""
    known = [(each.line, each.value) for each in of.lines if each.value is not None]
    if of.end is not None and of.lines:
        known.append((of.lines[-1].line + 1, of.end))
    if len(known) < 2:
        return
    values = np.array([value for _, value in known])
    curves = tuple(
        Curve(name, f"player_{i + 1}", values[:, i]) for i, name in enumerate(of.players)
    )
    chart = Curves(
        f"{of.payoff}, line by line".capitalize(), "Before each line of the game.", "line",
        np.array([line for line, _ in known]), curves, "line", of.payoff,
        limits=(0.0, 1.0) if of.chances else None,
    )  # fmt: skip
    command = "luckbase advise --file EPISODE --json"
    yield "<h2>How it went</h2>"
    yield chart_section(ReportChart("episode", "line by line", chart), command, Detail())


def _lines(of: Episode) -> Iterator[str]:
    yield "<h2>Line by line</h2>"
    rows = [[str(each.line), each.text, *_said(of, each)] for each in of.lines]
    yield table(["line", "what happened", "cost", "better", "why"], rows, "lines")
    yield "<h2>The end</h2>" if of.over else "<h2>Where it ends</h2>"
    yield table(["player", "has"], [list(each) for each in of.players.items()], "text")


def _said(of: Episode, line: Decided) -> list[str]:
    if line.action is None:
        return ["", "", ""]
    if line.cost is None:
        return ["no price", "", line.unpriced or ""]
    return [of.cost(line.cost), (line.best or "") if line.cost else "", line.why]


def _missing(of: Episode) -> Iterator[str]:
    if missing := of.unpriced():
        yield "<h2>Without a price</h2><ul>"
        yield from (f"<li>{escape(each)}</li>" for each in missing)
        yield "</ul>"
