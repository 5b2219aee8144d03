"""A table in one file to send to somebody who has nothing installed: ``luckbase publish``.

The page loads nothing and has no script. Its content security policy allows only its own style, by
its hash. The page has at most `MAX_BYTES`: long charts show fewer of their numbers, with the
command that prints all. `cluster.charts` draws the charts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
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
from luckbase.cluster.table.find import Question
from luckbase.cluster.table.manifest import Goal, board_command, solve_command, solver_version
from luckbase.jobs.terminal import write_file
from luckbase.jobs.web.pictures import STYLE as SCENE_STYLE
from luckbase.jobs.web.pictures import svg
from luckbase.solver import sentences
from luckbase.solver.board.file import name_of
from luckbase.solver.board.model import canonical
from luckbase.solver.charts import Chart, Curves, Heatmap, Listing
from luckbase.solver.errors import LuckbaseError, MissingTableError, need
from luckbase.solver.game.capabilities import Charts, scene_of
from luckbase.solver.sentences import capital, html_table

if TYPE_CHECKING:
    from luckbase.cluster.table.table import Table
    from luckbase.cluster.table.verify import Verdict

MAX_BYTES = 2_000_000
STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class Detail:
    """How much of a chart's numbers stands in the page."""

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
"""The first that keeps the page below `MAX_BYTES` is taken."""


@dataclass(frozen=True)
class Report:
    """A report: `html`, the file as text; verdict: of the verification, None where there was none;
    charts: the names of those in it."""

    html: str
    verdict: Verdict | None
    charts: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong."""
        return self.verdict is None or self.verdict.ok

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the file, all of it or nothing; returns its bytes."""
        return write_file(path, self.html.encode())

    def _repr_html_(self) -> str:
        """The report in a notebook, in a frame of its own."""
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="700"></iframe>'


def report_on(of: Table, sample: int | None = 10_000, *, verify: bool = True) -> Report:
    """The report on an open table. sample: rows that are verified, None for all.

    Raises CorruptTableError where what it is made of can not be read, OptionError if
    vl-convert is not installed; what `verify` finds wrong stands in the report.
    """
    need("a page", "vl_convert", extra="report")
    of.need_payoffs("a report")
    verdict = of.verify(sample) if verify else None
    questions, (charts, why_none), name = find.opening_answers(of), _charts(of), _name(of)
    before = [*_head(of, verdict), *_questions(of, questions), *_board(of, questions)]
    before.append(
        "<h2>Charts</h2>" if charts else f"<h2>Charts</h2><p>None: {escape(why_none)}.</p>"
    )
    after = [*_verdict(of, verdict, sample), *_again(of, name, sample)]
    html = ""
    for detail in DETAILS:
        sections = [
            chart_section(each, f"luckbase chart {name} --what {each.name} --csv", detail)
            for each in charts
        ]
        title = f"luckbase: {of.game.board.name}, {of.game.board.game}"
        html = whole_page(title, "".join([*before, *sections, *after]))
        if len(html.encode()) <= MAX_BYTES:
            break
    return Report(html, verdict, tuple(chart.name for chart in charts))


# --- the page ----------------------------------------------------------------------------------


def whole_page(title: str, body: str) -> str:
    """A page in one file that loads nothing; body: its HTML."""
    sheets = (SCENE_STYLE, STATIC / "report.css")
    style = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets).strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>\n{body}\n"
        "</body></html>\n"
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """A table that is scrolled where the page is too narrow for it; kind: its class."""
    return f'<div class="wide" tabindex="0">{html_table(heads, rows, kind=kind)}</div>'


def _head(of: Table, verdict: Verdict | None) -> Iterator[str]:
    game, manifest, partial, files = of.game, of.manifest, "", "none"
    title, states = game.board.title, of.rows
    if manifest is not None:
        title, states = find.title_of(manifest), manifest.rows
        if left := sum(not manifest.is_done(goal) for goal in manifest.goals):
            partial = f"{left} of the {sentences.many(len(manifest.goals), 'solve')}"
        if manifest.files:
            files = f"{len(manifest.files):,}, {sentences.size(manifest.bytes)}"
    options = sentences.fields(of.origin.options, ", ") or "all at their defaults"
    yield f"<header><h1>{escape(title or game.board.name)}</h1><p>"
    yield (
        f"A table of {escape(game.board.game)}, board <b>{escape(game.board.name)}</b>: what each "
        f"player gets ({escape(game.payoff_name)}), with the best play, in every state of it. "
        f"Options of the board: {escape(options)}.</p>"
    )
    for why in of.origin.stale:
        yield f'<p class="stale">This table is stale: {escape(why)}.</p>'
    if partial:
        yield f'<p class="stale">This table is not complete: {partial} are left.</p>'
    checked = "not verified"
    if verdict is not None:
        checked = "verified" if verdict.ok else "FAULTS FOUND"
    facts = {
        "states": sentences.count(states), "payoffs good to": sentences.bound(of.error),
        "files": files, "verdict": checked,
    }  # fmt: skip
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    yield f'<dl class="facts">{items}</dl></header>'


