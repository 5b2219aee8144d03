"""The bench suite ``diff``: a board against itself with another amount, and with another rule."""

import sys
import time
from unittest.mock import patch

import luckbase
from luckbase.cluster.answers import diff
from luckbase.jobs import terminal
from luckbase.solver import sentences

REACH = {"score_unit": 500, "frontier": 2}
"""42.9 million states."""
CHANGES = {
    "prizes of $3,500": {"prize_value": 3500},
    "the third may pass": {"third_place_spins": False},  # moves a million decisions
}


def diff_suite(board, results):
    """Print how long comparing takes, and what of it is pricing."""

    def solved(**changed):
        read = luckbase.load_board(board, **REACH, **changed)
        return luckbase.solve(read, results=results / "diff").table

    first = solved()
    rows = [_timed(name, first, solved(**changed)) for name, changed in CHANGES.items()]
    heads = ("against", "states", "time", "of cores", "ns a state of one core", "priced", "pricing",
             "us each", "moved", "toss-ups", "mean cost")  # fmt: skip
    terminal.print_table("Two tables of 42.9 million states", heads, rows, sys.stdout)


def _timed(name, first, other):
    pricing, price = [], diff.priced

    def timed(*given):
        began = time.perf_counter()
        made = price(*given)
        pricing.append(time.perf_counter() - began)
        return made

    with luckbase.open(first) as one, luckbase.open(other) as two:
        one.diff(two, sample=1000)  # compiles
        with patch.object(diff, "priced", timed):
            before, began = time.process_time(), time.perf_counter()
            found = one.diff(two)
            seconds, busy = time.perf_counter() - began, time.process_time() - before
    priced = found.actions + found.toss_ups + found.one_sided
    return (
        name, sentences.count(found.states), f"{seconds:.1f} s", f"{busy:.1f} s",
        f"{busy / max(found.states, 1) * 1e9:.0f}", f"{priced:,}", f"{sum(pricing):.1f} s",
        f"{sum(pricing) / max(priced, 1) * 1e6:.1f}", f"{found.actions:,}", f"{found.toss_ups:,}",
        f"{found.mean:.2g}",
    )  # fmt: skip
