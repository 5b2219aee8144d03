"""Three hosts that have no disk in common solve a table into a store, each its own files."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import stores
from tests.e2e.hosts import NET, Hosts, cluster, missing
from tests.e2e.test_hosts import DENSE, SMALL, Board, Solve, digests, search_by_stages

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.slow,
]
ENDPOINT = f"http://{NET}.1:8333"
ENV = {**stores.KEYS, "AWS_ENDPOINT_URL": ENDPOINT, "AWS_REGION": "us-east-1"}


@pytest.fixture
def hosts(on_disk: Path) -> Iterator[Hosts]:
    """A head, which has the store's server as well, and two nodes."""
    with cluster(on_disk, private=True, compiled=True, env=ENV) as made:
        server = stores.Seaweed(on_disk / "weed")
        made.start(
            "head",
            [stores._program(), "server", "-s3", f"-ip={NET}.1", "-ip.bind=0.0.0.0",
             f"-dir={server.folder}", "-s3.iam=false", f"-s3.config={server.folder}/s3.json",
             "-master.volumeSizeLimitMB=64", "-volume.max=40"],
            on_disk / "weed.log",
        )  # fmt: skip
        script = (
            "import obstore, os; from obstore.store import S3Store\n"
            "s = S3Store('tests', endpoint=os.environ['AWS_ENDPOINT_URL'],"
            " client_options={'allow_http': True}, retry_config={'max_retries': 0})\n"
            "obstore.put(s, 'ready', b'1')"
        )
        deadline = time.monotonic() + 60
        while made.run("node1", ["python", "-c", script]).returncode:
            assert time.monotonic() < deadline, (on_disk / "weed.log").read_text()[-2000:]
            time.sleep(0.3)
        yield made


READ = """
import sys; from pathlib import Path; from luckbase.cluster.table.folder import read_ledger
from luckbase.cluster.table.place import place_of, storage_at
import hashlib
(table,) = place_of("s3://tests/r").glob("*/*/*")
storage = storage_at(table); ledger = read_ledger(storage, table); assert ledger.complete
for entry in ledger.files.values():
    print(entry.place, hashlib.sha256(storage.read(entry.place)).hexdigest())
for name in storage.list("log/"): print(storage.read(name).decode(), file=sys.stderr)
print(ledger.rows, file=sys.stderr)
"""


@pytest.mark.parametrize("board", [SMALL, DENSE])
def test_what_three_hosts_solve_into_a_store_is_what_one_solves_in_a_folder(
    hosts: Hosts, board: Board, table_of: Callable[..., Path]
) -> None:
    from tests.e2e.hosts import ROOT

    alone = digests(table_of(ROOT / f"boards/{board[0]}.toml", **board[1]))
    solve = Solve(hosts, board, "--results", "s3://tests/r")
    print(solve.end(300))
    read = hosts.run("node2", ["python", "-c", READ])
    assert not read.returncode, read.stderr
    found = dict(line.split() for line in read.stdout.splitlines())
    assert {f"{name.rpartition('/')[2]}": sha for name, sha in found.items()} == {
        name.rpartition("/")[2]: sha for name, sha in alone.items()
    }
    print(read.stderr)
    assert re.search(r" 0 bytes of files came to this machine", read.stderr)


def test_a_search_by_stages_loses_a_host_and_no_stage_file_lies_in_the_store(
    hosts: Hosts, tmp_path: Path
) -> None:
    search_by_stages(hosts, "s3://tests/r", "node1", tmp_path / "alone")
    read = hosts.run("node2", ["python", "-c", READ])
    assert not read.returncode, read.stderr
    found = dict(line.split() for line in read.stdout.splitlines())
    alone = digests(tmp_path / "alone")
    assert {name.rpartition("/")[2]: sha for name, sha in found.items()} == {
        name.rpartition("/")[2]: sha for name, sha in alone.items()
    }
    assert re.search(r" 0 bytes of files came to this machine", read.stderr)
