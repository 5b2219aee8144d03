"""The bench suites of whole solves, each in a process of its own: ``solve``, ``decisions`` and
``compile``."""

import shutil
import sys

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.timing import solved

TABLES = (
    {"score_unit": 500, "frontier": 2}, {"score_unit": 500, "frontier": 3},
    {"score_unit": 250, "frontier": 2},
)  # fmt: skip
DECIDED = (
    {"score_unit": 500, "frontier": 4},
    *({"score_unit": 500, "frontier": 1, "decisions": spins} for spins in (4, 8, 12)),
)
"""Of eight spins payoffs would take more than the disk here."""
OTHERS = "*/tiny.toml"
"""The boards of other games, beside the given one's folder."""


def solve_suite(board, results, tables=TABLES):
    """Print a line for each table; it is removed again."""
    rows = []
    for settings in tables:
        said, seconds, _ = solved(board, settings, results / "solve")
        rows.append((
            sentences.fields(settings), sentences.count(said["states"]),
            f"{said['solved_now'] / said['solve_seconds'] / 1e6:.0f}",
            f"{said['states_per_second'] / 1e6:.1f}", f"{seconds / said['states'] * 1e9:.0f}",
            f"{said['bytes'] / said['states']:.4f}", sentences.size(said["bytes"]),
            sentences.size(said["peak_memory"]), sentences.duration(said["seconds"]),
        ))  # fmt: skip
        shutil.rmtree(results / "solve")
    heads = (
        "table", "states", "kernel, M/s a core", f"end to end, M/s with {said['workers']}",
        "processor, ns a state", "bytes a state", "on disk", "peak memory", "time",
    )  # fmt: skip
    terminal.print_table("Whole tables, disk included", heads, rows, sys.stdout)


def decisions_suite(board, results):
    """Print a line for each table of payoffs or, beyond one spin, of decisions."""
    solve_suite(board, results, DECIDED)


def compile_suite(board, results):
    """Print the processor seconds of a newcomer's first solve of each game, which begins with an
    empty folder of compiled code, and of the one after it."""
    others = [each for each in sorted(board.parents[1].glob(OTHERS)) if each.parent != board.parent]
    rows = []
    for i, path in enumerate([board, *others]):
        settings = {} if i else TABLES[0]
        code = {"NUMBA_CACHE_DIR": str(results / f"compiled-{i}")}
        first, again = (solved(path, settings, results / f"{i}-{k}", **code)[1:] for k in range(2))
        rows.append((
            f"{path.parent.name}/{path.stem} {sentences.fields(settings)}",
            *(f"{number:.1f} s" for number in (*first, *again)), f"{first[0] - again[0]:.1f} s",
        ))  # fmt: skip
    heads = ("board", "first, processor", "wall", "again, processor", "wall", "compiling")
    terminal.print_table("A first solve, with nothing compiled", heads, rows, sys.stdout)
