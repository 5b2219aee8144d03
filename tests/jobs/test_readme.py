"""The README and the pages behind it are checked: the commands, the examples, what CI takes.

That every block runs and prints what it says is `tests/docs/test_blocks.py`.
"""

import re
import shlex
import subprocess
import tomllib

import luckbase
from luckbase.solver.board.model import rules_identity
from tests import solving
from tests.docs.generated import README, commands
from tests.docs.test_blocks import PAGES

ROOT = README.parent
TEXT = README.read_text(encoding="utf-8")


def test_every_command_and_every_option_has_help():
    for name, command in commands().items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_every_command_in_the_pages_is_one_that_the_command_line_takes():
    """Also in blocks that no test can run; and every command is called somewhere."""
    names, called = set(commands()), set()
    for each in PAGES:
        text = each.read_text(encoding="utf-8")
        shell = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
        for name in re.findall(r"luckbase (\w+)", shell):
            assert name in names, each
        called |= set(re.findall(r"luckbase (\w+)(?: |$|`)", shell + text))
    assert called >= names


def test_every_dependency_has_its_sentence():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["test"]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("\n## Dependencies\n")[1].split("\n## ")[0]
    for requirement in wanted:
        name = re.split(r"[<>=]", requirement)[0]
        assert re.search(rf"\b{name}\b", table), name


def test_every_link_of_the_readme_that_leads_to_a_page_has_one():
    named = {link for link in re.findall(r"\]\((docs/[^)#]+\.md)", TEXT)}
    there = {str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")}
    assert named == there


def test_the_readme_is_read_in_two_minutes():
    assert len(TEXT.splitlines()) <= 155


def test_ci_runs_the_readmes_test_command_word_for_word():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    awk = re.search(r"command=\$\((awk .*?README\.md)\)", script, re.DOTALL)
    assert awk
    result = subprocess.run(
        ["bash", "-c", awk[1]], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert result in TEXT
    assert result.endswith("python -m pytest")
    parts = ('"${command% && *}"', '"${command##* && }"')  # all but its last part, then that
    assert re.findall(r"bash -euo pipefail -c (.*?\")(?:$| \|\|)", script, re.MULTILINE) == [*parts]


def asked_tables(words):
    """The board that a command names and its settings' rules; None where it names no board."""
    board = next((word for word in words if re.fullmatch(r"[a-z-]+/[\w-]+", word)), None)
    if board is None:
        return None
    settings = dict(words[i + 1].split("=") for i, w in enumerate(words) if w == "--set")
    return board, rules_identity(solving.load_game(luckbase.load_board(board, **settings)))


def test_every_question_in_the_readme_is_of_a_table_that_it_solves_before():
    """As it stands there; what is run is coarser in places. Without --set, any table will do."""
    solved, query = set(), 0
    for line in "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)).splitlines():
        words = shlex.split(line.rpartition("&& ")[2])
        if len(words) > 1 and words[0].endswith("luckbase"):
            if words[1] == "solve":
                solved |= {*(asked_tables(words) or ())}
            elif words[1] in ("query", "chart", "diff", "verify", "status"):
                result = asked_tables(words)
                assert result is None or result["--set" in words] in solved, line
                query += result is not None
    assert query >= 2
