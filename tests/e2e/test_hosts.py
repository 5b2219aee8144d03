"""A cluster of several hosts, and what may happen to one: the bytes are those of a clean solve.

The hosts are namespaces of this machine (`tests.e2e.hosts`). Each has a disk of its own in the
place of the results folder unless a test says that they share it. The short ones are in every run;
`-m slow` has the others.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from luckbase.cluster.store import RUNNING
from tests import solving
from tests.e2e.hosts import ROOT, SHORTER, cluster, missing
from tests.shared import plain

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

DENSE = ("press-your-luck/1985-02", {"score_unit": 500, "frontier": 2})
"""Some ten seconds on three cores."""
MIDDLE = ("press-your-luck/1985-02", {"score_unit": 1000, "frontier": 2})
"""As many shards, an eighth of the states."""
LONG_PARTS = ("goofspiel/points", {"cards": 12})
SMALL = ("press-your-luck/tiny", {"frontier": 2})
SEARCHED = ("press-your-luck/tiny", {})
ROOT_STATE = "scores=0,1000,500 earned=2,1,1"
HANGS = 600.0
"""Seconds after which something hangs, on however slow a machine."""


def digests(folder):
    """Every Parquet file below a folder: its table's and its own name, whoever put it, and its
    SHA-256."""
    return {
        f"{path.parents[1].name}/{plain(path.name)}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.parquet")
    }


@pytest.fixture
def tmp_path(on_disk):
    """Each host has a /dev/shm of its own, where tests write otherwise."""
    return on_disk


@pytest.fixture(scope="module")
def clean(table_of, tmp_path_factory):
    """The digests of a board's table as one process makes them; asked for by board."""

    def of(board, root=""):
        path = ROOT / f"boards/{board[0]}.toml"
        if not root:
            return digests(table_of(path, **board[1]))
        game = solving.load_game(solving.load_board(path, **board[1]))
        words = dict(word.split("=") for word in root.split())
        results = tmp_path_factory.mktemp("clean")
        created = solving.solve_below(
            game.board, game.parse(words)[None], results=results, workers=1
        )
        return digests(created.table)

    return of


def clear(hosts, name="head"):
    """Remove what solves of a host wrote."""
    for path in hosts.disk(name).iterdir():
        shutil.rmtree(path)


SLOWLY = """
import runpy, sys, time; from contextlib import suppress; from pathlib import Path
from luckbase.cluster.solve.full_table import TierRun
from luckbase.cluster.store import writer
writer.LEASE_SECONDS, writer.BEAT_SECONDS = 8.0, 2.0
slow, commit = Path(sys.argv.pop(1)), TierRun.commit
def waits(run, receipt):
    commit(run, receipt)
    with suppress(FileNotFoundError): time.sleep(float(slow.read_text() or 1))
TierRun.commit = waits
runpy.run_module("luckbase", run_name="__main__", alter_sys=True)
"""
"""A second a tier, or as many as it says, while the file of its first word is there; and a solve
that ended is missed in half the time."""


