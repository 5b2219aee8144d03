"""A page about a table in one file, for users who have not installed luckbase: ``luckbase publish
TABLE FILE.html``.

The page needs no other files and no script. Its content security policy allows only its own style,
by hash.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from luckbase.cluster.answers import find
from luckbase.cluster.answers.charts import for_page
from luckbase.cluster.answers.examples import examples
from luckbase.cluster.store import FORMAT
from luckbase.cluster.store.manifest import solver_version
from luckbase.cluster.store.provenance import (
    board_command,
    board_file,
    file_of,
    solve_command,
)
from luckbase.jobs.terminal import write_file
from luckbase.solver.board.model import canonical
from luckbase.solver.charts import Listing
from luckbase.solver.errors import MissingTableError, OptionError, need
from luckbase.solver.game.capabilities import Charts, scene_of
from luckbase.solver.scene import STYLE

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


def report_on(table: Table, sample: int | None = 10_000, *, verify: bool = True) -> Report:
    """Return the report on an open table. sample: rows that are verified, None for all.

    Raises CorruptTableError if a part of the table cannot be read, OptionError if jinja2 or
    vl-convert is not installed; faults that `verify` finds are in the report.
    """
    need("a page", "jinja2", "vl_convert", extra="report")
    from luckbase.jobs.web.pages import STATIC, render

    verdict = table.verify(sample) if verify else None
    charts, why_none = _charts(table)
    style = "".join(path.read_text("utf-8") for path in (STYLE, STATIC / "style.css"))
    digest = base64.b64encode(hashlib.sha256(style.strip().encode()).digest()).decode()
    manifest = table.manifest if table.in_files else None
    questions = examples(table)
    html = render(
        "report.html", table=table, game=table.game, manifest=manifest, verdict=verdict,
        charts=charts, why_none=why_none, commands=_commands(table, sample), style=style.strip(),
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
               "base-uri 'none'; form-action 'none'",
        title=find.title_of(manifest) if manifest else table.game.board.title,
        left=sum(not manifest.is_done(goal) for goal in manifest.goals) if manifest else 0,
        questions=questions, scene=scene_of(table.game, questions[0].state) if questions else None,
        file=board_file(canonical(table.game.board)), format=FORMAT, version=solver_version(),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        which="all" if sample is None or sample >= table.rows else "drawn evenly from all",
    )  # fmt: skip
    return Report(html, verdict, tuple(each["name"] for each in charts))


# --- what the page shows -------------------------------------------------------------------------


def _commands(table: Table, sample: int | None) -> list[str]:
    """Return the commands that make the same table, verify it and write this page."""
    name, solved = "BOARD", ["luckbase solve BOARD"]
    if table.manifest.origin is not None:
        origin = table.manifest.origin
        name = board_command(file_of(origin), origin.settings, table.game.board.game, words="")
        solved = [solve_command(each, table.game, words="luckbase solve", file=file_of(each))
                  for each in table.manifest.goals]  # fmt: skip
    rows = "--all" if sample is None else f"--sample {sample}"
    return [*dict.fromkeys(solved), f"luckbase verify {name} {rows}",
            f"luckbase publish {name} page.html"]  # fmt: skip


def _charts(table: Table) -> tuple[list[dict[str, Any]], str]:
    """Return the game's charts of the table, pictures first, and why a chart is missing."""
    try:
        kinds = table.game.need(Charts).kinds
    except OptionError as error:
        return [], str(error)
    charts, why = list[dict[str, Any]](), ""
    for kind in sorted(kinds, key=lambda kind: not kind.picture):
        try:
            table.check_chart(kind)
            chart = table.chart(kind.name)
        except (OptionError, MissingTableError) as error:
            why = why or str(error)
            continue
        picture = "" if isinstance(chart, Listing) else for_page(chart, f"chart-{len(charts)}")
        charts.append({"name": kind.name, "shows": kind.shows, "chart": chart, "picture": picture})
    return charts, why
