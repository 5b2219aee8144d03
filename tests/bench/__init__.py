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
* ``search``: from the root, with no table: in one piece, and by stages with 1 and 2 workers.
* ``replay``: times of shards through the real schedule, on 16, 128 and 1,024 cores.
* ``diff``: two tables of 42.9 million states each, an amount or a rule changed between them: the
  scan, the prices, nanoseconds each.
* ``compile``: the first solve of each game with nothing compiled, and the one after it.
* ``peers``: other programs at our work, and we, in turns; ``--python`` names that of their
  environment.

Numbers of one run stand beside each other; compare ratios, not runs.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

from tests.bench.diff import diff_suite
from tests.bench.kernel import kernel_suite
from tests.bench.peers import peers_suite
from tests.bench.probe import probe_suite
from tests.bench.replay import replay_suite
from tests.bench.search import search_suite
from tests.bench.solve import compile_suite, decisions_suite, solve_suite
from tests.bench.store import store_suite
from tests.places import BOARDS

SUITES = {
    "kernel": kernel_suite, "solve": solve_suite, "store": store_suite, "probe": probe_suite,
    "decisions": decisions_suite, "search": search_suite, "replay": replay_suite,
    "diff": diff_suite, "compile": compile_suite, "peers": peers_suite,
}  # fmt: skip
ABOUT = "Time the kernel, whole solves, the store and the probe, side by side with peers."
LONG = ("decisions", "peers")  # without them a quarter of an hour, 13 GB of disk


def main(words=None):
    """Run a suite, or all but the long ones."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=ABOUT)
    parser.add_argument("suite", metavar="SUITE", choices=(*SUITES, "all"),
                        help=f"{', '.join(SUITES)}; or all (not {', '.join(LONG)})")  # fmt: skip
    parser.add_argument("board", metavar="BOARD", nargs="?", type=Path,
                        default=BOARDS / "press-your-luck/1985-02.toml",
                        help="with the options score_unit and frontier; 1985-02")  # fmt: skip
    parser.add_argument("--results", metavar="DIR", type=Path,
                        help="where to solve; a temporary folder if not given")  # fmt: skip
    parser.add_argument("--python", metavar="PATH", type=Path,
                        help="peers: the Python of the environment of other programs")  # fmt: skip
    asked = parser.parse_args(words)
    suites = {**SUITES, "peers": partial(peers_suite, python=asked.python)}
    usual = [name for name in SUITES if name not in LONG]
    with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
        for name in usual if asked.suite == "all" else [asked.suite]:
            suites[name](asked.board, asked.results or Path(folder))
