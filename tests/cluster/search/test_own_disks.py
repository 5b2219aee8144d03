"""Stage files of a search whose table lies in a store: on the disk of the machine that found them,
served, found again if they are lost, and removed."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.solve.worker import TableLocation
from luckbase.cluster.store.remote import Objects
from luckbase.cluster.store.storage import storage_at
from tests.cluster.search.searches import by, files_of
from tests.cluster.search.test_stopped_search import Watched, killed
from tests.shared import plain

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """What this machine has for what is temporary, in this process and those that it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def memory():
    """A store that answers at once, of this process."""
    return f"memory://tests/{os.urandom(6).hex()}"


@pytest.fixture
def watched(monkeypatch):
    return Watched(monkeypatch)


@pytest.fixture
def put(monkeypatch):
    """The names of all that is put into a store meanwhile; no stage file is."""
    names = []
    for does in ("put", "swap"):
        real = getattr(Objects, does)

        def noted(storage, name, *more, real=real):
            names.append(name)
            return real(storage, name, *more)

        monkeypatch.setattr(Objects, does, noted)
    yield names
    assert not [name for name in names if name.endswith(".arrow")]


def same(solved, staged):
    """Whether a search in a store has the files of one in a folder, to the byte, and nothing of
    what is needed only meanwhile."""
    storage = storage_at(solved.table)
    assert not storage.list("shards/")
    assert not list(Path(tempfile.gettempdir()).glob("luckbase-*-*"))
    return files_of(staged.table) == {
        plain(name): storage.read(name) for name in storage.list() if name.endswith(".parquet")
    }


def stage_files(disk):
    return sorted(disk.glob("luckbase-*/shards/*.arrow"))


def test_a_store_gets_what_a_folder_gets_and_no_stage_file(staged, bucket, disk, put, monkeypatch):
    """Not at any time; payoffs that spill lie beside them."""
    seen = []
    up = StageSearch._up

    def looks(search):
        seen.append(len(stage_files(disk)))
        assert search.location.spill.parent == stage_files(disk)[0].parents[1]
        assert search.location.scratch.stat().st_mode & 0o077 == 0
        up(search)

    monkeypatch.setattr(StageSearch, "_up", looks)
    solved = by(bucket, workers=2)
    assert same(solved, staged)
    assert seen == [solved.shards]


@pytest.mark.parametrize(("kind", "times"), [("found", 5), ("files", 14)])
def test_one_that_is_killed_finds_its_states_again_and_keeps_what_it_solved(
    kind, times, staged, bucket, disk, put, watched
):
    """Its stage files are removed, and no file of the killed one can be deleted by it."""
    remaining = killed(bucket, kind, times)
    assert stage_files(disk)
    solved = by(bucket, workers=2)
    assert len(watched.found) == solved.shards and not set(watched.solved) & set(remaining.files)
    assert len(watched.solved) == len(staged.manifest.files) - len(remaining.files)
    assert same(solved, staged) and not solved.damaged
    ours = [name for name in put if name.endswith(".parquet")]
    killed_by = {each.place.split(".")[-2] for each in remaining.files.values()}
    assert ours and not {name.split(".")[-2] for name in ours} & killed_by


def test_stage_files_that_are_lost_on_the_way_up_are_found_again(
    staged, memory, disk, watched, monkeypatch
):
    commit, lost = StageSearch.commit, list[bool]()

    def loses(search, receipt):
        commit(search, receipt)
        if len(watched.solved) == 15 and not lost:
            lost.append(True)
            shutil.rmtree(search.location.scratch)

    monkeypatch.setattr(StageSearch, "commit", loses)
    notes = []
    solved = by(memory, workers=1, on_note=notes.append)
    assert len(watched.found) == 2 * solved.shards
    assert len(set(watched.solved)) == len(watched.solved), "none is written twice"
    assert "is on no disk any more" in notes[0] and same(solved, staged)


def test_a_full_disk_is_named_and_the_same_goes_on(staged, memory, disk, monkeypatch):
    write, remaining = Path.write_bytes, [4]

    def full(path, content):
        remaining[0] -= path.parent.name == "shards"
        write(path, content)
        if remaining[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left") as error:
            by(memory, workers=1)
    assert error.value.filename.startswith(f"{disk}/luckbase-")
    assert error.value.filename.endswith(f"/shards on {os.uname().nodename}")
    assert not stage_files(disk) and not list(disk.rglob("*.part"))
    assert same(by(memory), staged)


def test_each_machine_removes_its_own_stage_files_and_no_others(disk):
    mine, other = (TableLocation(Path(), "", f"luckbase-1-{name}") for name in "ab")
    for location in (mine, other):
        for name in ("one", "two"):
            location.keep(f"shards/{name}", name.encode())
    mine.delete(["shards/two", "shards/gone"])
    assert mine.read("shards/one") == b"one" and mine.read("shards/two") is None
    mine.delete()
    assert not mine.scratch.exists() and len(list((other.scratch / "shards").iterdir())) == 2
    beside = TableLocation(other.scratch, "")  # with the table nothing else goes
    beside.delete()
    assert (other.scratch / "shards/one").exists()
