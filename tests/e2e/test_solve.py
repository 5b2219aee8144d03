"""End to end: the same bytes whatever happens on the way."""

import ipaddress
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from luckbase.cluster.solve import full_table
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import MemoryLimitError
from tests import solving
from tests.e2e.stopped import solve_until
from tests.places import TINY
from tests.shared import files_of as files
from tests.shared import lines_of, python

BOARD = solving.load_board(TINY, frontier=2)


def leftovers(table):
    return [*table.rglob("*.part"), *table.glob("spill"), *table.glob("running.json")]


def read(table):
    return read_manifest(Folder(table), table)


def manifest(table):
    """What the manifest has, without what depends on the clock and the writer."""
    return lines_of(read(table))


def table_in(results):
    (head,) = results.rglob("manifest.json")
    return head.parent


@pytest.fixture(scope="module")
def undisturbed(table_of, tmp_path_factory):
    """A copy of the run's own, in results of its own."""
    there = table_of(TINY, frontier=2)
    copy = tmp_path_factory.mktemp("plain") / there.relative_to(there.parents[2])
    return Path(shutil.copytree(there, copy))


def test_any_number_of_workers_gives_the_same_bytes(undisturbed, tmp_path):
    table = solving.solve_board(BOARD, results=tmp_path, workers=3).table
    assert files(table) == files(undisturbed)
    assert manifest(table) == manifest(undisturbed)
    assert not leftovers(table)


def test_what_a_stopped_run_left_is_never_trusted(undisturbed, tmp_path):
    """Payoffs that it had spilled, marks, what it said of itself: they go; what others still read
    is solved again, and no file is written twice."""
    solve_until(BOARD, tmp_path, 30)
    table = table_in(tmp_path)
    before = {p: p.stat().st_mtime_ns for p in table.rglob("*.parquet")}
    (writer,) = read(table).writers
    (table / f"spill.{writer}/ray").mkdir(parents=True)
    part = "tiers/shard-3.parquet.host-1-0123abcd-1.part"
    for name in (f"spill.{writer}/ray/some", "running.json", part):
        (table / name).write_bytes(bytes(8))
    others = table / "tiers/thesis.part", table / "spill/thesis"  # of other people: they stay
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"text")
    solved = solving.solve_board(BOARD, results=tmp_path, workers=1)
    assert solved.again > 0
    assert all(p.stat().st_mtime_ns == then for p, then in before.items())
    assert files(table) == files(undisturbed)
    for path in others:
        assert path.read_bytes() == b"text"
        path.unlink()
    (table / "spill").rmdir()
    assert not leftovers(table) and not list(table.glob("spill.*"))


def test_what_does_not_fit_is_refused_before_anything_is_made_or_unmade(undisturbed, tmp_path):
    with pytest.raises(MemoryLimitError, match="memory: the largest tier needs"):
        solving.solve_board(BOARD, results=tmp_path, memory=1000)
    assert not list(tmp_path.iterdir())
    before = files(undisturbed)
    with pytest.raises(MemoryLimitError):
        solving.solve_board(BOARD, results=undisturbed.parents[2], memory=1000, force=True)
    assert files(undisturbed) == before
    # A complete table asks for nothing.
    assert solving.solve_board(BOARD, results=undisturbed.parents[2], memory=1000).shards == 0


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no /proc/net here")
def test_a_ray_of_its_own_is_not_reached_from_another_machine_and_loses_a_worker(
    undisturbed, tmp_path
):
    """Every port that Ray opens for it, on any address but the loopback, is found. And its workers
    do not wait for all else that the machine does; one that is killed costs a retry and no state.
    Of a process that has not imported Ray yet."""
    script = f"from tests.e2e.test_solve import *; look_at_ray(Path({str(tmp_path)!r}))"
    done = python("-c", script, check=False)
    assert done.returncode == 0, done.stderr
    assert files(table_in(tmp_path)) == files(undisturbed)


def look_at_ray(results):
    """The first receipt names its worker's process, which is killed there and then."""
    before, others = listening(), processes() - {os.getpid()}  # the run's own cluster
    heard = []
    seen = {}
    nice = set()
    killed = []
    commit = full_table.TierRun.commit
    tokens, environment = set(), dict(os.environ, RAY_ADDRESS="127.0.0.1:9")  # not joined
    os.environ.update(environment)
    on_term = signal.getsignal(signal.SIGTERM)

    def commit_and_kill(run, receipt):
        commit(run, receipt)
        if len(killed) < 2 and receipt.process not in killed:
            killed.append(receipt.process)
            os.kill(int(receipt.process.split()[1]), signal.SIGKILL)

    def look(now):
        heard.append(listening())
        for path in Path("/tmp").glob("luckbase-*/token"):
            with suppress(OSError):
                tokens.add((oct(path.stat().st_mode), oct(path.parent.stat().st_mode)))
        for process in processes() - others:
            with suppress(OSError):
                text = Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
                seen[process] = text
                nice.add(
                    int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[16])
                )

    full_table.TierRun.commit = commit_and_kill
    solved = solving.solve_board(
        BOARD, results=results, workers=2, address="local", on_progress=look
    )
    import ray

    assert killed and solved.ray and not ray.is_initialized()
    assert tokens == {("0o100600", "0o40700")} and not list(Path("/tmp").glob("luckbase-*/token"))
    assert os.environ == environment and signal.getsignal(signal.SIGTERM) == on_term
    until = time.monotonic() + 20
    while any(Path(f"/proc/{process}").exists() for process in seen.keys() - {os.getpid()}):
        assert time.monotonic() < until, "Ray outlives the solve"
        time.sleep(0.1)
    opened = set().union(*heard) - before
    words = [text.split("--")[0] for text in seen.values()]
    assert any("raylet" in text for text in words) and nice == {os.nice(0)}
    assert len(opened) >= 4, "Ray was not heard at all"
    away = [place for place in opened if not place.startswith(("127.", "::1 "))]
    assert not away


def listening():
    """Addresses and ports at which this process and its own listen: ``127.0.0.1 6379``."""
    result, mine = set(), sockets()
    for name, size in (("tcp", 8), ("tcp6", 32)):
        lines = Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        for words in (line.split() for line in lines):
            host, _, port = words[1].partition(":")
            if words[3] != "0A" or words[9] not in mine:
                continue
            raw = bytes.fromhex(host)
            order = b"".join(raw[i : i + 4][::-1] for i in range(0, size // 2, 4))
            address = ipaddress.ip_address(order)
            mapped = getattr(address, "ipv4_mapped", None)
            result.add(f"{mapped or address} {int(port, 16)}")
    return result


def processes():
    """This process and all that it has started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            text = (path / "stat").read_text()
            parents[int(path.name)] = int(text.rpartition(")")[2].split()[1])
    own = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return own


def sockets():
    """The sockets of this process and of all that it has started, by their inodes."""
    result = set()
    for process in processes():
        with suppress(OSError):
            for handle in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    result.add(os.readlink(f"/proc/{process}/fd/{handle}"))
    return {name[len("socket:[") : -1] for name in result if name.startswith("socket:[")}
