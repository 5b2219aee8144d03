"""Searches on the tiny board, in one piece and by stages; what their tables hold, to compare."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.cluster.search import shards as level_shards
from tests import solving
from tests.places import TINY
from tests.shared import files_of  # noqa: F401  (for those who import it from here)

START = {"scores": "0,1000,500", "earned": "1,1,1"}
WIDE = {"scores": "0,1000,500", "earned": "1,1,2", "whammies": "3,3,2"}
"""Four levels and the end below it, 23 stages, in 24 small shards."""
OTHER = {"scores": "0,500,500", "earned": "0,1,1", "passed": "1,0,0", "whammies": "3,3,2"}
"""Some of what lies below it lies below WIDE too."""
SMALL = 300
"""States of a shard, about, for there to be many of them."""


def cut_small(patch, states=SMALL):
    """Shards of about so many states, from now on: some of several stages, and stages in boxes."""
    patch.setattr(level_shards, "SHARD_STATES", states)
    patch.setattr(level_shards, "SPARSE_BITS", 1)
    patch.setattr(level_shards, "FEW", 0)


def tiny(**options):
    return solving.load_game(solving.load_board(TINY, **options))


def search(results, roots=None, **how):
    """A search, below START if nothing is said."""
    game = tiny()
    start = game.parse(START)[None] if roots is None else roots
    return solving.solve_below(game.board, start, results=results, **how)


def by(results, roots=None, **how):
    """A search by stages, below WIDE if nothing is said."""
    start = tiny().parse(WIDE)[None] if roots is None else roots
    return search(results, start, **{"one_piece": 0, **how})


def rows_of(table):
    """All rows of a table's searches by ascending key, column by column: numbers to the bit. No key
    may stand twice."""
    read = [pq.ParquetFile(path).read() for path in sorted(table.rglob("*.parquet"))]
    every = pa.concat_tables([each.replace_schema_metadata(None) for each in read])
    every = every.take(np.argsort(every["key"].to_numpy()))
    keys = every["key"].to_numpy()
    assert len(np.unique(keys)) == len(keys)
    return {name: _column(every[name]) for name in every.column_names}


def _column(column):
    if pa.types.is_primitive(column.type):
        return column.to_numpy().tobytes(), column.null_count
    return column.to_pylist()
