"""Every block of commands, Python or SQL in the documentation is run, as a reader would who opens
one page and no other: in a folder of its own, block after block.

The folder holds `boards/`, and what the page's earlier blocks left. A line of commands must end
with exit code 0, or with the one that a comment behind it names: ``# exit 1``. A block of ``text``
behind a block that was run is what it prints: its lines must be among those that were printed, in
this order, whatever the spaces; "…" stands for what was cut, a line or the rest of one. HTML
comments before a block say what is different:

* ``<!-- not run: REASON -->``: the block is not run.
* ``<!-- tested with: A for B -->``: B stands in the block, and the test writes A.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import duckdb
import pytest

from luckbase.jobs.app import run
from tests.docs.test_sources import anchors
from tests.places import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.{10,}) -->")
TESTED = re.compile(r"<!-- tested with: (.+) for (.+) -->")
PIPED = re.compile(r"printf '([^'%]*)' \| (luckbase .*)")
"""A command and what is typed into it."""
RUN = ("sh", "python", "sql")
FEW = 10
"""Blocks that are not run, in all pages."""
ONES = re.compile(r"(?<![Pp]layer )(?<![\w.,=\[/-])1 (?!is\b|has\b|was\b|[a-z]+ses\b)[a-z]+s\b")
"""A count of one without its singular."""


@dataclass
class Block:
    """A block of a page, as it is tested; line: where it stands."""

    kind: str
    text: str
    line: int
    skipped: str = ""
    printed: list = field(default_factory=list)


def blocks_of(page):
    """The blocks of a page that are run, each with what it should print."""
    text, result, before = page.read_text(encoding="utf-8"), [], ""
    for match in BLOCK.finditer(text):
        comments, kind, content = match.groups()
        if kind in RUN:
            skipped = NOT_RUN.search(comments)
            for instead, written in TESTED.findall(comments):
                assert written in content, f"{page.name}: {written} is not in the block"
                content = content.replace(written, instead)
            line = text[: match.start(3)].count("\n") + 1
            result.append(Block(kind, content, line, skipped[1] if skipped else ""))
        elif kind == "text" and before in RUN and not result[-1].skipped:
            result[-1].printed = content.splitlines()
        before = kind
    return result


def name_of(page):
    return str(page.relative_to(ROOT))


RUNS = {page: [block for block in blocks_of(page) if not block.skipped] for page in PAGES}
"""Those that are not skipped, of each page."""


def words_of(line):
    """The words of a line that only calls luckbase, and the file that takes what it prints ("":
    none); None where a shell is needed."""
    line, _, out = re.sub(r"\s+# exit \d+$", "", line).partition(" > ")
    if re.search(r"[|<>;&$`*]", re.sub(r"'[^']*'|\"[^\"$`]*\"", "", line + out)):
        return None
    words = shlex.split(line, comments=True)
    return (words[1:], out) if words and words[0] == "luckbase" else None


def joined(text):
    """The commands of a block: lines, continued ones and here-documents as one."""
    result = []
    ends = ""
    for line in text.splitlines():
        if ends:
            result[-1] += "\n" + line
            ends = "" if line == ends else ends
        elif result and result[-1].endswith("\\"):
            result[-1] = result[-1][:-1] + line.strip()
        elif line.strip() and not line.startswith("#"):
            result.append(line)
            here = re.search(r"<<\s*'?(\w+)'?", line)
            ends = here[1] if here else ""
    return result


def shell(command, folder):
    """Run a command by a shell in which luckbase is this one."""
    scripts = folder / ".scripts"
    scripts.mkdir(exist_ok=True)
    (scripts / "luckbase").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m luckbase "$@"\n')
    (scripts / "luckbase").chmod(0o755)
    python = Path(sys.executable).parent  # as in an environment that is activated
    here = {"PATH": f"{scripts}:{python}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], cwd=folder, env={**os.environ, **here},
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def run_line(line, folder):
    """(exit code, all that it printed) of a command; an installation is left out."""
    if "pip install" in line and "&& " in line:
        line = line.rpartition("&& ")[2]
    line = line.replace(".venv/bin/", "")
    typed = PIPED.fullmatch(line)
    simple = words_of(typed[2] if typed else line)
    if simple is None:
        return shell(line, folder)
    words, out = simple
    typing = io.StringIO(typed[1].replace("\\n", "\n") if typed else "")
    printed, text = io.StringIO(), io.StringIO()
    with (
        mock.patch("sys.stdin", typing),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(text if out else printed),
    ):
        code = run(words)
    if not out:
        return code, printed.getvalue()
    (folder / out).write_text(printed.getvalue())
    return code, text.getvalue()


def flat(text):
    return " ".join(text.split())


def missing(shown, printed):
    """The first line of a page's ``text`` that was not printed, or not behind those before it; ""
    where there is none."""
    there = iter([flat(line) for line in printed.splitlines()])
    for line in filter(lambda line: line.strip("─"), map(flat, shown)):
        pattern = ".*".join(map(re.escape, line.split("…")))
        if line != "…" and not any(re.fullmatch(pattern, result) for result in there):
            return line
    return ""


def run_block(block, where, folder, names):
    """What a block prints; names: those of the page's Python. Raises AssertionError for a line
    that ends with another exit code than the page says."""
    if block.kind == "sql":
        return str(duckdb.sql(block.text))
    if block.kind == "python":
        caught = io.StringIO()
        with contextlib.redirect_stdout(caught):
            exec(compile(block.text, where, "exec"), names)
        return caught.getvalue()
    printed = ""
    for line in joined(block.text):
        wanted = re.search(r"# exit (\d+)", line)
        code, text = run_line(line, folder)
        assert code == (int(wanted[1]) if wanted else 0), f"{where}: {line}\n{text}"
        printed += text
    return printed


@pytest.mark.parametrize("page", [page for page in PAGES if RUNS[page]], ids=name_of)
def test_the_blocks_of_a_page_run_by_themselves_and_print_what_is_shown(
    page, tmp_path, monkeypatch
):
    for name in ("boards", "jobs", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in RUNS[page]:
        where = f"{name_of(page)}:{block.line}"
        printed = run_block(block, where, tmp_path, names)
        absent = missing(block.printed, printed)
        assert not absent, f"{where}: not printed, or not in this order: {absent}\n{printed}"
        assert not ONES.search(printed), f"{where}: {ONES.search(printed)}"


def test_few_blocks_are_not_run_and_each_says_why():
    """Or by another test, which names the page."""
    skipped = []
    for page, block in [(each, block) for each in PAGES for block in blocks_of(each)]:
        elsewhere = re.match(r"(tests/\S+\.py) runs it ", block.skipped)
        if elsewhere:
            assert str(page.relative_to(ROOT)) in (ROOT / elsewhere[1]).read_text()
        elif block.skipped:
            skipped.append((page.name, block.skipped))
    assert len(skipped) <= FEW, skipped
    assert sum(len(blocks_of(page)) for page in PAGES) >= 25


def test_every_link_within_the_documentation_leads_somewhere():
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith("http"):
                continue
            name, _, anchor = link.partition("#")
            there = (page.parent / name).resolve() if name else page
            assert there.exists(), f"{page.name}: {link}"
            if anchor:
                assert anchor in anchors(there), f"{page.name}: {link}"
