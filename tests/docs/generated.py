"""The parts of the documentation that are made from the command line itself.

``python -m tests.docs.generated`` writes the README's table of commands and
docs/reference/commands.md; tests fail when they are stale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGE = ROOT / "docs/reference/commands.md"
START = "<!-- commands: written by python -m tests.docs.generated -->\n"
END = "<!-- end of commands -->"


def commands() -> dict[str, Any]:
    """The commands, as click has them, in the order of the help."""
    from luckbase.jobs.app import app

    group: Any = typer.main.get_command(app)
    return {name: group.get_command(None, name) for name in group.commands}


def first_sentence(command: Any) -> str:
    """What a command does."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def short_table() -> str:
    """A Markdown table: each command, and the first sentence of its help."""
    lines = ["| command | does |", "| --- | --- |"]
    lines += [f"| `{name}` | {first_sentence(command)} |" for name, command in commands().items()]
    return "\n".join(lines) + "\n"


def usage(name: str, command: Any) -> str:
    """How a command is called, over several lines."""
    words = [p.metavar or p.name.upper() for p in command.params if kind(p) == "argument"]
    options = [f"[{call(p)}]" for p in command.params if kind(p) == "option"]
    lines, line = [], " ".join(["luckbase", name, *words])
    for option in options:
        if len(line) + 1 + len(option) > 96:
            lines.append(line)
            line = "        " + option
        else:
            line += " " + option
    return "\n".join([*lines, line])


def kind(parameter: Any) -> str:
    """``argument`` or ``option``."""
    return str(parameter.param_type_name)


def call(option: Any) -> str:
    """An option as it is given."""
    return str(option.opts[0]) + ("" if option.is_flag else f" {option.metavar}")


def default(option: Any) -> str:
    """What an option is where it is not given; nothing to be said of a flag or of none."""
    value = option.default() if callable(option.default) else option.default
    if option.is_flag or value in (None, (), [], "") or str(value).startswith("<"):
        return "–"
    return f"`{value}`"


def cell(text: str) -> str:
    """Text that stands in a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def page() -> str:
    """docs/reference/commands.md."""
    lines = [
        "# Commands",
        "",
        "<!-- written by python -m tests.docs.generated -->",
        "",
        "Data goes to stdout, text for people to stderr. `luckbase --install-completion` makes",
        "your shell complete commands and options; `luckbase COMMAND -h` prints what stands here.",
        "",
        "| exit code | means |",
        "| --- | --- |",
        "| 0 | done |",
        "| 1 | the answer is no: stale, damaged, different, verification failed |",
        "| 2 | the request is wrong, and nothing was done |",
        "| 130, 143, 129 | interrupted; ended by SIGTERM; by SIGHUP |",
        "| 141 | nobody reads what is printed any more, as after piping it to `head -1` |",
        "",
        "A word `TABLE` is a table's folder, or a board file: with `--set` it means exactly one",
        "set of rules, and only a table of these rules answers.",
    ]
    for name, command in commands().items():
        described = [" ".join(p.split()) for p in (command.help or "").split("\n\n")]
        lines += ["", f"## {name}", "", "```", usage(name, command), "```", ""]
        lines += "\n\n".join(described).split("\n")
        lines += ["", "<!-- not run: tests/jobs/test_help.py runs it after those of others -->"]
        lines += ["```sh", *command.examples, "```"]
        lines += ["", "| word | default | help |", "| --- | --- | --- |"]
        for p in command.params:
            if kind(p) == "argument":
                word, value = p.metavar or p.name.upper(), "–"
            else:
                word, value = call(p), default(p)
            said = getattr(p, "help", None)
            lines.append(f"| `{cell(word)}` | {value} | {cell(said)} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """The README's text with the table of commands as it should be."""
    before, rest = text.split(START)
    return before + START + short_table() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    if START in README.read_text(encoding="utf-8"):
        README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
