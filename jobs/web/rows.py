"""Many states in one request: JSON lines, CSV or Parquet in, the same out, as ``query --batch``."""

from __future__ import annotations

import io
import re

import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.cluster.table.files import encode, rows_in
from luckbase.cluster.table.table import Table
from luckbase.solver.errors import OptionError, StateError

KINDS = {
    "application/x-ndjson": "jsonl", "application/jsonl": "jsonl", "application/json": "jsonl",
    "application/vnd.apache.parquet": "parquet", "application/octet-stream": "parquet",
    "text/csv": "csv",
}  # fmt: skip
SENT = {"jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet",
        "csv": "text/csv"}  # fmt: skip
MOST_BYTES = 64_000_000
MOST_ROWS = 1_000_000
MOST_READ = 1_000_000_000
"""Bytes that a Parquet file may come to when it is read."""
PIECE = 20_000
"""Rows that are answered together: each has some 60 children."""


def kind_of(content_type: str, body: bytes) -> str:
    """The format that a request names, or else that its bytes show. Raises OptionError."""
    name = content_type.partition(";")[0].strip().lower()
    if body[:4] == b"PAR1":
        return "parquet"
    if name in KINDS:
        return KINDS[name]
    if body.lstrip()[:1] == b"{":
        return "jsonl"
    raise OptionError(
        f"content-type: '{name[:40]}' is none of {', '.join(list(KINDS)[:1] + list(KINDS)[3:])}"
    )


def answered(table: Table, body: bytes, kind: str, best: bool) -> bytes:
    """The rows with payoffs, in their format. Raises OptionError, StateError with the row."""
    if kind == "parquet":
        _check_parquet(body)
    read = rows_in(body, kind, "body")
    if len(read) > MOST_ROWS:
        raise OptionError(f"body: has {len(read):,} rows; the most is {MOST_ROWS:,}")
    pieces = []
    for start in range(0, max(len(read), 1), PIECE):
        try:
            piece = read.slice(start, PIECE)
            pieces.append(table.values(piece, best=best, toss_up=best, solve_id=True))
        except StateError as error:
            raise StateError(_row_moved(str(error), start)) from None
    out = io.BytesIO()
    encode(pa.concat_tables(pieces), out, kind)
    return out.getvalue()


def _check_parquet(body: bytes) -> None:
    """Raises OptionError for a file that is none, or comes to more than `MOST_READ` bytes."""
    try:
        about = pq.ParquetFile(pa.BufferReader(body)).metadata
    except (pa.ArrowException, OSError) as error:
        raise OptionError(f"body: {' '.join(str(error).split())[:150].rstrip('.')}") from None
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if about.num_rows > MOST_ROWS or size > MOST_READ:
        raise OptionError(
            f"body: has {about.num_rows:,} rows of {size:,} bytes; the most is {MOST_ROWS:,} rows "
            f"of {MOST_READ:,} bytes"
        )


def _row_moved(sentence: str, by: int) -> str:
    return re.sub(r"^row ([0-9]+):", lambda found: f"row {int(found[1]) + by}:", sentence)
