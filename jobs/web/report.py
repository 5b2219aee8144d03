"""A page about a table in one file, for users who have not installed luckbase: ``luckbase publish
TABLE FILE.html``.

The page needs no other files and no script. Its content security policy allows only its own style,
by hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.cluster.answers import find
from luckbase.cluster.answers.charts import for_page
from luckbase.cluster.store import FORMAT
from luckbase.cluster.store.manifest import Goal, solver_version
from luckbase.cluster.store.provenance import board_command, solve_command
from luckbase.jobs.terminal import write_file
from luckbase.solver import sentences
from luckbase.solver.board.file import name_of
from luckbase.solver.board.model import canonical
from luckbase.solver.charts import Listing
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError, need
from luckbase.solver.game.capabilities import Charts, scene_of

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table
    from luckbase.cluster.answers.verify import Verdict


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
    html = render(
        "report.html", **_table(of), **_board(of), **_again(of, sample), **_style(),
        verdict=verdict, charts=charts, why_none=why_none,
        which="all" if sample is None or sample >= of.rows else "drawn evenly from all",
    )  # fmt: skip
    return Report(html, verdict, tuple(each["name"] for each in charts))


# --- what the page shows -------------------------------------------------------------------------

Context = dict[str, Any]


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
    """Return the table's facts and questions, and the payoffs of its most likely starts."""
    game, manifest, left, size = of.game, of.manifest, "", 0
    title, payoffs, starts, rows = game.board.title, game.payoffs, game.starts(), []
    if manifest is not None:
        title, size = find.title_of(manifest), manifest.bytes
        if open_goals := sum(not manifest.is_done(goal) for goal in manifest.goals):
            left = f"{open_goals} of the {sentences.many(len(manifest.goals), 'solve')}"
    with suppress(LuckbaseError):
        for chance, start in starts[:5]:
            state = game.describe(start)
            odds = f"a start, {100 * chance:.3g} %: {sentences.fields(state)}"
            values = map(payoffs.text, of.ask(state).value)
            rows.append(["the start" if len(starts) == 1 else odds, *values])
    return {
        "title": title or game.board.name, "game": game.board.game, "board": game.board.name,
        "payoffs": payoffs, "stale": of.origin.stale, "left": left, "bytes": size,
        "options": sentences.fields(of.origin.options, ", "), "states": of.rows,
        "error": of.error, "questions": find.opening_answers(of), "starts": rows,
        "players": [f"player {i + 1}" for i in range(game.players)],
    }  # fmt: skip


def _board(of: Table) -> Context:
    """Return a state to draw, in words, and the board as a file."""
    state: Mapping[str, Any] | None = None
    what = ""
    if starts := of.game.starts():
        state = of.game.describe(starts[0][1])
        what = "the start" if len(starts) == 1 else "the likeliest start"
    elif questions := find.opening_answers(of):
        state, what = questions[0].state, questions[0].title
    elif roots := find.roots_in(of):
        state, what = roots[0], "solved below this"
    return {
        "scene": None if state is None else scene_of(of.game, state),
        "where": "" if state is None else f"{sentences.capital(what)}: {sentences.fields(state)}",
        "file": board_file(canonical(of.game.board)),
    }  # fmt: skip


def board_file(form: Mapping[str, Any]) -> str:
    """Return a board's canonical form as a board file (TOML)."""

    def lines(section: Mapping[str, Any]) -> list[str]:
        return [f"{key(name)} = {json.dumps(value)}" for name, value in section.items()
                if not isinstance(value, dict)]  # fmt: skip

    def key(name: str) -> str:
        return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)

    text = lines(form)
    for name, section in form.items():
        if isinstance(section, dict):
            text += ["", f"[{key(name)}]", *lines(section)]
    return "\n".join(text) + "\n"


def _again(of: Table, sample: int | None) -> Context:
    """Return the commands and the versions that make the same table."""
    goals = () if of.manifest is None else of.manifest.goals
    entries = [] if of.manifest is None else [*of.manifest.files.values()]
    origin, name = None if of.manifest is None else of.manifest.origin, "BOARD"
    if origin is not None:
        name = board_command(_file(origin), origin.settings, of.game.board.game, words="")
    solved = [solve_command(each, of.game, words="luckbase solve", file=_file(each))
              for each in goals]  # fmt: skip
    return {
        "chart_command": f"luckbase chart {name} --what ",
        "commands": [
            *dict.fromkeys(solved or ["luckbase solve BOARD"]),
            f"luckbase verify {name} {'--all' if sample is None else f'--sample {sample}'}",
            f"luckbase publish {name} page.html",
        ],
        "identity": of.identity, "rules_version": of.game.rules_version, "format": FORMAT,
        "solvers": ", ".join(sorted({entry.solver_version for entry in entries})) or "–",
        "version": solver_version(), "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }  # fmt: skip


def _file(goal: Goal) -> str:
    """Return the board file of a goal: its name, or its path below a folder ``boards``."""
    parts = Path(name_of(goal.board_file or "BOARD")).parts
    last = len(parts) - parts[::-1].index("boards") - 1 if "boards" in parts else 0
    return str(Path(*parts[last:]))


def _charts(of: Table) -> tuple[list[Context], str]:
    """Return the game's charts of the table, pictures first, and why one is left out."""
    try:
        kinds = of.game.need(Charts).kinds
    except OptionError as error:
        return [], str(error)
    charts: list[Context] = []
    why = ""
    for kind in sorted(kinds, key=lambda kind: not kind.picture):
        try:
            of.check_chart(kind)
            made = of.chart(kind.name)
        except (OptionError, MissingTableError) as error:
            why = why or str(error)
            continue
        picture = "" if isinstance(made, Listing) else for_page(made, f"chart-{len(charts)}")
        charts.append({"name": kind.name, "shows": kind.shows, "chart": made, "picture": picture})
    return charts, why