class Solve:
    """``luckbase solve`` on one of the hosts. slowly: it is not done before `hurry`, however slow
    what else happens is."""

    def __init__(self, hosts, board=DENSE, *more, on="head", slowly=False):
        words = [word for name, value in board[1].items() for word in ("--set", f"{name}={value}")]
        self.hosts, self.on = hosts, on
        self.log = hosts.folder / f"solve-{time.monotonic_ns()}.log"
        self.slow = self.log.with_suffix(".slow")
        if slowly:
            self.slow.touch()
        self.process = hosts.start(
            on,
            [sys.executable, "-c", SLOWLY, str(self.slow),
             "solve", str(ROOT / f"boards/{board[0]}.toml"), *words,
             "--address", hosts.address, "--results", str(hosts.shared), *more],
            self.log,
        )  # fmt: skip
        self.began = time.monotonic()

    @property
    def files(self):
        folders = os.walk(self.hosts.disk(self.on))  # some may go while this looks
        return sum(
            n.endswith(".parquet")
            for at, _, names in folders
            if at.endswith("/tiers")
            for n in names
        )

    def until(self, files):
        """Wait until so many files are there."""
        while self.files < files:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() - self.began < HANGS, self.log.read_text()
            time.sleep(0.02)

    def end(self, timeout=HANGS):
        """Wait until it is done; returns what it said."""
        code = self.process.wait(timeout)
        text = self.log.read_text()
        assert code == 0, text
        return text

    def signal(self, number):
        """Send the driver a signal."""
        for pid in self.hosts.processes(self.on):
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if str(self.slow).encode() in words:
                    os.kill(pid, number)

    def hurry(self):
        """Go on as it can."""
        self.slow.unlink()

    def kill(self):
        """End the driver at once."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def clear(self):
        """Remove what it wrote."""
        clear(self.hosts, self.on)


SEARCH_BY_STAGES = """
import sys, time; from pathlib import Path
from tests import solving
from luckbase.cluster.search import shards; from luckbase.cluster.search.stages import StageSearch
shards.SHARD_STATES, commit, keep, begun = 200, StageSearch.commit, StageSearch._keep, []
def slowly(search, *found):
    keep(search, *found)
    if sys.argv[3] and not all(node["shards_done"] for node in search.workers.activity()):
        time.sleep(1)
def waits(search, receipt):
    commit(search, receipt)
    if not begun:
        begun.append(1); search.writer.commit(); print("way up", flush=True)
        while not Path(sys.argv[4]).exists(): time.sleep(0.1)
StageSearch.commit, StageSearch._keep = waits, slowly
game = solving.load_game(solving.load_board(Path(sys.argv[1])))
root = game.parse(dict(word.split("=") for word in sys.argv[5].split()))[None]
solved = solving.solve_below(
    game.board, root, results=sys.argv[2], address=sys.argv[3] or None, one_piece=0, on_note=print)
