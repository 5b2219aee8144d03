"""A table in one file for readers who have nothing installed: ``luckbase publish``.

The page loads nothing and has no script. Its content security policy allows only its own style, by
its hash. The page has at most `MAX_BYTES`: long charts show fewer of their numbers, with the
command that prints all.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.cluster.charts import for_page
from luckbase.cluster.table import FORMAT, find
from luckbase.cluster.table.manifest import Goal, board_command, solve_command, solver_version
from luckbase.cluster.table.why import Payoffs
from luckbase.jobs.terminal import write_file
from luckbase.solver import sentences
from luckbase.solver.board.file import name_of
from luckbase.solver.board.model import canonical
from luckbase.solver.charts import Chart, Curves, Heatmap
from luckbase.solver.errors import LuckbaseError, MissingTableError, need
from luckbase.solver.game.capabilities import Charts, scene_of

if TYPE_CHECKING:
    from luckbase.cluster.table.table import Table
    from luckbase.cluster.table.verify import Verdict

MAX_BYTES = 2_000_000


@dataclass(frozen=True)
class Detail:
    """How many of a chart's numbers the page shows."""

    lines: int = 25
    rows: int = 400
    """Of a list, as its lines."""
    cells: int = 441
    """Of a picture's table."""


DETAILS = (
    Detail(),
    Detail(lines=20, rows=100, cells=225),
    Detail(lines=10, rows=20, cells=100),
    Detail(lines=3, rows=0, cells=25),
)
"""The first one that keeps the page below `MAX_BYTES` is used."""


@dataclass(frozen=True)
class Report:
    """A report.

    html: the content of the file.
    verdict: of the verification; None without one.
    charts: names of its charts.
    """

    html: str
    verdict: Verdict | None
    charts: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the verification found no fault."""
        return self.verdict is None or self.verdict.ok

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the file atomically. Return its number of bytes."""
        return write_file(path, self.html.encode())

    def _repr_html_(self) -> str:
        """The report in a notebook, in its own frame."""
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="700"></iframe>'


def report_on(of: Table, sample: int | None = 10_000, *, verify: bool = True) -> Report:
    """Return the report on an open table. sample: rows that are verified, None for all.

    Raises CorruptTableError if a part of the table cannot be read, OptionError if jinja2 or
    vl-convert is not installed; faults that `verify` finds are in the report.
    """
    need("a page", "jinja2", "vl_convert", extra="report")
    from luckbase.jobs.web.pages import render

    verdict = of.verify(sample) if verify else None
    charts, why_none = _charts(of)
    context = {
        **_table(of), **_board(of), **_again(of, sample), "verdict": verdict, "charts": charts,
        "why_none": why_none or "the game has none", **_style(),
        "which": "all" if sample is None or sample >= of.rows else "drawn evenly from all",
    }  # fmt: skip
    context["facts"] += [("verdict", _in_a_word(verdict))]
    html = ""
    for detail in DETAILS:
        html = render("report.html", **context, detail=detail)
        if len(html.encode()) <= MAX_BYTES:
            break
    return Report(html, verdict, tuple(chart.name for chart in charts))


# --- what the page shows -------------------------------------------------------------------------


Context = dict[str, Any]


