"""Tables on disk, format 3: what is in a table's folder, and who reads and writes it.

One folder holds everything that was solved under one rules identity (`solver.board.identity`)::

    results/<game>/<board>/<rules identity>/
        table.json            the head (`ledger`): which board and rules; never changes
        ledger/*.jsonl        what is committed: one sealed line each (`ledger`)
        tiers/*.parquet       the full table: one file a tier, or a part of one (`write`)
        search/*.parquet      what lies below the roots of searches, rows by key
        search-<id>/*.parquet of one search that was cut, or that ends at another table
        scratch/              while a solve runs; worth nothing afterwards
        .lock                 who is solving now

`table` is a table, wherever it is: `stored` in a folder, `memory` in none; its parts answer by row
(`dense`: `tiers` in files) or by key (`sparse`: `keyed` in files). `storage` puts and reads bytes;
`ledger` says what is committed; `write` makes the Parquet files, `sealed` reads them and refuses a
byte that changed; `find` takes a person's words to a folder. `answer` and `above` are what is said
of a state; `frames` answers many, `export` streams all, `where` picks some; `verify`, `compare`,
`status` and `health` look at whole tables.

Version history: 1 (2026-11) first. 2 (2026-11) tables of roots, parts, an error a file. 3 (2026-11)
one folder a rules identity, a ledger that only grows, every row group sealed, `best`, `to_act`,
`margin`, all state columns in the file.
"""

FORMAT = 3