def _questions(of: Table, questions: Sequence[Question]) -> Iterator[str]:
    """The payoffs of the start, or the likeliest starts, where the table says them, and the opening
    questions as a solve prints them."""
    head, starts, rows = "<h2>A few questions</h2>", of.game.starts(), list[list[str]]()
    with suppress(LuckbaseError):
        for chance, start in starts[:5]:
            state = of.game.describe(start)
            odds = f"a start, {100 * chance:.3g} %: {sentences.fields(state)}"
            values = [f"{x:z.7f}" for x in of.ask(state).value]
            rows.append(["the start" if len(starts) == 1 else odds, *values])
    if rows:
        yield f"{head}<p>At the start ({escape(of.game.payoff_name)}):</p>"
        head = ""
        yield table(["", *(f"player {i}" for i in range(1, len(rows[0])))], rows)
    if questions:
        yield head
        names = find.action_names(questions)
        if names:
            yield f"<p>Of who acts ({escape(of.game.payoff_name)}):</p>"
        heads = ["the player up is" if names else "", "state", *names, "best"]
        yield table(heads, [
            [q.title, sentences.fields(q.state), *map(q.payoff_of, names), q.best]
            for q in questions
        ])  # fmt: skip


def _board(of: Table, questions: Sequence[Question]) -> Iterator[str]:
    yield "<h2>The board</h2>"
    start_state: Mapping[str, Any] | None = None
    if starts := of.game.starts():
        start_state = of.game.describe(starts[0][1])
        what = "the start" if len(starts) == 1 else "the likeliest start"
    elif questions:
        start_state, what = questions[0].state, questions[0].title
    elif roots := find.roots_in(of):
        start_state, what = roots[0], "solved below this"
    if start_state is not None:
        scene = scene_of(of.game, start_state)
        yield (
            f'<figure class="scene-of">{svg(scene)}<figcaption>{escape(what)}: '
            f"{escape(sentences.fields(start_state))}. {escape(scene.about)}</figcaption></figure>"
        )
    yield '<div class="sections">'
    for name, section in _sections(canonical(of.game.board)):
        rows = [[key, sentences.listed(value)] for key, value in section.items()]
        values = table([name or "board", "value"], rows, "text")
        long = len(rows) > 12
        yield f"<details><summary>{escape(name)}</summary>{values}</details>" if long else values
    yield "</div>"


