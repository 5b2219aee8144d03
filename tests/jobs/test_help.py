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


def examples(name):
    """The words of a command's examples, after ``luckbase``."""
    result = [shlex.split(example) for example in PARSED[name].examples]
    assert all(words[:2] == ["luckbase", name] for words in result)
    return [words[1:] for words in result]


def test_the_help_has_a_line_a_command_in_its_group(command):
    code, out, _ = command("--help")
    assert code == 0
    for group, names in GROUPS.items():
        lines = [f"  {name:10}{first_sentence(PARSED[name])}" for name in names]
        assert f"\n{group}:\n" + "\n".join(lines) + "\n" in out
    begin = re.findall(r"^    luckbase (.+)$", out, re.MULTILINE)
    assert begin and begin[0].split()[0] in COMMANDS and "docs/tutorial.md" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_word_that_may_be_left_out_is_in_brackets():
    for name, command in PARSED.items():
        for word in (each for each in command.params if each.param_type_name == "argument"):
            assert word.required != word.metavar.startswith("["), (name, word.metavar)


def test_the_commands_that_are_said_to_ask_a_store_take_a_table():
    page = Path(__file__).parents[2] / "docs/how-to/store.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    (message,) = re.findall(r"(`query`[^.]*) take a URI like a folder", text)
    for name in re.findall(r"`(\w+)`", message):
        assert PARSED[name].params[0].metavar.lstrip("[").startswith("TABLE"), name


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_help_ends_with_two_examples_that_the_command_takes(command, name):
    _, out, _ = command(name, "--help")
    written = PARSED[name].examples
    assert len(written) == 2 and max(map(len, out.splitlines())) <= 80
    assert out.rstrip().endswith("Examples:\n" + "\n".join(f"  {line}" for line in written))
    for words in examples(name):
        parsed = PARSED[name].make_context(name, words[1:])
        assert parsed.params


def test_the_examples_work(command, tmp_path, monkeypatch):
    """They run in the order of the help, in one folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / "states.csv").write_text("mine,yours,turn\n0,87,12\n40,40,0\n")
    for sides in ("6", "4"):
        assert command("solve", "pig/tiny", "--set", f"sides={sides}")[0] == 0
    for name in COMMANDS:
        for words in examples(name) if name != "serve" else ():  # which does not end
            words = [
                word.replace("frontier=2", "frontier=1").replace("s3:", "memory:") for word in words
            ]
            code, out, err = command(*words)
            assert code == (1 if name == "diff" else 0), (words, err)
            written = words[words.index("--out") + 1] if "--out" in words else ""
            assert Path(written).stat().st_size if written else out or err, words


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder where commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_option_of_these_names_has_its_variable():
    for name, command in commands().items():
        for each in command.params:
            assert each.envvar == VARIABLES.get(each.name), (name, each.name)


def test_results_that_are_no_folder_are_refused_by_every_command_that_takes_them(command):
    Path("file").write_text("x")
    more = {"query": ["open=1,2"], "diff": ["jackpot/tiny"], "publish": ["to"]}
    said = "luckbase: --results: file is a file; write a folder, such as results\n"
    for name, each in commands().items():
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
