"""The bench suite ``decisions``: tables of one board with payoffs, as far as they fit on this disk,
and with payoffs of one spin and decisions beyond; and one tier's decisions in other encodings.
"""

import json
import shutil
import subprocess
import sys

import pyarrow as pa

from luckbase.cluster.store.format import write_decisions
from luckbase.cluster.store.storage import Folder
from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.dense import decisions_in_order
from luckbase.solver.game.capabilities import DecisionLayout
from tests import solving

FRONTIERS = (4, 8, 12)
SETTINGS = {"score_unit": 500}
PAID = 2_000_000_000
"""States of which payoffs are solved too: ten bytes each with what is free beside them."""
ENCODED = 3
"""The spins of the tier that is encoded."""


def decisions_suite(board, results):
    """Print both tables."""
    rows = [row for frontier in FRONTIERS for row in _tables(board, results, frontier)]
    heads = ("frontier", "states", "table of", "time", "M states/s", "peak memory", "on disk",
             "bytes a state")  # fmt: skip
    terminal.print_table("One board in both kinds of table", heads, rows, sys.stdout)
    tier, states, encoded = _encodings(board, results)
    heads = ("encoding (* ours)", "bytes", "bytes a state")
    of = [(name, sentences.size(size), f"{size / states:.4f}") for name, size in encoded.items()]
    title = f"Decisions of {tier}, {sentences.count(states)} states"
    terminal.print_table(title, heads, of, sys.stdout)


def _tables(board, results, frontier):
    """Of a frontier a row of each kind of table that fits; each is removed again."""
    settings = SETTINGS | {"frontier": frontier}
    wide = SETTINGS | {"frontier": 1, "decisions": frontier}
    layout = solving.load_layout(solving.load_board(board, **settings))
    states = sum(map(layout.rows, layout.tiers()))
    rows = []
    for kind in ("payoffs", "decisions")[states > PAID :]:
        folder = results / f"{kind}-{frontier}"
        command = [sys.executable, "-m", "luckbase", "solve", str(board), "--json", "--force",
                   "--results", str(folder)]  # fmt: skip
        for name, value in (wide if kind == "decisions" else settings).items():
            command += ["--set", f"{name}={value}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        said = json.loads(done.stdout.splitlines()[-1])
        size = sentences.size(said["bytes"])
        a_state = f"{said['bytes'] / said['states']:.4f}"
        rows.append((
            str(frontier), sentences.count(said["states"]), kind,
            sentences.duration(said["seconds"]), f"{said['states_per_second'] / 1e6:.1f}",
            sentences.size(said["peak_memory"]), size, a_state,
        ))  # fmt: skip
        shutil.rmtree(folder)
    return rows


def _encodings(board, results):
    """The largest tier's name, its states, and bytes in each encoding."""
    game = solving.load_game(solving.load_board(board, **SETTINGS, frontier=1, decisions=ENCODED))
    layout = game.need(DecisionLayout)
    dense, storage = layout.layout, Folder(results / "encoded")
    tier = max(dense.tiers(), key=dense.rows)
    codes = next(noted for one, _, noted in decisions_in_order(layout)
                 if one == tier)  # fmt: skip
    zstd = {level: pa.Codec("zstd", compression_level=level) for level in (1, 6)}
    size = {
        "a byte a state, zstd 1, one stream": len(zstd[1].compress(codes)),
        "a byte a state, zstd 6, one stream": len(zstd[6].compress(codes)),
        "Parquet, a row a state *": write_decisions(storage, layout, tier, codes).entry.bytes,
    }
    shutil.rmtree(results / "encoded")
    fields = ", ".join(f"{name} {value}" for name, value in dense.tier_fields(tier).items())
    return fields, len(codes), size
