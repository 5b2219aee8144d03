"""Hosts that have no disk in common solve a table into a store: three of them together, each its
own files; one after another, where the link of the first is cut."""

import time
from pathlib import Path

import pytest

from tests import stores
from tests.e2e.hosts import NET, ROOT, Hosts, cluster, missing
from tests.e2e.test_hosts import DENSE, HANGS, SMALL, Solve, digests, search_by_stages
from tests.places import TINY
from tests.shared import plain

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
ENDPOINT = f"http://{NET}.1:8333"
ENV = {**stores.KEYS, "AWS_ENDPOINT_URL": ENDPOINT, "AWS_REGION": "us-east-1"}


def serve(created, name, other, folder):
    """Start the store on the first host, and wait until another can use it."""
    server = stores.Seaweed(folder / "weed")
    created.start(
        name,
        [stores._program(), "server", "-s3", f"-ip={NET}.1", "-ip.bind=0.0.0.0",
         f"-dir={server.folder}", "-s3.iam=false", f"-s3.config={server.folder}/s3.json",
         "-master.volumeSizeLimitMB=64", "-volume.max=40", "-master.telemetry=false"],
        folder / "weed.log",
    )  # fmt: skip
    script = (
        "import obstore, os; from obstore.store import S3Store\n"
        "s = S3Store('tests', endpoint=os.environ['AWS_ENDPOINT_URL'],"
        " client_options={'allow_http': True}, retry_config={'max_retries': 0})\n"
        "obstore.put(s, 'ready', b'1')"
    )
    deadline = time.monotonic() + HANGS
    while created.run(other, ["python", "-c", script]).returncode:
        assert time.monotonic() < deadline, (folder / "weed.log").read_text()[-2000:]
        time.sleep(0.3)


@pytest.fixture
def hosts(on_disk):
    """A head, which has the store's server as well, and two nodes."""
    with cluster(on_disk, private=True, compiled=True, env=ENV) as created:
        serve(created, "head", "node1", on_disk)
        yield created


READ = """
import sys; from pathlib import Path; from luckbase.cluster.store.writer import read_manifest
from luckbase.cluster.store.storage import place_of, storage_at
import hashlib
(table,) = place_of("s3://tests/r").glob("*/*/*")
storage = storage_at(table); manifest = read_manifest(storage, table); assert manifest.complete
for entry in manifest.files.values():
    print(entry.place, hashlib.sha256(storage.read(entry.place)).hexdigest())
print(manifest.rows, file=sys.stderr)
"""


def names_and_sums(read):
    """The files in the store by name, with their sums, as READ has printed them."""
    assert not read.returncode, read.stderr
    files = dict(line.split() for line in read.stdout.splitlines())
    return {plain(name).rpartition("/")[2]: sha for name, sha in files.items()}


def in_folder(path):
    """The same of a folder."""
    return {name.rpartition("/")[2]: sha for name, sha in digests(path).items()}


@pytest.mark.slow
@pytest.mark.parametrize("board", [SMALL, DENSE])
def test_what_three_hosts_solve_into_a_store_is_what_one_solves_in_a_folder(hosts, board, table_of):
    alone = table_of(ROOT / f"boards/{board[0]}.toml", **board[1])
    solve = Solve(hosts, board, "--results", "s3://tests/r")
    print(solve.end(300))
    assert names_and_sums(hosts.run("node2", ["python", "-c", READ])) == in_folder(alone)


@pytest.mark.slow
def test_a_search_by_stages_loses_a_host_and_no_stage_file_lies_in_the_store(hosts, on_disk):
    """Its file to go on lies where all hosts see it: each has a /dev/shm of its own."""
    search_by_stages(hosts, "s3://tests/r", "node1", on_disk / "alone")
    read = hosts.run("node2", ["python", "-c", READ])
    assert names_and_sums(read) == in_folder(on_disk / "alone")


SOLVE = """
import sys, time, luckbase; from pathlib import Path; from tests import solving
from luckbase.cluster.store import writer
from tests.places import BOARDS
writer.LEASE_SECONDS, writer.BEAT_SECONDS = float(sys.argv[2]), float(sys.argv[2]) / 3
writer.COMMIT_SECONDS, writer.SHARE = 0.0, float("inf")
def wait(now):
    if now.shards >= 3 and not Path("cut").exists():
        Path("some").touch()
        while not Path("cut").exists(): time.sleep(0.05)
wait = wait if sys.argv[3:] else lambda now: None
board = solving.load_board(sys.argv[1], frontier=1)
try: solving.solve_board(board, results="s3://tests/r", workers=1, on_progress=wait, on_note=print)
except luckbase.errors.LuckbaseError as error: print(error); sys.exit(2)
"""


@pytest.mark.parametrize("lease", [2.0, pytest.param(15.0, marks=pytest.mark.slow)])
def test_a_solve_whose_link_is_cut_is_taken_over_and_stops_once_it_is_back(
    on_disk, table_of, lease
):
    """Nobody hears that it is gone: no connection is closed."""
    alone = table_of(TINY, frontier=1)
    command = ["python", "-c", SOLVE, str(TINY), str(lease)]
    home = str(Path.home())  # what is compiled is there
    created = Hosts(on_disk, private=True, env={**ENV, "HOME": home})
    try:
        for name in ("store", "one", "two"):
            created.make(name)
        serve(created, "store", "two", on_disk)
        first = created.start("one", [*command, "waits"], on_disk / "one.log")
        deadline = time.monotonic() + HANGS
        while not (on_disk / "some").exists():
            assert first.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        created.link("one", "down")
        (on_disk / "cut").touch()
        second = created.run("two", command)
        assert second.returncode == 0, second
        assert (
            "it is locked by process " in second.stdout and " on test-one since " in second.stdout
        )
        before = created.run("two", ["python", "-c", READ])
        assert first.poll() is None
        created.link("one", "up")
        assert first.wait(HANGS) == 2
        text = (on_disk / "one.log").read_text()
        assert "another solve of this table has begun: process" in text
        assert " on test-two since " in text and "Traceback" not in text
        after = created.run("two", ["python", "-c", READ])
        assert (after.returncode, after.stdout) == (0, before.stdout)
        assert names_and_sums(after) == in_folder(alone)
        files = [line.split()[0] for line in after.stdout.splitlines()]
        assert len({name.split(".")[-3] for name in files}) == 2, "the first one's files count"
    finally:
        created.down()
