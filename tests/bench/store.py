"""The bench suite ``store``: encodings of one tier."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.cluster.store.format import ROW_GROUP, as_table
from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.dense import InMemory
from tests.bench.kernel import largest_tier
from tests.bench.timing import best_of

USUAL = {"compression": "snappy", "use_dictionary": True}
SPLIT = {"use_byte_stream_split": True}
VARIANTS = (
    ("payoffs, pyarrow's defaults", USUAL),
    ("payoffs, split lz4", {"compression": "lz4", **SPLIT}),
    ("payoffs, split zstd -1 *", {"compression": "zstd", "compression_level": -1, **SPLIT}),
    ("states, pyarrow's defaults", USUAL),
    ("states, plain lz4 *", {"compression": "lz4"}),
)


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


def store_suite(board, results):
    """Print the table."""
    layout, tier = largest_tier(board, score_unit=500, frontier=3)
    payoffs = InMemory(layout, with_descendants(layout, tier)).payoffs[tier]
    count = layout.rows(tier)
    columns = layout.payoff_rows(tier, payoffs, 0, count)
    tables = {
        "payoffs": pa.table({f"payoff_{i + 1}": column for i, column in enumerate(columns)}),
        "states": as_table(dict(layout.state_rows(tier, 0, count))),
    }
    results.mkdir(parents=True, exist_ok=True)
    rows = [
        (name, *_encoded(tables[name.partition(",")[0]], how, results / "bench.parquet"))
        for name, how in VARIANTS
    ]
    heads = ("encoding (* ours)", "write ns a row", "read ns a row", "bytes a row")
    title = f"One tier of {sentences.count(count)} states at $500, one thread"
    terminal.print_table(title, heads, rows, sys.stdout)


def _encoded(table, how, path):
    how = {"use_dictionary": False, "write_statistics": False, "row_group_size": ROW_GROUP} | how
    write = best_of(2, lambda: pq.write_table(table, path, data_page_size=1 << 24, **how))
    read = best_of(2, lambda: pq.ParquetFile(path).read(use_threads=False))
    sizes = (write * 1e9, read * 1e9, path.stat().st_size)
    path.unlink()
    return [f"{each / len(table):.2f}" for each in sizes]
