"""The bench suite ``diff``: a board against itself with other amounts, table against table."""

import sys
import time

from luckbase.jobs import terminal
from luckbase.solver import sentences

REACH = {"score_unit": 500, "frontier": 2}
"""42.9 million states."""
OTHER_PRIZE = 3500
"""Dollars: the board against itself with other prizes."""
MANY = {"third_place_spins": False}
"""A rule that moves a million decisions."""


def diff_suite(board, results):
    """Print how long comparing takes, and what of it is pricing."""
    from tests import solving

    def solved(folder, file=board, **changed):
        read = solving.load_board(file, **REACH, **changed)
        return solving.solve_board(read, results=results / folder).table

    first = solved("diff")
    others = [
        (f"prizes of ${OTHER_PRIZE:,}", solved("diff", prize_value=OTHER_PRIZE)),
        *((f"{path.stem}, another era", solved("diff", path)) for path in _siblings(board)),
        ("the third may pass", solved("diff", **MANY)),
    ]
    rows = [_timed(name, first, other) for name, other in others]
    heads = (
        "against", "states", "time", "of cores", "ns a state of one core",
        "priced", "pricing", "us each", "moved",
        "toss-ups", "mean cost",
    )  # fmt: skip
    title = f"{board.stem} at $500, frontier 2, against other tables; both on disk"
    terminal.print_table(title, heads, rows, sys.stdout)


def _siblings(board):
    """The other board of the same shape beside it, if there is one."""
    others = [path for path in sorted(board.parent.glob("*.toml")) if path != board]
    return [path for path in others if len(path.stem) == len(board.stem)][:1]


def _timed(name, first, other):
    from unittest.mock import patch

    import luckbase
    from luckbase.cluster.answers import diff

    pricing = []
    price = diff.priced

    def timed(*given):
        began = time.perf_counter()
        made = price(*given)
        pricing.append(time.perf_counter() - began)
        return made

    with luckbase.open(first) as one, luckbase.open(other) as two:
        one.diff(two, sample=1000)  # compiles
        with patch.object(diff, "priced", timed):
            before = time.process_time()
            began = time.perf_counter()
            found = one.diff(two)
            seconds = time.perf_counter() - began
            busy = time.process_time() - before
    priced = found.actions + found.toss_ups + found.one_sided
    each = sum(pricing) / max(priced, 1) * 1e6
    return (
        name, sentences.count(found.states), f"{seconds:.1f} s", f"{busy:.1f} s",
        f"{busy / max(found.states, 1) * 1e9:.0f}", f"{priced:,}", f"{sum(pricing):.1f} s",
        f"{each:.1f}", f"{found.actions:,}", f"{found.toss_ups:,}", f"{found.mean:.2g}",
    )  # fmt: skip
