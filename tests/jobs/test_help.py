"""The help: short, in groups, as wide as a terminal; every command with two examples that work."""

import io
import re
import shlex
from pathlib import Path

import pytest

from luckbase.jobs.app import COMMANDS, GROUPS
from tests.docs.generated import commands, first_sentence

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
