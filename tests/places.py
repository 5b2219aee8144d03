"""Folders of this checkout, and the product's files."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOARDS = ROOT / "boards"
TINY = BOARDS / "press-your-luck/tiny.toml"
"""The smallest board of Press Your Luck."""
IN_MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""A folder in memory: to flush a file takes milliseconds on a disk, and tests flush many."""


def product_files():
    """Return every Python file of the three rooms."""
    return [file for room in ("solver", "cluster", "jobs") for file in (ROOT / room).rglob("*.py")]


@cache
def parsed(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))
