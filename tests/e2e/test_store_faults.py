"""What may happen to a solve into an object store: a sentence, nothing lost, the same goes on."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest

from luckbase.cluster.store import remote
from luckbase.cluster.store.storage import storage_at
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from luckbase.solver.errors import RequestError
from tests import solving
from tests.places import ROOT, TINY
from tests.stores import Seaweed

BOARD = solving.load_board(TINY, frontier=1)


def digests(table):
    """What a table's manifest says of each file: its bytes."""
    manifest = read_manifest(storage_at(table), table)
    assert manifest.complete
    return {entry.name: entry.sha256 for entry in manifest.files.values()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return digests(
        solving.solve_board(BOARD, results=tmp_path_factory.mktemp("folder"), workers=1).table
    )


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A server that may be killed."""
    server = Seaweed(tmp_path / "server")
    server.start(again=3)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    yield server
    server.kill()


def once(happens):
    """Does it in the middle of a solve, once."""
    remaining = [happens]

    def progress(now):
        if now.shards and remaining:
            remaining.pop()()

    return progress


def test_files_in_a_store_are_those_in_a_folder(bucket, undisturbed):
    solved = solving.solve_board(BOARD, results=bucket)
    assert digests(solved.table) == undisturbed
    assert solving.solve_board(BOARD, results=bucket).states == 0


@pytest.mark.parametrize("seconds", [1.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_a_server_that_stops_for_a_while_is_waited_for(seaweed, bucket, undisturbed, seconds):
    def stops():
        seaweed.pause()
        threading.Timer(seconds, seaweed.pause, [False]).start()

    solved = solving.solve_board(BOARD, results=bucket, workers=1, on_progress=once(stops))
    assert digests(solved.table) == undisturbed


@pytest.mark.slow
def test_a_server_that_is_killed_and_started_again_is_waited_for(own, undisturbed):
    over = threading.Event()

    def start_again():
        time.sleep(5.0)
        own.start()
        over.wait()  # the server ends with the thread that has started it

    def dies():
        own.kill()
        threading.Thread(target=start_again, daemon=True).start()

    solved = solving.solve_board(BOARD, results="s3://tests/r", workers=1, on_progress=once(dies))
    assert digests(solved.table) == undisturbed
    over.set()


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A server on a disk of its own, and where that is."""
    disk = tmp_path / "disk"
    disk.mkdir()
    created = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(disk)]
    try:
        subprocess.run(created, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk is a tmpfs, which takes root and the right to mount")
    server = Seaweed(disk / "server")
    try:
        server.start(again=3)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server, disk
    finally:
        server.kill()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def resize(disk, size):
    """Give a small disk so many bytes."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def test_a_store_whose_disk_is_full_is_a_sentence_and_the_same_goes_on(
    small, undisturbed, monkeypatch, capfd
):
    """A server of which the client learns no more than that it has an internal error."""
    server, disk = small
    command = ["solve", str(TINY), "--set", "frontier=1", "--results", "s3://tests/r"]
    resize(disk, shutil.disk_usage(disk).used + 60_000)  # the table has 150,000 bytes
    with monkeypatch.context() as patch:
        patch.setitem(remote.PATIENT, "tries", 3)
        patch.setitem(remote.PATIENT, "seconds", 2.0)
        remote._store.cache_clear()
        assert run([*command, "--workers", "1"]) == 2
    remote._store.cache_clear()
    text = capfd.readouterr().err
    assert "has answered 500 for a while, as many do that are full: make room there" in text
    assert "Traceback" not in text
    server.kill()  # where its own database met the end of the disk, it takes nothing until it ends
    resize(disk, 100 << 20)
    server.start()
    solved = solving.solve_board(BOARD, results="s3://tests/r", workers=1)
    assert digests(solved.table) == undisturbed


def _faketime():
    """The library that changes the clock of a process; "" where it does not work here."""
    spec = importlib.util.find_spec("libfaketime")
    below = Path(spec.origin).parent if spec and spec.origin else Path("/nowhere")
    for result in [*below.rglob("libfaketime.so.1"), *Path("/usr/lib").rglob("libfaketime.so.1")]:
        tried = subprocess.run(
            [sys.executable, "-c", "import time; print(time.time())"], capture_output=True,
            env={**os.environ, "LD_PRELOAD": str(result), "FAKETIME": "-3600"}, text=True,
        )  # fmt: skip
        if not tried.returncode and time.time() - float(tried.stdout) > 3000:
            return str(result)
    return ""


def test_a_clock_that_jumps_by_an_hour_in_mid_solve_is_a_sentence_with_both_times(
    bucket, undisturbed, tmp_path
):
    """SeaweedFS, as Amazon's, takes a request of the last quarter of an hour only."""
    library = _faketime()
    if not library:
        pytest.skip("a clock of its own takes libfaketime, of PyPI or of the system")
    script = (
        "import sys, luckbase; from pathlib import Path; from tests import solving\n"
        "def jumps(now):\n"
        "    if now.shards: Path(sys.argv[3]).write_text('-3600')\n"
        "try: solving.solve_board(solving.load_board(sys.argv[1], frontier=1),\n"
        "                   results=sys.argv[2],\n"
        "                   workers=1, on_progress=jumps)\n"
        "except luckbase.errors.StoreError as error: print(error)\n"
    )
    clock = tmp_path / "clock"
    clock.write_text("+0")
    result = subprocess.run(
        [sys.executable, "-c", script, str(TINY), bucket, str(clock)], cwd=ROOT, text=True,
        capture_output=True, timeout=600,
        env={**os.environ, "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(clock),
             "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
             "NO_FAKE_STAT": "1"},
    )  # fmt: skip
    times = re.search(
        r"this machine says (.{16}) UTC, that of the store (.{16}); set", result.stdout
    )
    assert times, result
    ours, theirs = map(datetime.fromisoformat, times.groups())
    assert 59 <= (theirs - ours).total_seconds() / 60 <= 61
    assert digests(solving.solve_board(BOARD, results=bucket, workers=1).table) == undisturbed


def test_of_two_solves_one_works_and_the_other_says_who(bucket, undisturbed):
    text = list[str]()

    def another():
        with pytest.raises(RequestError) as error:
            solving.solve_board(BOARD, results=bucket)
        text.append(str(error.value))

    solved = solving.solve_board(BOARD, results=bucket, workers=1, on_progress=once(another))
    assert f"another solve of this table is running: process {os.getpid()} on " in text[0]
    assert digests(solved.table) == undisturbed


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="takes Linux, root and unshare"
)
def test_where_the_machine_that_solves_is_lost_another_goes_on_at_the_store(bucket, undisturbed):
    """One with its own processes and name, which nobody here can look at: its lease runs out."""
    script = (
        "import sys, time, pytest; from tests import shared, solving\n"
        "shared.commit_at_once(pytest.MonkeyPatch())\n"
        "def slowly(now):\n"
        "    if now.shards >= 3: print('some', flush=True); time.sleep(600)\n"
        "board = solving.load_board(sys.argv[1], frontier=1)\n"
        "solving.solve_board(board, results=sys.argv[2], workers=1, on_progress=slowly)\n"
    )
    lost = subprocess.Popen(
        ["unshare", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
         'hostname lost; exec "$@"', "sh", sys.executable, "-c", script,
         str(TINY), bucket],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert lost.stdout is not None and lost.stdout.readline() == "some\n"
    with pytest.raises(RequestError, match="is running: process 1 on lost since"):
        solving.solve_board(BOARD, results=bucket)
    lost.kill()
    lost.wait()
    lost.stdout.close()
    notes = list[str]()
    solved = solving.solve_board(BOARD, results=bucket, on_note=notes.append)
    assert "process 1 on lost" in notes[0] and solved.kept
    assert digests(solved.table) == undisturbed