print(f"{solved.shards} shards", flush=True)
"""
"""Finds slowly until all hosts have found something, and waits on its way up until the file of its
fourth word is there."""


# --- in every run -------------------------------------------------------------------------------


def turned_away(hosts, name):
    """A new host without the token does not come in."""
    hosts.make(name, env={"RAY_AUTH_TOKEN_PATH": "/nowhere/token"}, compiled=True)
    refused = Solve(hosts, SMALL, on=name)
    assert refused.process.wait(HANGS) == 2
    text = refused.log.read_text().removeprefix("compiling, the first time only …\n")
    assert text.count("\n") == 1 and "refuses this machine's token" in text, text


def test_a_host_is_lost_one_joins_some_are_left_out_and_a_killed_driver_goes_on_elsewhere(
    tmp_path, clean
):
    """Two see one folder, head and who joins; others have disks of their own. One of these is lost.
    One has other code of luckbase and nothing compiled, which does not matter. One has another
    pyarrow: it is named, and nothing is solved until it is gone. A solve of the same table on
    another host is refused, by name; the driver is killed, and the same command goes on there. A
    host without the token does not come in."""
    other = tmp_path / "other"
    shutil.copytree(ROOT / "luckbase", other / "luckbase", ignore=shutil.ignore_patterns("*.pyc"))
    rules = other / "luckbase/solver/games/press_your_luck/rules.py"
    rules.write_text(rules.read_text() + "\nraise ImportError('other code')\n")
    lacking = tmp_path / "lacking/pyarrow-1.0.0.dist-info"
    lacking.mkdir(parents=True)
    (lacking / "METADATA").write_text("Metadata-Version: 2.1\nName: pyarrow\nVersion: 1.0.0\n")
    alone = {
        "lost": {"compiled": True},
        "other": {"env": {"PYTHONPATH": f"{other}:{ROOT}"}},
        "lacking": {"env": {"PYTHONPATH": str(lacking.parent)}},
    }
    nodes = {name: {"private": True, **how} for name, how in alone.items()}
    with cluster(tmp_path / "hosts", nodes, env=SHORTER) as hosts:
        refused = Solve(hosts, SMALL)
        assert refused.process.wait(HANGS) == 2
        message = "node test-lacking (10.78.0.4) has pyarrow 1.0.0, not"
        assert message in refused.log.read_text() and not digests(hosts.shared)
        hosts.leave("lacking")
        turned_away(hosts, "stranger")
        solve = Solve(hosts, MIDDLE, slowly=True)
        solve.until(1)
        solve.slow.write_text("2")  # 74 of them take longer than a host needs to come
        hosts.add("joins", compiled=True)
        while "node test-joins (10.78.0.6) has joined" not in solve.log.read_text():
            assert solve.process.poll() is None, solve.log.read_text()
            time.sleep(0.1)
        assert solve.files < 66
        hosts.kill("lost")
        solve.slow.write_text("0.5")
        solve.until(solve.files + 3)
        solve.slow.write_text("2")
        second = Solve(hosts, MIDDLE, on="joins")
        assert second.process.wait(HANGS) == 2
        assert "another solve of this table is running: process" in second.log.read_text()
        assert "on test-head since" in second.log.read_text()
        solve.kill()
        before = {path: path.stat().st_mtime_ns for path in hosts.shared.rglob("*.parquet")}
        Solve(hosts, MIDDLE, on="joins").end()
        assert digests(hosts.shared) == clean(MIDDLE)
        there = {path: then for path, then in before.items() if path.exists()}
        again = [path for path, then in there.items() if path.stat().st_mtime_ns != then]
        assert len(again) <= 1 < len(there)  # one may lie there that the manifest did not name yet
        assert not any([*(hosts.folder / name / "disk").rglob("*.parquet")] for name in alone)
        hosts.kill("head")
        gone = Solve(hosts, SMALL, on="stranger")
        assert gone.process.wait(HANGS) == 2
        assert "--address: the Ray cluster at" in gone.log.read_text()


def search_by_stages(hosts, results, lost, table):
    """A search by stages on all hosts, one of which is lost with its disk once all is found; what
    it said. table: to be made of it by one process."""
    words = [str(ROOT / f"boards/{SEARCHED[0]}.toml"), results, hosts.address, f"{table}.go",
             ROOT_STATE]  # fmt: skip
    log = hosts.folder / "search.log"
    search = hosts.start("head", [sys.executable, "-c", SEARCH_BY_STAGES, *words], log)
    began = time.monotonic()
    while "way up" not in log.read_text():
        assert search.poll() is None and time.monotonic() - began < HANGS, log.read_text()
        time.sleep(0.1)
    names = [name for name in hosts.pids if name != "switch"]
    assert not any(map(hosts.stage_files, names)), "they are Ray's objects"
    hosts.kill(lost)
    shutil.rmtree(hosts.folder / lost / "tmp")
    Path(f"{table}.go").touch()
    assert search.wait(HANGS) == 0, log.read_text()
    alone = [sys.executable, "-c", SEARCH_BY_STAGES, words[0], str(table), "", *words[3:]]
    done = subprocess.run(alone, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    text = log.read_text()
    assert done.stdout.splitlines()[-1] in text
    assert not any(map(hosts.stage_files, names))
    return text


# --- slow ---------------------------------------------------------------------------------------


SETTINGS = {"defaults": {}, "shorter": SHORTER}
"""Ray's own settings, and those that the guide gives."""


@pytest.fixture(scope="module", params=SETTINGS)
def started(request):
    """Hosts that were started with these settings, and their name."""
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(Path(folder), private=True, env=SETTINGS[request.param], compiled=True) as hosts,
    ):
        yield hosts, request.param


def back(hosts, name):
    """The host is up again, with Ray, whatever was done to it."""
    if hosts.inits[name].poll() is None:
        hosts.kill(name)
    hosts.add(name, compiled=True)


