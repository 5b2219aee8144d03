"""Tables, on disk (format 3) and in memory: what is in a folder, and who reads and writes it.

One folder holds everything that was solved under one rules identity (`solver.board.model`)::

    results/<game>/<board>/<rules identity>/
        table.json            the head (`ledger`): which board and rules; never changes
        ledger/*.jsonl        what is committed: sealed lines (`ledger`)
        tiers/*.parquet       the full table: one file a tier, or a part of one (`format`)
        search/*.parquet      what lies below the roots of searches, rows by key
        search-<id>/*.parquet of one search that ends at another table
        spill/, running.json  while a solve runs; worth nothing afterwards
        log/*.log             what happened while one ran
        .lock                 who is solving now

A table, wherever it is:

* `table`: `Table`, what people have in hand, in a folder or in memory; `lookup`: as far as it
  answers by state.
* `parts`: what holds rows, and the full table; `keyed`: what is below some roots.

Bytes:

* `storage`: put, read, list, delete. `ledger`: what is committed, as sealed lines; `folder`: reads
  and commits them, and whether all is whole.
* `format`: what is in the Parquet files, and how they are made; `parquet`: reads them, and refuses
  a byte that changed.

Questions:

* `find`: a person's words to a folder. `answer`: what is said of a state, also of one that no part
  holds. `moves`: all that can happen at a state.
* `actions`: what is said of many states at once, as arrays, and how far off that may be; `columns`:
  the same as columns, and which rows are wanted.
* `frames`: many states in, many answers out; a table over two of its columns. `files`: states and
  rows in files. `export`: all rows, as a stream or into a file.

Whole tables: `verify`, `status`. Two of them: `diff`, of `pairs` of states; `prices`:
what an old decision costs; `comparison`: all that as data, and at what number decisions turn.

Version history: 1 (2026-11) first. 2 (2026-11) tables of roots, parts, an error a file. 3 (2026-11)
one folder a rules identity, a ledger that only grows, every row group sealed, `best`, `to_act`,
`margin`, all state columns in the file.
"""

from collections.abc import Callable
from typing import Literal

FORMAT = 3
RUNNING = "running.json"
Condition = Literal["complete", "partial", "stale", "damaged", "refused", "missing"]
"""Of a table."""
OnRows = Callable[[int, int], None]
"""Told how many rows were gone through, and of how many; (0, …) when that begins."""


def nobody(done: int, total: int) -> None:
    """Nobody is told."""
