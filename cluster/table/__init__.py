"""Tables, on disk (format 3) and in memory: what is in a folder, and who reads and writes it.

One folder holds everything that was solved under one rules identity (`solver.board.identity`)::

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

* `table`: `Table`, what people have in hand; `lookup`: as far as it answers by state.
* `stored`: one in a folder; `memory`: one in none.
* `part`: what holds rows. `dense`: the full table, `tiers` where it is in files. `sparse`: what is
  below some roots, `keyed` where it is in files.

Bytes:

* `storage`: put, read, list, delete. `ledger`, `lines`: what is committed, and the seals.
* `format`: what is in the Parquet files, and how they are made; `parquet`: reads them, and refuses
  a byte that changed. `folder`: what else lies there, whether all is whole.

Questions:

* `find`: a person's words to a folder. `answer`: what is said of a state; `above`: of one that no
  part holds; `off`: how far off that may be. `moves`: all that can happen at a state; `grid`: a
  table over two of its columns.
* `every_action`: what is said of many states at once, as arrays; `action_columns`: as columns.
* `frames`: many states in, many answers out; `files`: the same in files. `export`: all rows, as a
  stream; `export_files`: into a file; `where`: which of them.
* `agent`: a table's best actions as an agent.

Whole tables: `verify`, `status`, `summary`. Two of them: `compare`, of `pairs` of states; `prices`:
what an old habit costs, with tiers `held` in memory; `turns`: at what number decisions turn;
`reached`: what can come up, from `starts`; `differences`: all that as data; `changes_file`: as a
file.

Version history: 1 (2026-11) first. 2 (2026-11) tables of roots, parts, an error a file. 3 (2026-11)
one folder a rules identity, a ledger that only grows, every row group sealed, `best`, `to_act`,
`margin`, all state columns in the file.
"""

from collections.abc import Callable

FORMAT = 3
RUNNING = "running.json"
OnRows = Callable[[int, int], None]
"""Told how many rows were gone through, and of how many; (0, …) when that begins."""


def nobody(done: int, total: int) -> None:
    """Nobody is told."""
