"""What the tests of board files share: the boards here, texts of boards, and reading them."""

import json
import re
import tempfile
from pathlib import Path

from luckbase.solver.board.file import read_board

BOARDS = Path(__file__).parents[3] / "boards" / "press-your-luck"
FEBRUARY = BOARDS / "1985-02.toml"
JUNE = BOARDS / "1984-06.toml"
TINY = BOARDS / "tiny.toml"
ALL = sorted(BOARDS.glob("*.toml"))

SMALL = """
game = "press-your-luck"
prize_value = 2500
[outcomes]
"whammy" = "1/6"
"500" = "1/4"
"1000" = "1/4"
"500 + spin" = "1/6"
"2000 + spin" = "1/6"
[solve]
score_unit = 500
score_cap = 10000
"""


def press_your_luck(path, **options):
    """The board in a file, known to be of this game."""
    return read_board(path, options)


def read(text, **options):
    """The board in a text, read from a file `x.toml`."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x.toml"
        path.write_text(text, encoding="utf-8")
        return press_your_luck(path, **options)


def board_text(rows, more=""):
    """The text of a board with these squares."""
    lines = [f"{n} = {json.dumps(slides)}" for n, slides in rows.items()]
    return "\n".join(['game = "press-your-luck"', "[squares]", *lines, more])


def edited(path, old, new):
    """The text of a board file with one line changed, the first that begins so."""
    text = path.read_text(encoding="utf-8")
    assert re.search(f"^{re.escape(old)}", text, re.MULTILINE), old
    return re.sub(f"^{re.escape(old)}", lambda _: new, text, count=1, flags=re.MULTILINE)


def assert_one_sentence(error):
    """What every refusal keeps to: one printable line of a bearable length, none of pydantic's."""
    text = str(error)
    assert text.isprintable() and 10 < len(text) < 600, text
    assert "pydantic" not in text and "validation error" not in text and "Input should" not in text