def _in_a_word(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not verified"
    return "verified" if verdict.ok else "FAULTS FOUND"


def _style() -> Context:
    """Return the style, and the policy that allows only this style."""
    from luckbase.jobs.web.pages import STATIC

    sheets = [(STATIC / name).read_text(encoding="utf-8") for name in ("scene.css", "style.css")]
    style = "".join(sheets).strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {
        "style": style,
        "policy": f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
                  "base-uri 'none'; form-action 'none'",
    }  # fmt: skip


def _table(of: Table) -> Context:
    """Return the facts of the table, its questions and the payoffs of the start, or of the
    likeliest starts that it answers."""
    game, manifest, left, files = of.game, of.manifest, "", "none"
    title, states, size = game.board.title, of.rows, 0
    if manifest is not None:
        title, states, size = find.title_of(manifest), manifest.rows, manifest.bytes
        if open_goals := sum(not manifest.is_done(goal) for goal in manifest.goals):
            left = f"{open_goals} of the {sentences.many(len(manifest.goals), 'solve')}"
        if manifest.files:
            files = f"{len(manifest.files):,}, {sentences.size(size)}"
    payoffs, starts, rows = Payoffs(game.payoff_name, game.pays_chances), game.starts(), []
    with suppress(LuckbaseError):
        for chance, start in starts[:5]:
            state = game.describe(start)
            odds = f"a start, {100 * chance:.3g} %: {sentences.fields(state)}"
            values = map(payoffs.text, of.ask(state).value)
            rows.append(["the start" if len(starts) == 1 else odds, *values])
    return {
        "title": title or game.board.name, "game": game.board.game, "board": game.board.name,
        "payoffs": payoffs, "payoff_name": game.payoff_name, "stale": of.origin.stale,
        "options": sentences.fields(of.origin.options, ", "), "left": left, "bytes": size,
        "questions": find.opening_answers(of), "starts": rows,
        "players": [f"player {i + 1}" for i in range(game.players)],
        "facts": [("states", sentences.count(states)), ("files", files),
                  ("payoffs good to", sentences.bound(of.error))],
    }  # fmt: skip


def _board(of: Table) -> Context:
    """Return the board in sections, and a state of it to draw."""
    state: Mapping[str, Any] | None = None
    what = ""
    if starts := of.game.starts():
        state = of.game.describe(starts[0][1])
        what = "the start" if len(starts) == 1 else "the likeliest start"
    elif questions := find.opening_answers(of):
        state, what = questions[0].state, questions[0].title
    elif roots := find.roots_in(of):
        state, what = roots[0], "solved below this"
    form = canonical(of.game.board)
    return {
        "scene": None if state is None else scene_of(of.game, state),
        "where": "" if state is None else f"{sentences.capital(what)}: {sentences.fields(state)}",
        "sections": [
            (name, [[key, sentences.listed(value)] for key, value in section.items()])
            for name, section in _sections(form)
        ],
        "file": board_file(form),
    }  # fmt: skip


def _sections(form: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a board's canonical form by the sections of its file; the values before the first
    section have no name."""
    parts = [(name, value) for name, value in form.items() if isinstance(value, dict)]
    return [("", {name: form[name] for name in form if not isinstance(form[name], dict)}), *parts]


def _again(of: Table, sample: int | None) -> Context:
    """Return the commands and the versions that make the same table."""
    import numba
    import pyarrow

    name, goals = _name(of), () if of.manifest is None else of.manifest.goals
    solved_by = [
        solve_command(goal, of.game, words="luckbase solve", file=_file(goal)) for goal in goals
    ]
    entries = [] if of.manifest is None else [*of.manifest.files.values()]
    seconds: dict[str, float] = {}
    for what, spent_there in chain.from_iterable(entry.seconds.items() for entry in entries):
        seconds[what] = seconds.get(what, 0.0) + spent_there
    spent = ", ".join(f"{what} {sentences.duration(s)}" for what, s in seconds.items())
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    solvers = ", ".join(sorted({e.solver_version for e in entries})) or "–"
    return {
        "commands": {
            "chart": f"luckbase chart {name} --what ",
            "all": [
                *dict.fromkeys(solved_by or ["luckbase solve BOARD"]),
                f"luckbase verify {name} {'--all' if sample is None else f'--sample {sample}'}",
                f"luckbase publish {name} page.html",
            ],
        },
        "origin": [
            ["rules identity", f"{of.identity} (version {of.game.rules_version} of the rules)"],
            ["table format", str(FORMAT)], ["solved by luckbase", solvers],
            ["time of one core", spent or "–"],
            ["this page", f"luckbase {solver_version()}, {today}"],
            ["with", f"Python {platform.python_version()}, numpy {np.__version__}, numba "
                     f"{numba.__version__}, pyarrow {pyarrow.__version__}, {platform.machine()}"],
        ],
        "version": solver_version(), "identity": of.identity, "date": today,
    }  # fmt: skip


def _name(of: Table) -> str:
    """The table as a command names it."""
    origin = None if of.manifest is None else of.manifest.origin
    if origin is None:
        return "BOARD" if of.manifest is None else str(of.where)
    return board_command(_file(origin), origin.settings, of.game.board.game, words="")


def _file(goal: Goal) -> str:
    """The board file of a goal: by its name, or its place under a folder ``boards``."""
    parts = Path(name_of(goal.board_file or "BOARD")).parts
    last = len(parts) - parts[::-1].index("boards") - 1 if "boards" in parts else 0
    return str(Path(*parts[last:]))


def board_file(form: Mapping[str, Any]) -> str:
    """A board's canonical form as a board file (TOML)."""

    def key(name: str) -> str:
        return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)

    text = []
    for name, section in _sections(form):
        text += ["", f"[{key(name)}]"] if name else []
        text += [f"{key(each)} = {json.dumps(section[each])}" for each in section
                 if not isinstance(section[each], dict)]  # fmt: skip
    return "\n".join(text) + "\n"


# --- charts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReportChart:
    """A chart of a report."""

    name: str
    """On the command line."""
    shows: str
    """What, for people."""
    chart: Chart | str
    """Or why there is none."""
    number: int = 0
    """Of the charts on the page."""

    @cached_property
    def picture(self) -> str:
        """Drawn once, however often the page is rendered; "" of a list."""
        if not isinstance(self.chart, Heatmap | Curves):
            return ""
        return for_page(self.chart, f"chart-{self.number}")


def _charts(of: Table) -> tuple[list[ReportChart], str]:
    """Return the game's charts of the table, pictures first, and why one is left out."""
    charts: list[ReportChart] = []
    why = ""
    try:
        kinds = of.game.need(Charts).kinds
    except LuckbaseError as error:
        return [], str(error)
    for kind in sorted(kinds, key=lambda kind: not kind.picture):
        try:
            of.check_chart(kind)
        except LuckbaseError as error:
            why = why or str(error)
            continue
        try:
            drawn: Chart | str = of.chart(kind.name)
        except MissingTableError as error:
            why = why or str(error)
            continue
        except LuckbaseError as error:
            drawn = str(error)
        charts.append(ReportChart(kind.name, kind.shows, drawn, len(charts)))
    return charts, why
