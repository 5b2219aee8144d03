"""The bench suite ``compile``: a newcomer's first solve of each game, and the one after it.

Each solve is a process of its own; the first of a board has an empty folder of compiled code.
Processor seconds, as compiling is all that tells the two apart.
"""

import sys

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.timing import solved

OTHERS = "*/tiny.toml"
"""The boards of other games, beside the given one's folder."""


def compile_suite(board, results):
    """Print the table."""
    others = [each for each in sorted(board.parents[1].glob(OTHERS)) if each.parent != board.parent]
    rows = []
    for i, path in enumerate([board, *others]):
        settings = {} if i else {"score_unit": 500, "frontier": 2}
        code = {"NUMBA_CACHE_DIR": str(results / f"compiled-{i}")}
        first, again = (solved(path, settings, results / f"{i}-{k}", **code)[1:] for k in range(2))
        rows.append((
            f"{path.parent.name}/{path.stem} {sentences.fields(settings)}",
            *(f"{number:.1f} s" for number in (*first, *again)), f"{first[0] - again[0]:.1f} s",
        ))  # fmt: skip
    heads = ("board", "first, processor", "wall", "again, processor", "wall", "compiling")
    terminal.print_table("A first solve, with nothing compiled", heads, rows, sys.stdout)
