"""The parts of the documentation that are made from the program itself.

``python -m tests.docs.generated`` writes, in the README and in every page, the table of commands, a
board's fields, options and charts, and the sizes of boards, between

    <!-- generated: fields of skunk/seed -->
    <!-- end -->

Tests fail when they are stale.
"""

import re

import typer.main

import luckbase
from luckbase.solver import sentences
from luckbase.solver.board.file import as_words, path_of, read_boards
from luckbase.solver.board.model import options_of, values_of
from luckbase.solver.game.capabilities import Charts, scene_of
from luckbase.solver.scene import STYLE, svg
from tests import solving
from tests.places import ROOT

README = ROOT / "README.md"
PAGES = sorted([README, *(ROOT / "docs").rglob("*.md")])
PART = re.compile(r"(<!-- generated: (\w+) of (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands():
    """The commands, as click has them, in the order of the help."""
    from luckbase.jobs.app import app

    group = typer.main.get_command(app)
    return {name: group.get_command(None, name) for name in group.commands}


def first_sentence(command):
    """Return the first sentence of a command's help."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def short_table(_):
    """A Markdown table: each command, and the first sentence of its help."""
    rows = ((f"`{name}`", first_sentence(command)) for name, command in commands().items())
    return table("| command | does |", rows)


def with_parts(text):
    """A page's text with the tables of boards as they should be."""
    return PART.sub(lambda result: result[1] + PARTS[result[2]](result[3]) + result[4], text)


def table(head, rows):
    """A Markdown table."""
    lines = [head, "| --- " * (head.count("|") - 1) + "|"]
    for row in rows:
        cells = (" ".join((text or "").split()).replace("|", "\\|") for text in row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def game_of(name):
    """The game of a board of ours: ``pig/race``."""
    return solving.load_game(solving.load_board(ROOT / f"boards/{name}.toml"))


def fields(name):
    """The fields of a board's states."""
    rows = ((f"`{f.name}`", f.help, left_out(f)) for f in game_of(name).fields)
    return table("| field | meaning | if left out |", rows)


def left_out(field):
    """Return the value of a field that a question leaves out."""
    if field.blank is not None:
        return "–"
    return "needed" if field.default is None else str(field.default)


def charts(name):
    """The charts of a board."""
    kinds = game_of(name).need(Charts).kinds
    rows = ((f"`{kind.name}`", kind.shows, kind.reading) for kind in kinds)
    return table("| `--what` | shows | how to read it |", rows)


def options(names):
    """The options of a board's game; ``pig/race,skunk/seed``: without those of the second."""
    first, *others = [
        [(f"`{option}`", values(field), field.description)
         for option, (_, field) in options_of(game_of(name).board).items()]
        for name in names.split(",")
    ]  # fmt: skip
    rows = [row for row in first if not any(row in each for each in others)]
    return table("| option | values | meaning |", rows)


def values(field):
    """Return the values of an option, with the default in bold."""
    texts = [*map(written, values_of(field))]
    if field.default is None:
        return ", ".join(texts)
    default = written(field.default)
    rest = texts if default in texts else [*texts, default]
    return ", ".join(f"**{text}**" if text == default else text for text in rest)


SIZES = [
    *(("press-your-luck/1985-02", options) for options in (
        {"score_unit": 500, "frontier": 2}, {})),
    ("goofspiel/points", {"cards": 13}), ("skunk/seed", {}),
]  # fmt: skip
"""Boards and options whose sizes the README lists."""


def sizes(_):
    """How large boards are, and how long they take on two cores, as `luckbase.plan` predicts."""
    rows = []
    for name, options in SIZES:
        planned = [
            luckbase.plan(grid, workers=2, memory=16 * 10**9, results="nowhere")
            for grid in read_boards(path_of(name), as_words(options))
        ]
        settings = [f"--set {option}={value}" for option, value in options.items()]
        rows.append((
            f"`{' '.join([name, *settings])}`", sentences.count(sum(p.states for p in planned)),
            sentences.size(sum(p.table_bytes for p in planned)),
            sentences.duration(sum(p.seconds for p in planned)),
        ))  # fmt: skip
    return table("| board, options | states | on disk | time |", rows)


PARTS = {
    "fields": fields, "charts": charts, "options": options, "sizes": sizes,
    "commands": short_table,
}  # fmt: skip


def written(value):
    """Return a value as the board file has it."""
    if isinstance(value, range):
        return f"{value[0]} to {value[-1]}"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else str(value)


STATES = {
    "press-your-luck": ("press-your-luck/1985-02", "scores=0,8000,3000 earned=0,1,0"),
    "skunk": ("skunk/seed", "mine=0 yours=87 turn=32"),
    "pig": ("pig/race", "mine=30 yours=40 turn=20"),
    "goofspiel": ("goofspiel/points", "mine=1,2,5 theirs=2,3,4 deck=1,4,5 upcard=4"),
    "jackpot": ("jackpot/seed", "open=1,2,3,9 dice=3,6"),
}
"""A state of each game, drawn on its page."""


def pictures():
    """The files of the drawn states, on a ground that every page can show."""
    style, result = STYLE.read_text(encoding="utf-8"), {}
    ground = f'><style>{style}</style><rect width="100%" height="100%" fill="#fff"/><title>'
    for game, (name, state) in STATES.items():
        fields = dict(word.split("=") for word in state.split())
        drawn = svg(scene_of(game_of(name), fields)).replace("><title>", ground, 1)
        result[ROOT / f"docs/pictures/{game}-state.svg"] = f"{drawn}\n"
    return result


if __name__ == "__main__":
    for file, drawn in pictures().items():
        file.write_text(drawn, encoding="utf-8")
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_parts(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
