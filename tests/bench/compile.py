"""The bench suite ``compile``: a newcomer's first solve of each game, and the one after it.

Each solve is a process of its own; the first of a board has an empty folder of compiled code.
Processor seconds, as compiling is all that tells the two apart.
"""

import os
import resource
import subprocess
import sys
import time

from luckbase.jobs import terminal

OTHERS = "*/tiny.toml"
"""The boards of other games, beside the given one's folder."""


def compile_suite(board, results):
    """Print the table."""
    boards = [(board, ("score_unit=500", "frontier=2"))]
    boards += [(other, ()) for other in sorted(board.parents[1].glob(OTHERS))
               if other.parent != board.parent]  # fmt: skip
    rows = []
    for i, (path, settings) in enumerate(boards):
        code = results / f"compiled-{i}"
        first, again = (_solve(path, settings, code, results / f"{i}-{k}") for k in range(2))
        rows.append(
            (
                " ".join([f"{path.parent.name}/{path.stem}", *settings]),
                *(f"{number:.1f} s" for number in (*first, *again)),
                f"{first[0] - again[0]:.1f} s",
            )
        )
    heads = ("board", "first, processor", "wall", "again, processor", "wall", "compiling")
    terminal.print_table("A first solve, with nothing compiled", heads, rows, sys.stdout)


def _solve(board, settings, code, results):
    """Processor seconds and seconds of one solve in a process of its own."""
    command = [sys.executable, "-m", "luckbase", "solve", str(board), "--results", str(results)]
    for setting in settings:
        command += ["--set", setting]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": str(code)}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.perf_counter() - began
