"""The help: short, in groups, as wide as a terminal; every command with two examples that work."""

import io
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from luckbase.jobs.app import COMMANDS, GROUPS, VARIABLES
from tests.docs.generated import README, commands, first_sentence
from tests.docs.test_blocks import PAGES
from tests.games.climb import climb
from tests.places import ROOT

PARSED = commands()


def test_the_help_has_a_line_a_command_in_its_group(command):
    code, out, _ = command("--help")
    assert code == 0
    for group, names in GROUPS.items():
        lines = [f"  {name:10}{first_sentence(PARSED[name])}" for name in names]
        assert f"\n{group}:\n" + "\n".join(lines) + "\n" in out
    begin = re.findall(r"^    luckbase (.+)$", out, re.MULTILINE)
    assert begin and begin[0].split()[0] in COMMANDS and "docs/tutorial.md" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_ends_with_two_examples_that_the_command_takes(command, name):
    """Every option has help, and some a variable; a word that may be left out is in brackets."""
    _, out, _ = command(name, "--help")
    parsed = PARSED[name]
    assert parsed.help and len(parsed.examples) == 2 and max(map(len, out.splitlines())) <= 80
    assert out.rstrip().endswith("\n  ".join(["Examples:", *parsed.examples]))
    for example in parsed.examples:
        program, *words = shlex.split(example)
        assert (program, words[0]) == ("luckbase", name)
        assert parsed.make_context(name, words[1:]).params
    for each in parsed.params:
        assert getattr(each, "help", None) and each.envvar == VARIABLES.get(each.name), each.name
        if each.param_type_name == "argument":
            assert each.required != each.metavar.startswith("["), each.metavar


def test_the_examples_work(command, tmp_path, monkeypatch):
    """They run in the order of the help, in one folder."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / "states.csv").write_text("mine,yours,turn\n0,87,12\n40,40,0\n")
    for sides in ("6", "4"):
        assert command("solve", "pig/tiny", "--set", f"sides={sides}")[0] == 0
    for name in COMMANDS:
        for example in PARSED[name].examples if name != "serve" else ():  # which does not end
            example = example.replace("frontier=2", "frontier=1").replace("s3:", "memory:")
            words = shlex.split(example)[1:]
            code, out, err = command(*words)
            assert code == (1 if name == "diff" else 0), (words, err)
            written = words[words.index("--out") + 1] if "--out" in words else ""
            assert Path(written).stat().st_size if written else out or err, words


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder where commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_results_that_are_no_folder_are_refused_by_every_command_that_takes_them(command):
    Path("file").write_text("x")
    more = {"query": ["open=1,2"], "diff": ["jackpot/tiny"], "publish": ["to"]}
    said = "luckbase: --results: file is a file; write a folder, such as results\n"
    for name, each in PARSED.items():
        if any("--results" in param.opts for param in each.params):
            words = [name, "jackpot/tiny", *more.get(name, []), "--results", "file"]
            assert command(*words) == (2, "", said)


def test_tables_are_where_the_variable_says(command, folder, monkeypatch):
    monkeypatch.setenv("LUCKBASE_RESULTS", str(folder / "mine"))
    code, out, _ = command("solve", "jackpot/tiny")
    assert code == 0 and out.startswith("mine/jackpot/tiny/")
    assert command("query", "jackpot/tiny", "open=1,2")[0] == 0
    assert command("status")[1].startswith("complete")
    assert not Path("results").exists()
    assert command("solve", "jackpot/tiny", "--results", "other")[1].startswith("other/")
    monkeypatch.setenv("LUCKBASE_RESULTS", "")  # an empty variable is none
    assert "no tables under results" in command("status")[1]


def test_games_of_several_files_are_known(command, own_games, monkeypatch):
    text = Path(climb.__code__.co_filename).read_text()
    Path("a b.py").write_text(text)
    Path("again.py").write_text(text.replace('"climb"', '"stairs"'))
    Path("hill.toml").write_text('game = "climb"\n')
    Path("stairs.toml").write_text('game = "stairs"\n')
    monkeypatch.setenv("LUCKBASE_GAME", "a b.py:again.py")
    assert command("info", "hill.toml")[0] == command("info", "stairs.toml")[0] == 0


# --- README and CONTRIBUTING; tests/docs/test_blocks.py runs their blocks -------------------------

TEXT = README.read_text(encoding="utf-8")


def test_every_command_in_the_pages_is_one_that_the_command_line_takes():
    """Also in blocks that no test can run; and every command is called somewhere."""
    names, called = set(PARSED), set()
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


def test_the_readme_links_every_page_and_is_read_in_two_minutes():
    named = set(re.findall(r"\]\((docs/[^)#]+\.md)", TEXT))
    assert named == {str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")}
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
