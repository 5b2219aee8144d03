"""Stage files of a search whose table lies in a store: on the disk of the machine that found them,
gone on from, served, found again where they are lost, and removed."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from luckbase.cluster.run import worker
from luckbase.cluster.run.progress import Solved
from luckbase.cluster.run.ray import RayWorkers
from luckbase.cluster.run.worker import PayoffsLostError, TableLocation, Task
from luckbase.cluster.search import files
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.search.tasks import SweepReceipt
from luckbase.cluster.table.folder import needed_shards
from luckbase.cluster.table.remote import Objects
from luckbase.cluster.table.storage import storage_at, tag_of
from tests.cluster.search.searches import by, files_of
from tests.cluster.search.test_stopped_search import Watched, killed

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What this machine has for what is temporary, in this process and those that it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def memory() -> str:
    """A store that answers at once, of this process."""
    return f"memory://tests/{os.urandom(6).hex()}"


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of all that is put into a store meanwhile; no stage file is."""
    names: list[str] = []
    for does in ("put", "put_if_absent"):
        real = getattr(Objects, does)

        def noted(storage: Objects, name: str, *more: Any, real: Any = real) -> Any:
            names.append(name)
            return real(storage, name, *more)

        monkeypatch.setattr(Objects, does, noted)
    yield names
    assert not [name for name in names if name.endswith(".arrow")]


def same(solved: Solved, staged: Solved) -> bool:
    """Whether a search in a store has the files of one in a folder, to the byte, and nothing of
    what is needed only meanwhile."""
    storage = storage_at(solved.table)
    assert not storage.list("shards/")
    assert not list(Path(tempfile.gettempdir()).glob("luckbase-*-*"))
    return files_of(staged.table) == {
        re.sub(r"\.fence-\d+", "", name): storage.read(name)
        for name in storage.list()
        if name.endswith(".parquet")
    }


def stage_files(disk: Path) -> list[Path]:
    return sorted(disk.glob("luckbase-*/shards/*.arrow"))