def _sections(form: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A board's canonical form by the sections of its file; what stands before them has no name."""
    parts = [(name, value) for name, value in form.items() if isinstance(value, dict)]
    return [("", {name: form[name] for name in form if not isinstance(form[name], dict)}), *parts]


def _verdict(of: Table, verdict: Verdict | None, sample: int | None) -> Iterator[str]:
    yield "<h2>Is it right?</h2>"
    if verdict is None:
        yield "<p>Not verified for this report.</p>"
        return
    if not verdict.ok:
        faults = "".join(f"<li>{escape(fault)}</li>" for fault in verdict.faults[:20])
        yield f'<div class="verdict no"><p><b>Faults were found.</b></p><ul>{faults}</ul></div>'
        return
    yield '<div class="verdict"><p><b>No fault was found.</b></p>'
    if verdict.files and of.manifest is not None:
        yield (
            f"<p>{sentences.many(verdict.files, 'file')}, {sentences.size(of.manifest.bytes)}, "
            "read and compared with the checksums of the day they were written.</p>"
        )
    checked = verdict.residuals
    if checked is not None and checked.rows:
        which = "all" if sample is None or sample >= of.rows else "drawn evenly from all"
        yield (
            f"<p>{sentences.many(checked.rows, 'row')}, {which}, computed again from the rules and "
            "the payoffs of what they lead to, without the program that made the table: worst "
            f"difference {checked.worst:.2e} at {escape(sentences.fields(checked.state))}, where "
            f"{checked.bound:.2e} is allowed, mean {checked.mean:.2e}. "
            f"Every payoff is good to {sentences.bound(of.error)}.</p>"
        )
    yield "</div>"


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


def _again(of: Table, name: str, sample: int | None) -> Iterator[str]:
    """name: as `_name`."""
    import numba
    import pyarrow

    goals = () if of.manifest is None else of.manifest.goals
    solved_by = [
        solve_command(goal, of.game, words="luckbase solve", file=_file(goal)) for goal in goals
    ]
    commands = [
        *dict.fromkeys(solved_by or ["luckbase solve BOARD"]),
        f"luckbase verify {name} {'--all' if sample is None else f'--sample {sample}'}",
        f"luckbase publish {name} page.html",
    ]
    yield "<h2>The same again</h2>"
    yield f'<div class="wide"><pre>{escape(chr(10).join(commands))}</pre></div>'
    entries = [] if of.manifest is None else [*of.manifest.files.values()]
    seconds: dict[str, float] = {}
    for what, spent_there in chain.from_iterable(entry.seconds.items() for entry in entries):
        seconds[what] = seconds.get(what, 0.0) + spent_there
    spent = ", ".join(f"{what} {sentences.duration(s)}" for what, s in seconds.items())
    yield table(["", ""], [
        ["rules identity", f"{of.identity} (version {of.game.rules_version} of the rules)"],
        ["table format", str(FORMAT)],
        ["solved by luckbase", ", ".join(sorted({e.solver_version for e in entries})) or "–"],
        ["time of one core", spent or "–"],
        ["this report", f"luckbase {solver_version()}, {datetime.now(UTC):%Y-%m-%d}"],
        ["with", f"Python {platform.python_version()}, numpy {np.__version__}, numba "
                 f"{numba.__version__}, pyarrow {pyarrow.__version__}, {platform.machine()}"],
    ], "text")  # fmt: skip
    file, text = escape(f"{of.game.board.name}.toml"), board_file(canonical(of.game.board))
    yield (
        f"<details><summary>The board as a file</summary><p>Save it as <code>{file}</code>"
        f" and solve that: the same rules, the same identity.</p>"
        f'<div class="wide"><pre>{escape(text)}</pre></div></details>'
    )


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
        """Drawn once, however often the page is put together."""
        assert isinstance(self.chart, Heatmap | Curves)
        return for_page(self.chart, f"chart-{self.number}")


def _charts(of: Table) -> tuple[list[ReportChart], str]:
    """The game's charts of the table, pictures first; or why there are none."""
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
    return charts, why or "the game has none"


def chart_section(of: ReportChart, command: str, detail: Detail) -> str:
    """A chart as a part of a page; command: prints all of its numbers."""
    command = escape(command)
    if isinstance(of.chart, str):
        inner = f"<p>{escape(of.chart)}</p>"
    elif isinstance(of.chart, Listing):
        inner = _listing(of.chart, command, detail)
    else:
        inner = _figure(of.chart, of.picture) + _numbers_table(of.chart, command, detail)
    title = escape(capital(of.shows))
    return f'<section class="chart"><h3>{title}</h3>{inner}</section>'


def _listing(chart: Listing, command: str, detail: Detail) -> str:
    def more(number: int, listed: int, what: str) -> str:
        if number <= listed:
            return ""
        return f"<p>{number - listed:,} more {what}: <code>{command}</code></p>"

    html = f"<p>{escape(chart.note)}</p>" if chart.note else ""
    body = table(chart.columns, chart.cells(detail.rows))
    body += more(len(chart.rows), detail.rows, "rows")
    if not chart.lines:
        return html + body
    text = escape("\n".join(chart.lines[: detail.lines]))
    more_lines = more(len(chart.lines), detail.lines, "lines")
    html += f'<div class="wide"><pre>{text}</pre></div>{more_lines}'
    return html + f"<details><summary>The numbers</summary>{body}</details>"


def _figure(chart: Heatmap | Curves, picture: str) -> str:
    head = f"<figcaption><b>{escape(chart.title)}</b><br>{escape(chart.about)}</figcaption>"
    return f'<figure class="plot">{head}{picture}</figure>'


def _numbers_table(chart: Heatmap | Curves, command: str, detail: Detail) -> str:
    """The numbers as a table, every so many of them."""
    heads, rows, step = chart.sample(detail.cells)
    caption, which = chart.y_label, "rows"
    if isinstance(chart, Heatmap):
        caption = f"{chart.colour_label}: {chart.x_label} in columns, {chart.y_label} in rows."
        which = "rows and columns"
    left_out = f"One in {step} {which}; all" if step > 1 else "The same in a file"
    return (
        f"<details><summary>The numbers as a table</summary><p>{escape(caption)}</p>"
        f"{table(heads, rows)}<p>{left_out}: <code>{command}</code></p></details>"
    )
