"""What every storage does, held to the folder; a further one inherits these tests."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from luckbase.cluster.store.storage import Folder, Memory, attempt, place_of, storage_at
from luckbase.solver.errors import CorruptTableError


def put_number(storage, name, number):
    return storage.swap(name, b"%d" % number, None) is not None


class StorageContract:
    """Tests of a storage; `make` gives an empty one."""

    @pytest.fixture
    def storage(self, tmp_path):
        raise NotImplementedError

    def test_what_was_put_is_read_in_ranges(self, storage):
        storage.put("a/b.bin", bytes(range(100)))
        assert storage.read("a/b.bin") == bytes(range(100))
        assert storage.read("a/b.bin", 10, 13) == b"\x0a\x0b\x0c"
        assert storage.read("a/b.bin", 99) == b"c"
        assert storage.read("a/b.bin", 100, 100) == b""

    def test_less_than_was_asked_for_is_refused(self, storage):
        storage.put("a", b"12345")
        with pytest.raises(CorruptTableError, match="ends at byte 5 and should have 6"):
            storage.read("a", 3, 6)
        with pytest.raises(FileNotFoundError):
            storage.read("b")

    def test_a_file_is_moved_and_replaces_what_was_there(self, storage):
        storage.put("a/x", b"old")
        path = storage.temporary("a/x")
        path.write_bytes(b"new")
        storage.put("a/x", path)
        assert storage.read("a/x") == b"new"
        assert not path.exists()

    def test_names_are_listed_by_their_beginning_with_sizes(self, storage):
        for name in ("tiers/b", "tiers/a", "tiersother/c", "manifest/all-1", "top"):
            storage.put(name, name.encode())
        assert storage.list("tiers/") == {"tiers/a": 7, "tiers/b": 7}
        assert list(storage.list("tiers")) == ["tiers/a", "tiers/b", "tiersother/c"]
        assert list(storage.list("manifest/all-")) == ["manifest/all-1"]
        assert list(storage.list()) == sorted(
            ["tiers/b", "tiers/a", "tiersother/c", "manifest/all-1", "top"]
        )
        assert storage.list("nothing/") == {}

    def test_what_is_deleted_is_gone_and_may_be_deleted_again(self, storage):
        storage.put("a", b"1")
        storage.delete("a")
        storage.delete("a")
        assert storage.list() == {}

    def test_temporary_places_are_never_the_same(self, storage):
        assert len({storage.temporary("a/b") for _ in range(50)}) == 50

    def test_a_range_is_read_or_too_short(self, storage):
        storage.put("a", bytes(range(200)) * 2000)
        right = {(5, 7): b"\5\6", (0, 1): b"\0", (9, 9): b"",
                 (399_990, 400_000): bytes(range(190, 200))}  # fmt: skip
        assert {span: storage.read("a", *span) for span in right} == right
        with pytest.raises(CorruptTableError, match="ends at byte 400000 and should have 400001"):
            storage.read("a", 399_990, 400_001)
        with pytest.raises(CorruptTableError):
            storage.read("a", 500_000, 500_001)
        with pytest.raises(FileNotFoundError):
            storage.read("b", 0, 1)

    def test_what_is_there_is_not_created_again(self, storage):
        assert storage.swap("a/x", b"one", None)
        assert storage.swap("a/x", b"two", None) is None
        assert storage.read("a/x") == b"one"
        assert list(storage.list()) == ["a/x"] + ["a/x.lock"] * isinstance(storage, Folder)

    def test_of_many_that_put_one_name_one_has_put_it(self, storage):
        for name in ("x", "y", "z"):
            with ThreadPoolExecutor(8) as pool:
                won = list(pool.map(partial(put_number, storage, name), range(8)))
            assert won == [b"%d" % k == storage.read(name) for k in range(8)]

    def test_what_was_changed_is_not_swapped(self, storage):
        assert storage.swap("a", b"1", "nothing") is None
        storage.put("a", b"1")
        content, tag = storage.read_tagged("a")
        assert content == b"1"
        new = storage.swap("a", b"2", tag)
        assert new not in (None, tag)
        assert storage.swap("a", b"3", tag) is None
        assert storage.read_tagged("a") == (b"2", new)
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda k: storage.swap("a", b"n%d" % k, new), range(8)))
        assert sum(each is not None for each in won) == 1
        with pytest.raises(FileNotFoundError):
            storage.read_tagged("b")

    def test_an_object_has_the_time_when_it_was_put(self, storage):
        storage.put("a/x", b"123")
        (stored,) = storage.details("a/").values()
        assert stored.size == 3
        assert abs(stored.put_at - time.time()) < 60


class TestFolder(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        return Folder(tmp_path / "table")

    def test_a_put_that_fails_leaves_what_was_there(self, storage, monkeypatch):
        storage.put("a", b"old")
        for name in ("fsync", "replace"):
            with monkeypatch.context() as patch:

                def fails(*given):
                    raise OSError(28, "No space left on device")

                patch.setattr(os, name, fails)
                with pytest.raises(OSError, match="No space"):
                    storage.put("a", b"new")
            assert storage.read("a") == b"old"

    def test_an_attempt_names_its_host_and_process(self):
        assert f"-{os.getpid()}-" in attempt()


class TestMemory(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        return Memory()

    def test_a_file_is_moved_and_replaces_what_was_there(self, storage):
        """Not moved: its place has no name."""

    def test_temporary_places_are_never_the_same(self, storage):
        assert len({storage.temporary("a/b") for _ in range(5)}) == 5


class TestObjectsInMemory(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        return storage_at(place_of(f"memory://{tmp_path.name}/a/b"))


class TestRealStore(StorageContract):
    @pytest.fixture
    def storage(self, bucket):
        return storage_at(place_of(bucket))
