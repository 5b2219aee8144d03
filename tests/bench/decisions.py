"""The bench suite ``decisions``: tables of one board with payoffs, as far as they fit on this disk,
and with payoffs of one spin and decisions beyond.
"""

import shutil
import sys

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests import solving
from tests.bench.timing import solved

FRONTIERS = (4, 8, 12)
SETTINGS = {"score_unit": 500}
PAID = 2_000_000_000
"""States of which payoffs are solved too: ten bytes each with what is free beside them."""


def decisions_suite(board, results):
    """Print the table."""
    rows = [row for frontier in FRONTIERS for row in _tables(board, results, frontier)]
    heads = ("frontier", "states", "table of", "time", "M states/s", "peak memory", "on disk",
             "bytes a state")  # fmt: skip
    terminal.print_table("One board in both kinds of table", heads, rows, sys.stdout)


def _tables(board, results, frontier):
    """Of a frontier a row of each kind of table that fits; each is removed again."""
    settings = SETTINGS | {"frontier": frontier}
    wide = SETTINGS | {"frontier": 1, "decisions": frontier}
    layout = solving.load_layout(solving.load_board(board, **settings))
    states = sum(map(layout.rows, layout.tiers()))
    rows = []
    for kind in ("payoffs", "decisions")[states > PAID :]:
        folder = results / f"{kind}-{frontier}"
        said, *_ = solved(board, wide if kind == "decisions" else settings, folder)
        size = sentences.size(said["bytes"])
        a_state = f"{said['bytes'] / said['states']:.4f}"
        rows.append((
            str(frontier), sentences.count(said["states"]), kind,
            sentences.duration(said["seconds"]), f"{said['states_per_second'] / 1e6:.1f}",
            sentences.size(said["peak_memory"]), size, a_state,
        ))  # fmt: skip
        shutil.rmtree(folder)
    return rows
