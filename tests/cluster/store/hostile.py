"""Tables of strangers: copies of real ones with one thing changed and every hash correct again."""

import hashlib
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.cluster.store.manifest import NAME, Roots, digest, seal, search_part
from luckbase.cluster.store.parquet import CHECKS, Writer
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest


def form_of(table):
    """The manifest of a table, as JSON without its check."""
    form = json.loads((table / NAME).read_bytes())
    del form["check"]
    return form


def sealed(table, form):
    """Write a manifest with a correct check; numbers may be such as JSON does not have."""
    try:
        (table / NAME).write_bytes(seal(form))
    except ValueError:
        sealed_text(table, json.dumps(form, sort_keys=True, separators=(",", ":")))


def sealed_text(table, text):
    """Write a manifest of this text with a correct check."""
    check = hashlib.sha256(text[:-1].encode()).hexdigest()[:32]
    (table / NAME).write_text(f'{text[:-1]},"check":"{check}"}}\n')


def edited(table, path, value):
    """Change one value of the manifest, by its path such as ``files.0.rows``. A function makes the
    new value of the old one."""
    form = inner = form_of(table)
    *keys, last = (int(key) if key.isdigit() else key for key in path.split("."))
    for key in keys:
        inner = inner[key]
    inner[last] = value(inner.get(last)) if callable(value) else value
    sealed(table, form)


def entry_at(table, number=0):
    """The entry of a file, by its number in the manifest."""
    manifest = read_manifest(Folder(table), table)
    return manifest.files[sorted(manifest.files)[number]]


def replaced(table, entry, new):
    """Put another entry of a file into the manifest."""
    form = form_of(table)
    form["files"] = [vars(new) if f["name"] == entry.name else f for f in form["files"]]
    sealed(table, form)


def rows_changed(table, change, number=0, group=None, dictionary=("best",)):
    """Rewrite a file with other rows, change(rows); the manifest has its new hashes."""
    entry = entry_at(table, number)
    path = table / entry.place
    rows = change(pq.ParquetFile(path, read_dictionary=["best"]).read())
    names = [name for name in dictionary if name in rows.column_names]
    how = {"use_dictionary": names or False, "write_statistics": ["key"]}
    with Writer(path, rows.schema, {}, **how) as writer:
        for start in range(0, max(1, len(rows)), group or entry.row_group_rows):
            writer.write(rows.slice(start, group or entry.row_group_rows))
    replaced(table, entry, replace(entry, **writer.sums))


def with_column(name, make):
    """A change of rows: another column of this name, made of the rows."""

    def change(rows):
        column = make(rows)
        column = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
        return rows.set_column(rows.column_names.index(name), name, column)

    return change


def numbers(rows, name):
    return rows[name].to_numpy().copy()


def off_by(name, amount, row=17):
    """A change of rows: one number of a column is another one."""

    def make(rows):
        values = numbers(rows, name)
        values[row] += np.asarray(amount).astype(values.dtype)
        return values

    return with_column(name, make)


def footer_changed(table, change, number=0):
    """Rewrite what the footer of a file says of its row groups, with correct hashes."""
    entry = entry_at(table, number)
    path = table / entry.place
    file = pq.ParquetFile(path, read_dictionary=["best"])
    checks = json.loads(file.metadata.metadata[CHECKS.encode()])

    groups = [file.read_row_group(number) for number in range(file.num_row_groups)]

    class Changed(Writer):
        def __exit__(self, kind, error, trace):
            self._checks = change(checks)
            super().__exit__(kind, error, trace)

    with Changed(path, file.schema_arrow, {}, use_dictionary=["best"]) as writer:
        for rows in groups:
            writer.write(rows)
    replaced(table, entry, replace(entry, **writer.sums))


def special(table, kind, name=None):
    """Put something that is no file in the place of a file, or of the manifest."""
    path = table / (name or entry_at(table).place)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind)


def half(table):
    """Make a table half-solved: its last files are in no manifest, and nothing is done."""
    form = form_of(table)
    form["files"] = form["files"][: len(form["files"]) // 2]
    form["done"] = []
    sealed(table, form)


def other_roots(table, start):
    """Say that a search began at other states: its part and its files have the names of these."""
    form = form_of(table)
    (goal,), (done,) = form["goals"], form["done"]
    goal["roots"] = {"start": start}
    part = search_part(Roots(start))
    (table / goal["part"]).rename(table / part)
    for entry in form["files"]:
        entry["name"], entry["at"] = (
            entry[key].replace(goal["part"], part) for key in ("name", "at")
        )
        entry["part"] = part
    goal["part"] = part
    done["ask"] = digest(json.dumps([part, goal["reach"], goal["roots"]], sort_keys=True))
    sealed(table, form)


def linked(table, name):
    """Put a link into the place of a file or folder of a table: it leads beside the results, where
    what was there is now."""
    outside = table.parents[3] / "outside" / table.parents[2].name
    outside.mkdir(parents=True)
    (outside / "mine").write_text("mine")
    if (table / name).exists():
        (table / name).rename(outside / name)
    (table / name).symlink_to(outside / name)


def copy_of(table, folder):
    """A copy of a table in a folder of its own."""
    return shutil.copytree(table, folder / table.parents[1].name / table.parent.name / table.name)
