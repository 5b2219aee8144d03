"""``python -m tests.bench SUITE [BOARD]``: how fast, how large, on this machine; each suite a table
with its own peers.

* ``kernel``: states a second of the dense kernel on one core, against the same states through the
  game's transition (`solver.search.bellman`).
* ``solve``: full tables end to end, each in a process of its own: compute, end to end, bytes,
  memory.
* ``store``: encodings of one tier's payoffs and state columns: nanoseconds and bytes a row.
* ``probe``: one state and a million of them; then every action of random states, one by one, in a
  batch, and of the rows of an export.
* ``decisions``: tables of payoffs and of decisions of up to twelve spins: time, memory, bytes. It
  takes 19 GB of memory and half an hour.
* ``search``: states with known payoffs (docs/numbers.md#numbers-of-this-project) from the
  root, with no table, one worker; then two larger ones by stages, with 1 and 2 workers.
* ``replay``: times of shards through the real schedule, on 16, 128 and 1,024 cores.
* ``diff``: two tables of 42.9 million states each, a slide's amount changed between them, and two
  eras: the scan, the prices, nanoseconds each.
* ``compile``: the first solve of each game with nothing compiled, and the one after it.
* ``peers``: other programs at our work, and we, in turns; ``--python`` names that of their
  environment.

Numbers of one run stand beside each other; compare ratios, not runs.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.compile import compile_suite
from tests.bench.decisions import decisions_suite
from tests.bench.diff import diff_suite
from tests.bench.peers import peers_suite
from tests.bench.probe import probe_suite
from tests.bench.replay import replay_suite
from tests.bench.search import search_suite
from tests.bench.timing import best_of, solved
from tests.places import BOARDS

SUITES = (
    "kernel", "solve", "store", "probe", "decisions", "search", "replay", "diff", "compile",
    "peers",
)  # fmt: skip
ABOUT = "Time the kernel, whole solves, the store and the probe, side by side with peers."
BOARD = BOARDS / "press-your-luck/1985-02.toml"
LONG = ("decisions", "peers")
USUAL = tuple(suite for suite in SUITES if suite not in LONG)  # a quarter of an hour, 13 GB of disk
KERNELS = (500, 3), (500, 5), (250, 3), (250, 4)
"""The score unit and the frontier of the boards whose largest tier `kernel` solves."""
TABLES = (500, 2), (500, 3), (250, 2)
"""Those of the tables that `solve` solves."""


def main(words=None):
    """Run a suite, or all but the long ones."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=ABOUT)
    parser.add_argument("suite", metavar="SUITE", choices=(*SUITES, "all"),
                        help=f"{', '.join(SUITES)}; or all (not {', '.join(LONG)})")  # fmt: skip
    parser.add_argument("board", metavar="BOARD", nargs="?", type=Path, default=BOARD,
                        help="with the options score_unit and frontier; 1985-02")  # fmt: skip
    parser.add_argument("--results", metavar="DIR", type=Path,
                        help="where to solve; a temporary folder if not given")  # fmt: skip
    peers = parser.add_argument_group("peers")
    peers.add_argument("--python", metavar="PATH", type=Path,
                       help="the Python of the environment of the other programs")  # fmt: skip
    asked = parser.parse_args(words)
    run = {
        "kernel": _kernel, "solve": _solve, "store": _store, "probe": probe_suite,
        "decisions": decisions_suite, "search": search_suite, "replay": replay_suite,
        "diff": diff_suite, "compile": compile_suite,
        "peers": partial(peers_suite, python=asked.python),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
        for suite in USUAL if asked.suite == "all" else [asked.suite]:
            run[suite](asked.board, asked.results or Path(folder))


def _layout(board, **settings):
    from tests import solving

    return solving.load_layout(solving.load_board(board, **settings))


def _largest(layout):
    return max(layout.tiers(), key=lambda tier: (layout.rows(tier), layout.tier_number(tier)))


def _kernel(board, results):
    """Children are random: the kernel's time does not depend on payoffs."""
    import numpy as np

    rows = []
    for unit, frontier in KERNELS:
        layout = _layout(board, score_unit=unit, frontier=frontier)
        layout.compile()
        tier = _largest(layout)
        rng = np.random.default_rng(0)
        shapes = {child: layout.shape(child) for child in layout.children(tier)}
        random = {shape: rng.random(shape, np.float64) / 2 for shape in set(shapes.values())}
        out = np.zeros(layout.shape(tier))

        fetch = partial(_child_of, random, shapes)
        work = partial(layout.solve_tier, tier, out, fetch, lambda: False)
        seconds = best_of(3, work) / layout.rows(tier)
        rules = _rules_seconds(layout, tier)
        rows.append((
            f"${unit}, {frontier} spins", sentences.count(layout.rows(tier)),
            f"{seconds * 1e9:.1f}", f"{1e-6 / seconds:.0f}", f"{1e-6 / rules:.2f}",
            f"{rules / seconds:.0f}",
        ))  # fmt: skip
    heads = ("largest tier", "states", "ns a state", "kernel M states/s", "rules M states/s", "x")
    terminal.print_table("Compute only, one core", heads, rows, sys.stdout)


def _child_of(random, shapes, child):
    return random[shapes[child]]


def _rules_seconds(layout, tier):
    """Seconds a state of one step of the rules over random children (compiled, any game)."""
    import numpy as np

    from luckbase.solver.search.bellman import evaluate
    from luckbase.solver.search.expand import expand

    rows = np.random.default_rng(0).integers(0, layout.rows(tier), 100_000)
    states = layout.states_at(tier, rows)
    payoffs = np.zeros((len(expand(layout.game, states).children), layout.game.players))
    return best_of(2, lambda: evaluate(expand(layout.game, states), payoffs)) / len(states)


def _solve(board, results):
    rows = []
    for unit, frontier in TABLES:
        settings = {"score_unit": unit, "frontier": frontier}
        said, seconds, _ = solved(board, settings, results)
        rows.append((
            f"${unit}, frontier {frontier}", sentences.count(said["states"]),
            f"{said['solved_now'] / said['solve_seconds'] / 1e6:.0f}",
            f"{said['states_per_second'] / 1e6:.1f}", f"{seconds / said['states'] * 1e9:.0f}",
            f"{said['bytes'] / said['states']:.2f}", sentences.size(said["bytes"]),
            sentences.size(said["peak_memory"]), sentences.duration(said["seconds"]),
        ))  # fmt: skip
    heads = (
        "table", "states", "kernel, M/s a core", f"end to end, M/s with {said['workers']}",
        "processor, ns a state", "bytes a state", "on disk", "peak memory", "time",
    )  # fmt: skip
    terminal.print_table("Whole tables, disk included", heads, rows, sys.stdout)


def with_descendants(layout, tier):
    """A tier and all that it reads, children first."""
    found = {}

    def visit(one):
        if one not in found:
            for child in layout.children(one):
                visit(child)
            found[one] = None

    visit(tier)
    return list(found)


def solve_in_memory(layout, tier):
    """The payoffs of one tier, its descendants solved first, nothing on disk."""
    from luckbase.solver.dense import InMemory

    return InMemory(layout, with_descendants(layout, tier)).payoffs[tier]


def _store(board, results):
    import pyarrow as pa

    from luckbase.cluster.store.format import as_table

    layout = _layout(board, score_unit=500, frontier=3)
    layout.compile()
    tier = _largest(layout)
    payoffs = solve_in_memory(layout, tier)
    count = layout.rows(tier)
    columns = layout.payoff_rows(tier, payoffs, 0, count)
    values = pa.table({f"payoff_{i + 1}": column for i, column in enumerate(columns)})
    states = as_table(dict(layout.state_rows(tier, 0, count)))
    split = {"use_byte_stream_split": True}
    usual = {"compression": "snappy", "use_dictionary": True}
    variants = [
        ("payoffs, pyarrow's defaults", values, usual),
        ("payoffs, split lz4", values, {"compression": "lz4", **split}),
        ("payoffs, split zstd -1 *", values, {"compression": "zstd", "compression_level": -1,
                                              **split}),
        ("states, pyarrow's defaults", states, usual),
        ("states, plain lz4 *", states, {"compression": "lz4"}),
    ]  # fmt: skip
    rows = [_encoded(name, table, how, results) for name, table, how in variants]
    heads = ("encoding (* ours)", "write ns a row", "read ns a row", "bytes a row")
    title = f"One tier of {sentences.count(count)} states at $500, one thread"
    terminal.print_table(title, heads, rows, sys.stdout)


def _encoded(name, table, how, folder):
    import pyarrow.parquet as pq

    from luckbase.cluster.store.format import ROW_GROUP

    path = folder / "bench.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    how = {"use_dictionary": False, "write_statistics": False, "row_group_size": ROW_GROUP} | how
    write = best_of(2, lambda: pq.write_table(table, path, data_page_size=1 << 24, **how))
    read = best_of(2, lambda: pq.ParquetFile(path).read(use_threads=False))
    size = path.stat().st_size / len(table)
    path.unlink()
    return name, f"{write / len(table) * 1e9:.1f}", f"{read / len(table) * 1e9:.1f}", f"{size:.2f}"
