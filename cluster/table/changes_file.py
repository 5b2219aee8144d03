"""Every decision that moved, as a file that grows while two tables are compared: CSV or Parquet.

The columns: the state's, as the second table has them; ``to_act``; ``best_first``, ``best_second``;
``old`` and ``new``, what the two are worth to who acts in the second table; ``cost``, null where
there is none to tell; ``toss_up``; ``payoffs_apart``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from luckbase.cluster.table.files import whole_file
from luckbase.cluster.table.format import as_table, nullable
from luckbase.cluster.table.prices import TOSS_UP, Changed, Priced
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import option

ENDINGS = (".csv", ".parquet")


@contextmanager
def changes_file(out: str | os.PathLike[str], game: Game) -> Iterator[ChangesFile]:
    """A file of changes; whole when it is left without an error, else not there.

    Raises OptionError for another ending, and where it can not be written; OSError, with its name,
    where the disk is full.
    """
    ending = Path(out).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"{option('out')}: {out}: end it in {' or '.join(ENDINGS)}")
    with whole_file(os.fspath(out)) as file:
        made = ChangesFile(file, game, ending == ".csv")
        try:
            yield made
        except BaseException:
            with suppress(OSError):
                made.close()
            raise
        made.close()


class ChangesFile:
    """An open file of changes, as CSV or Parquet."""

    def __init__(self, file: IO[bytes], game: Game, is_csv: bool) -> None:
        self.game = game
        nothing = np.empty((0, game.field_count), np.int64)
        none, no = np.empty(0, np.int64), np.empty(0)
        rows = self._rows(
            Changed((nothing, nothing), (none, none), no, no),
            Priced(np.empty(0, np.int8), none, no, no, no), [],
        )  # fmt: skip
        kind = pa.csv.CSVWriter if is_csv else pq.ParquetWriter
        self._writer: Any = kind(pa.PythonFile(file, "w"), rows.schema)

    def write(self, changed: Changed, priced: Priced, names: Sequence[str]) -> None:
        """Write some more."""
        self._writer.write_table(self._rows(changed, priced, names))

    def close(self) -> None:
        """Write what is left; the file itself stays open."""
        self._writer.close()

    def _rows(self, changed: Changed, priced: Priced, names: Sequence[str]) -> pa.Table:
        state = as_table(dict(self.game.table_columns(changed.states[1])))
        columns = {
            name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
            for name, column in zip(state.column_names, state.columns, strict=True)
        }
        return pa.table(columns | {
            "to_act": pa.array((priced.actors + 1).astype(np.int8)),
            "best_first": _named(changed.best[0], names),
            "best_second": _named(changed.best[1], names),
            "old": nullable(priced.old), "new": nullable(priced.new), "cost": nullable(priced.cost),
            "toss_up": pa.array(priced.kind == TOSS_UP),
            "payoffs_apart": pa.array(np.asarray(changed.apart, np.float64)),
        })  # fmt: skip


def _named(best: Ints, names: Sequence[str]) -> pa.Array:
    every = pa.array([*names, None], pa.string())
    return every.take(pa.array(np.where(best < 0, len(names), best)))