FAULTS = {
    "killed": lambda hosts: hosts.kill("node1"),
    "powered off": lambda hosts: hosts.power_off("node1"),
    "cut for good": lambda hosts: hosts.link("node1", "down"),
    "cut for 20 s": lambda hosts: (hosts.link("node1", "down"), time.sleep(20),
                                   hosts.link("node1", "up"))[0],
    "frozen for 35 s": lambda hosts: (hosts.stop("node1"), time.sleep(35),
                                      hosts.stop("node1", go_on=True))[0],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("board", [DENSE, LONG_PARTS], ids=["dense", "parts"])
@pytest.mark.parametrize("fault", list(FAULTS))
def test_what_happens_to_a_host_delays_the_solve_and_changes_no_byte(
    fault, board, started, clean, request
):
    """By at most 90 s with Ray's defaults, 30 s with the guide's settings, beyond the shards."""
    hosts, settings = started
    clear(hosts)
    request.addfinalizer(lambda: back(hosts, "node1"))
    first = Solve(hosts, board)
    first.end()
    usual = time.monotonic() - first.began
    first.clear()
    solve = Solve(hosts, board)
    solve.until(12 if board is DENSE else 7)
    FAULTS[fault](hosts)
    began = time.monotonic()
    solve.end(240)
    late = time.monotonic() - began
    print(f"{fault}, {settings}, {board[0]}: usual {usual:.1f} s, {late:.1f} s after the fault")
    assert digests(hosts.disk("head")) == clean(board)
    assert late < 3 * usual + (90 if settings == "defaults" else 30)


@pytest.mark.slow
def test_a_lost_head_and_everything_started_again(tmp_path, clean):
    """The driver is on another host; it ends in a sentence, and the same command goes on."""
    with cluster(tmp_path, ("node1", "node2"), private=True, env=SHORTER) as hosts:
        solve = Solve(hosts, on="node1")
        solve.until(10)
        hosts.kill("head")
        code = solve.process.wait(240)
        text = solve.log.read_text()
        assert code == 1, text
        assert "the same command resumes" in text, text
        for name in ("node1", "node2"):
            hosts.kill(name)
        hosts.add("head")
        hosts.add("node1")
        again = Solve(hosts, on="node1")
        again.end()
        assert digests(hosts.disk("node1")) == clean(DENSE)


@pytest.mark.slow
def test_a_driver_that_was_suspended_goes_on_or_says_how_to(tmp_path, clean):
    """Its host is stopped for ten minutes, and its link is another one afterwards: the cluster has
    given it up meanwhile."""
    with cluster(tmp_path, ("node1",), private=True, env=SHORTER, compiled=True) as hosts:
        solve = Solve(hosts, on="node1")
        solve.until(10)
        hosts.stop("node1")
        hosts.link("node1", "down")
        time.sleep(600)
        hosts.link("node1", "up")
        hosts.stop("node1", go_on=True)
        code = solve.process.wait(180)
        text = solve.log.read_text()
        assert code == 0 or "the same command resumes" in text, text
        hosts.kill("node1")
        hosts.add("node1", compiled=True)
        Solve(hosts, on="node1").end()
        assert digests(hosts.disk("node1")) == clean(DENSE)


@pytest.mark.slow
def test_a_full_disk_on_a_node_and_cores_that_others_use(tmp_path, clean):
    """A node whose own results folder has no byte left, and whose core another job keeps busy, does
    its share of the work all the same."""
    with cluster(tmp_path, ("node1",), private=True, compiled=True) as hosts:
        (tmp_path / "full").mkdir()
        mount = f"mount -t tmpfs -o size=4k tmpfs {hosts.shared}; head -c 9999 /dev/zero"
        hosts.run("node1", ["sh", "-c", f"{mount} > {hosts.shared}/file"])
        hosts.start("node1", ["sh", "-c", "while :; do :; done"], tmp_path / "busy.log")
        solve = Solve(hosts)
        solve.until(70)
        seen = json.loads(next(hosts.disk("head").rglob(RUNNING)).read_text())
        assert all(node["shards_done"] > 0 for node in seen["nodes"])
        solve.end()
        assert digests(hosts.disk("head")) == clean(DENSE)
