"""Tables of every kind, small: full ones and searches, of every game, in files and in memory."""

from functools import cache

import luckbase
from tests.places import BOARDS, TINY

FAR = {"scores": "0,1000,500", "earned": "0,2,1"}

KINDS = (
    "press-your-luck", "press-your-luck in files", "goofspiel points", "goofspiel win", "jackpot",
    "shut the box", "skunk", "pig", "piglet", "search", "search of goofspiel",
    "full table and search",
)  # fmt: skip


def made(kind, folder):
    """A table of a kind, open; those in files lie in `folder`."""
    in_memory = {
        "press-your-luck": (TINY, {"frontier": 1}),
        "goofspiel points": (BOARDS / "goofspiel/points.toml", {"cards": 4}),
        "goofspiel win": (BOARDS / "goofspiel/win.toml", {"cards": 4}),
        "jackpot": (BOARDS / "jackpot/tiny.toml", {}),
        "shut the box": (BOARDS / "jackpot/shut-the-box.toml", {}),
        "skunk": (BOARDS / "skunk/tiny.toml", {}),
        "pig": (BOARDS / "pig/tiny.toml", {}),
        "piglet": (BOARDS / "pig/piglet.toml", {}),
    }
    if kind in in_memory:
        board, options = in_memory[kind]
        return luckbase.open(board, in_memory=True, **options)
    return _IN_FILES[kind](folder)


def _solved(board, folder, start=None, **options):
    read = luckbase.load_board(board, **options)
    solved = luckbase.solve(read, start, results=folder, workers=1)
    return luckbase.open(solved.table)


def _both(folder):
    _solved(TINY, folder, frontier=1).close()
    return _solved(TINY, folder, FAR, frontier=1)


CARDS = {"mine": "1,2,3,4", "theirs": "1,2,3,4", "deck": "1,2,3,4"}
_IN_FILES = {
    "press-your-luck in files": lambda folder: _solved(TINY, folder, frontier=1),
    "search": lambda folder: _solved(TINY, folder, FAR),
    "search of goofspiel": lambda folder: _solved(
        BOARDS / "goofspiel/points.toml", folder, CARDS, cards=4
    ),
    "full table and search": _both,
}


@cache
def kept(kind, folder):
    """The same, made once for a module."""
    return made(kind, folder / kind.replace(" ", "-"))
