"""Killed at random moments, with one driver or two, a solve goes on to the same rows, and loses
no committed file: full tables with decisions in a folder and in an object store."""

import hashlib
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

from luckbase.cluster.answers.find import tables_in
from luckbase.cluster.store.storage import place_of, storage_at
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import LuckbaseError
from tests.places import BOARDS

BOARD = BOARDS / "press-your-luck/1985-02.toml"
OPTIONS = ["--set", "score_unit=1000", "--set", "frontier=2", "--set", "decisions=4"]
KILLS = 40
BOTH = 16
"""Kills of one of two drivers of a table."""


def begun(results, errors):
    words = ["solve", str(BOARD), *OPTIONS, "--workers", "1", "--results", results]
    return subprocess.Popen(
        [sys.executable, "-m", "luckbase", *words], stdout=subprocess.DEVNULL, stderr=errors
    )


def manifest_of(results):
    """The manifest of the one table there, and its storage; None before there is one."""
    try:
        tables = tables_in(place_of(results))
    except LuckbaseError:
        return None
    if not tables:
        return None
    storage = storage_at(tables[0])
    return read_manifest(storage, tables[0]), storage


def decoded(column):
    """The bytes of a column; of names, those of their numbers and the names themselves."""
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        return decoded(column.indices) + repr(column.dictionary.to_pylist()).encode()
    result = column.to_numpy(zero_copy_only=False)
    assert result.dtype != object, column.type
    return result.tobytes()


def content(results):
    """The SHA-256 of each file's decoded columns, by name."""
    manifest, storage = manifest_of(results)
    assert manifest.complete
    sums = {}
    for name, entry in manifest.files.items():
        rows = pa.parquet.read_table(pa.BufferReader(storage.read(entry.place)))
        columns = [column.combine_chunks() for column in rows.columns]
        sums[name] = hashlib.sha256(b"".join(map(decoded, columns))).hexdigest()
    return sums


@pytest.mark.slow
@pytest.mark.parametrize(("drivers", "kills"), [(1, KILLS), (2, BOTH)])
@pytest.mark.parametrize("where", ["folder", "store"])
def test_a_solve_killed_at_any_moment_goes_on_to_the_same_rows(
    where, drivers, kills, tmp_path, request
):
    results = str(tmp_path) if where == "folder" else request.getfixturevalue("bucket")
    rng = np.random.default_rng(kills)
    with open(tmp_path / "errors.txt", "w+") as errors:
        start = time.monotonic()
        assert begun(f"{results}/undisturbed", errors).wait() == 0
        seconds = time.monotonic() - start
        expected = content(f"{results}/undisturbed")
        killed = table = 0
        while killed < kills:
            place, kept = f"{results}/{table}", {}
            table += 1
            while True:
                running = [begun(place, errors) for _ in range(drivers)]
                time.sleep(rng.uniform(0.2, seconds))
                if running[0].poll() is None and killed < kills:
                    running[0].kill()
                    killed += 1
                codes = [each.wait(timeout=300) for each in running]
                assert set(codes) <= {0, 2, -9}, codes
                if (read := manifest_of(place)) is not None:
                    files = {name: e.place for name, e in read[0].files.items()}
                    assert kept.items() <= files.items(), "committed work was lost"
                    kept = files
                if 0 in codes:
                    break
            assert content(place) == expected
        errors.seek(0)
        assert "Traceback" not in errors.read()
