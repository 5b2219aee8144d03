"""The README's table of commands, made from the command line itself.

``python -m tests.jobs.commands`` writes it into README.md; `test_readme` fails when it is stale.
"""

from __future__ import annotations

from pathlib import Path

import typer.main

README = Path(__file__).parents[2] / "README.md"
START = "<!-- commands: written by python -m tests.jobs.commands -->\n"
END = "<!-- end of commands -->"


def command_table() -> str:
    """A Markdown table: how each command is called, and the first sentence of its help."""
    from luckbase.jobs.app import app

    group = typer.main.get_command(app)
    lines = ["| command | does |", "| --- | --- |"]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option"]
        words = [a.metavar or a.name.upper() for a in arguments]
        words += [f"[{o.opts[0]}{'' if o.is_flag else ' ' + o.metavar}]" for o in options]
        does = " ".join((command.help or "").split("\n\n")[0].split())
        call = " ".join(["luckbase", name, *words]).replace("|", "\\|")
        lines.append(f"| `{call}` | {does} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """The README's text with the table of commands as it should be."""
    before, rest = text.split(START)
    return before + START + command_table() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
