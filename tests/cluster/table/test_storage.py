"""What every storage does, held to the folder; a further one inherits these tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from luckbase import cluster, solver
from luckbase.cluster.table.storage import Folder, Storage, attempt
from luckbase.solver.errors import CorruptTableError
from tests.places import ROOT

TINY = ROOT / "boards/press-your-luck/tiny.toml"


class StorageContract:
    """Tests of a storage; `make` gives an empty one."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        raise NotImplementedError

    def test_what_was_put_is_read_in_ranges(self, storage: Storage) -> None:
        storage.put("a/b.bin", bytes(range(100)))
        assert storage.read("a/b.bin") == bytes(range(100))
        assert storage.read("a/b.bin", 10, 13) == b"\x0a\x0b\x0c"
        assert storage.read("a/b.bin", 99) == b"c"
        assert storage.read("a/b.bin", 100, 100) == b""

    def test_less_than_was_asked_for_is_refused(self, storage: Storage) -> None:
        storage.put("a", b"12345")
        with pytest.raises(CorruptTableError, match="ends at byte 5 and should have 6"):
            storage.read("a", 3, 6)
        with pytest.raises(FileNotFoundError):
            storage.read("b")

    def test_a_file_is_moved_and_replaces_what_was_there(self, storage: Storage) -> None:
        storage.put("a/x", b"old")
        path = storage.temporary("a/x")
        path.write_bytes(b"new")
        storage.put("a/x", path)
        assert storage.read("a/x") == b"new"
        assert not path.exists()

    def test_names_are_listed_by_their_beginning_with_sizes(self, storage: Storage) -> None:
        for name in ("tiers/b", "tiers/a", "tiersother/c", "ledger/all-1", "top"):
            storage.put(name, name.encode())
        assert storage.list("tiers/") == {"tiers/a": 7, "tiers/b": 7}
        assert list(storage.list("tiers")) == ["tiers/a", "tiers/b", "tiersother/c"]
        assert list(storage.list("ledger/all-")) == ["ledger/all-1"]
        assert list(storage.list()) == sorted(
            ["tiers/b", "tiers/a", "tiersother/c", "ledger/all-1", "top"]
        )
        assert storage.list("nothing/") == {}

    def test_what_is_deleted_is_gone_and_may_be_deleted_again(self, storage: Storage) -> None:
        storage.put("a", b"1")
        storage.delete("a")
        storage.delete("a")
        assert storage.list() == {}

    def test_temporary_places_are_never_the_same(self, storage: Storage) -> None:
        assert len({storage.temporary("a/b") for _ in range(50)}) == 50


class TestFolder(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return Folder(tmp_path / "table")

    def test_a_put_that_fails_leaves_what_was_there(
        self, storage: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage.put("a", b"old")
        for name in ("fsync", "replace"):
            with monkeypatch.context() as patch:

                def fails(*given: object) -> None:
                    raise OSError(28, "No space left on device")

                patch.setattr(os, name, fails)
                with pytest.raises(OSError, match="No space"):
                    storage.put("a", b"new")
            assert storage.read("a") == b"old"

    def test_an_attempt_names_its_host_and_process(self) -> None:
        assert f"-{os.getpid()}-" in attempt()


def in_memory(path: Path) -> bool:
    """Whether the system would not go to the disk for a file's first bytes."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.preadv(handle, [bytearray(1)], 0, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False
    finally:
        os.close(handle)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="the system does not say")
def test_files_of_a_table_leave_the_memory_of_the_system(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = Folder(on_disk).written("control", b"1" * 10_000)
    try:
        if not in_memory(control):
            pytest.skip("this disk's files are never in memory")
    except OSError:
        pytest.skip("this disk does not say whether files are in memory")
    sizes, advise = {}, os.posix_fadvise

    def noted(handle: int, *words: int) -> None:
        file = os.fstat(handle)
        sizes[file.st_ino] = file.st_size
        advise(handle, *words)

    monkeypatch.setattr(os, "posix_fadvise", noted)
    solved = cluster.solve(solver.load_board(TINY, frontier=1), results=on_disk, workers=1)
    files = list(solved.table.glob("tiers/*.parquet"))
    assert len(files) > 1
    # the system was asked once each file was whole; it may keep the odd one, which is its right
    assert all(sizes.get(file.stat().st_ino) == file.stat().st_size for file in files)
    assert sum(in_memory(file) for file in files) <= len(files) // 2
    assert len(files[0].read_bytes()) > 1000
    assert in_memory(files[0])