def test_a_store_gets_what_a_folder_gets_and_no_stage_file(
    staged: Solved, bucket: str, disk: Path, put: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at any time; payoffs that spill lie beside them."""
    seen: list[int] = []
    forget = StageSearch._forget_lost

    def looks(search: StageSearch) -> bool:
        seen.append(len(stage_files(disk)))
        assert search.location.spill.parent == stage_files(disk)[0].parents[1]
        assert search.location.scratch.stat().st_mode & 0o077 == 0
        return forget(search)

    monkeypatch.setattr(StageSearch, "_forget_lost", looks)
    solved = by(bucket, workers=2)
    assert same(solved, staged)
    assert seen == [solved.shards] == [sum(name.endswith(".asks") for name in put)]


@pytest.mark.parametrize(("kind", "times"), [("shards", 5), ("files", 14)])
def test_one_that_is_killed_goes_on_from_the_disk_or_finds_again_what_is_needed(
    kind: str, times: int, staged: Solved, bucket: str, disk: Path, put: list[str],
    watched: Watched,
) -> None:  # fmt: skip
    """One file changed meanwhile; on another machine all are missing."""
    left = killed(bucket, kind, times)
    needed = needed_shards(left, next(iter(left.levels)))
    if kind == "shards":
        path = next(disk.glob(f"luckbase-*/{needed[0].place}"))
        path.write_bytes(path.read_bytes()[:-1])
    else:
        shutil.rmtree(stage_files(disk)[0].parents[1])
    notes: list[str] = []
    solved = by(bucket, workers=2, on_note=notes.append)
    again = set(watched.found) & set(left.shards)
    assert again == {one.name for one in (needed[:1] if kind == "shards" else needed)}
    assert len(again) < len(left.shards) and not set(watched.solved) & set(left.files)
    assert [note.split(" the stage file ")[0] for note in notes] == [
        f"of {len(again)} shard{'s' * (len(again) > 1)}"
    ]
    assert same(solved, staged) and not solved.damaged
    ours = [name for name in put if name.endswith((".asks", ".parquet"))]
    assert ours and all(".fence-" in name for name in ours), "the killed one may yet delete"


def test_what_is_lost_on_the_way_up_is_found_again_and_no_more(
    staged: Solved, memory: str, disk: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, lost = StageSearch.commit, list[str]()

    def loses(search: StageSearch, receipt: SweepReceipt) -> None:
        commit(search, receipt)
        if len(watched.solved) == 15 and not lost:
            lost.extend(path.name.split(".")[0] for path in stage_files(disk))
            shutil.rmtree(search.location.scratch)

    monkeypatch.setattr(StageSearch, "commit", loses)
    notes: list[str] = []
    solved = by(memory, workers=1, on_note=notes.append)
    again = [name for name in set(watched.found) if watched.found.count(name) > 1]
    assert again and len(again) <= len(lost) < solved.shards
    assert len(set(watched.solved)) == len(watched.solved), "none is written twice"
    assert "is on no disk any more" in notes[0] and same(solved, staged)


def test_a_full_disk_is_named_and_the_same_goes_on(
    staged: Solved, memory: str, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = files.write_stage, [4]

    def full(path: Path, *stage: Any) -> None:
        left[0] -= 1
        write(path, *stage)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_stage", full)
        with pytest.raises(OSError, match="No space left") as error:
            by(memory, workers=1)
    assert error.value.filename == f"{stage_files(disk)[0].parent} on {os.uname().nodename}"
    assert len(stage_files(disk)) == 4 and not list(disk.rglob("*.part"))
    assert same(by(memory), staged)


def test_each_machine_keeps_what_is_whole_and_wanted_and_clears_what_is_old(disk: Path) -> None:
    mine, other, old = (TableLocation(Path(), "", f"luckbase-1-{name}") for name in "abc")
    for location in (mine, other, old):
        for name in ("kept", "changed", "seen", "spare"):
            with location.stage_file(f"shards/{name}") as path:
                path.write_bytes(name.encode())
                location.keep(f"shards/{name}", path)
    long_ago = time.time() - worker.LEFT_SECONDS - 60
    for path in (old.scratch, old.scratch / "shards", other.scratch):
        os.utime(path, (long_ago, long_ago))
    wanted = {"shards/kept": tag_of(b"kept"), "shards/changed": "0" * 64, "shards/seen": "",
              "shards/gone": "", "shards/away": tag_of(b"away")}  # fmt: skip
    assert mine.whole(wanted) == ["shards/kept", "shards/seen"]
    assert sorted(path.name for path in (mine.scratch / "shards").iterdir()) == ["kept", "seen"]
    assert len(list((other.scratch / "shards").iterdir())) == 4 and not old.scratch.exists()
    assert mine.read("shards/kept") == b"kept" and mine.read("shards/spare") is None
    mine.delete()
    assert not mine.scratch.exists() and other.scratch.exists()
    beside = TableLocation(other.scratch, "")  # with the table nothing else goes
    assert beside.whole(wanted) == ["shards/kept", "shards/seen"]
    beside.delete()
    assert (other.scratch / "shards/spare").exists()


def test_who_has_a_stage_file_serves_it_unless_it_is_gone() -> None:
    asked: list[tuple[str, str]] = []
    nodes = SimpleNamespace(by_id={"a": None, "b": None}, refresh=lambda: None)
    has = {"": ["f0"], "a": ["f1"], "b": ["f2", "f3"]}

    def on(node: str, does: str, *given: Any) -> Any:
        asked.append((node, does))
        return has[node] if does == "whole" else f"{given[0]} of {node}"

    handed: list[Any] = []
    run: Any = SimpleNamespace(
        nodes=nodes, _on=on, _get=lambda answer: answer, _kept={}, _joined=True,
        _submit=handed.append, _with_disks=("", "a", "b"), _choose=lambda task: "",
    )  # fmt: skip
    assert RayWorkers.whole(run, {}) == {"f0", "f1", "f2", "f3"}
    for name in ("f0", "f2"):
        RayWorkers.submit(run, Task(0, None, 1, stage_file=name))  # type: ignore[arg-type]
    assert [one.sent for one in handed] == [{"f0": "f0 of "}, {"f2": "f2 of b"}]
    asked.clear()
    RayWorkers.delete(run, ["f1", "f3"])
    assert sorted(asked) == [("a", "delete"), ("b", "delete")]
    del nodes.by_id["b"]
    with pytest.raises(PayoffsLostError, match="what was solved stays"):
        RayWorkers.submit(run, Task(0, None, 1, stage_file="f2"))  # type: ignore[arg-type]
