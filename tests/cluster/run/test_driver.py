"""The loop of a driver: what comes at once is committed at once, and nothing goes before that."""

import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.cluster.run.driver import Run
from luckbase.cluster.run.schedule import Schedule
from luckbase.cluster.run.worker import PayoffsReady
from luckbase.cluster.table import entries as table_entries
from luckbase.cluster.table.entries import Commits, Entries, begin, read_lines
from luckbase.cluster.table.storage import Folder
from tests.cluster.run.test_schedule import plans
from tests.cluster.table.test_ledger import HEAD, file


class LostError(Exception):
    """A task's."""


class SomeWorkers:
    """They do `count` tasks at once, and are done with them in the order and number that is drawn;
    at one event, counted from the first, a task fails."""

    def __init__(self, count, data, fails):
        self.slots, self.data, self.left = count, data, fails
        self.tasks = []
        self.events = []

    def submit(self, task):
        self.tasks.append(task)

    def wait_one(self, seconds):
        if not self.events and (seconds or self.data.draw(st.booleans())):
            for _ in range(self.data.draw(st.integers(1, len(self.tasks)))):
                task = self.tasks.pop(self.data.draw(st.integers(0, len(self.tasks) - 1)))
                self.events += [PayoffsReady(task.shard)] if task.keep else []
                self.events.append(task)
        if not self.events:
            assert not seconds
            return None
        if not self.left:
            raise LostError
        self.left -= 1
        return self.events.pop(0)

    def drop(self, tier):
        """They keep nothing."""


class Watched(Commits):
    """How many lines each flush took."""

    def __init__(self, table):
        super().__init__(begin(Folder(table), table, HEAD, "me"))
        self.groups = []

    def flush(self):
        if self.lines:
            self.groups.append(len(self.lines))
        super().flush()


@contextmanager
def most(number):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_entries, "MAX_WAITING", number)
        yield


@settings(max_examples=40)
@given(plans(), st.data())
def test_what_is_solved_is_committed_before_anything_goes_and_at_an_error(shards, data):
    workers = SomeWorkers(data.draw(st.integers(1, 4)), data, data.draw(st.integers(0, 40)))
    schedule = Schedule(shards, workers=workers.slots, memory=100)
    asked = []
    kept, gone = set[int](), set[int]()
    with tempfile.TemporaryDirectory() as folder, most(data.draw(st.integers(1, 3))):
        commits = Watched(Path(folder))
        name = {shard.index: f"tiers/{shard.index}.parquet" for shard in shards}

        def commit(task):
            asked.append(task.shard)
            commits.add(file(name[task.shard]))

        def drop(indices):
            readers = {shard.index for shard in shards if {*shard.children} & {*indices}}
            assert not commits
            assert commits.ledger.files.keys() >= {name[i] for i in {*indices, *readers}}
            gone.update(indices)

        class SomeRun(Run[Any]):
            make_schedule = progress = lambda self: None

            def __init__(self):
                self.workers, self.schedule, self.commits = workers, schedule, commits

            def task(self, step):
                kept.update([step.shard] if step.keep else [])
                return SimpleNamespace(shard=step.shard, keep=step.keep)

            def commit(self, receipt):
                commit(receipt)

            def drop(self, shards):
                drop(shards)

            def count(self, receipt): ...
            def note_memory(self, receipt): ...
            def show(self, progress): ...

        with suppress(LostError):
            SomeRun().follow_schedule()
        entries = Entries(Folder(Path(folder)), HEAD.identity)
        read = read_lines(Path(folder), entries, HEAD)
        assert read.files.keys() == commits.ledger.files.keys() == {name[i] for i in asked}
        assert schedule.finished == (len(asked) == len(shards)) or not workers.left
        assert gone == kept or not schedule.finished
        assert sum(commits.groups) == len(asked) and max(commits.groups, default=0) <= 3
        assert not list(Path(folder).rglob("*.part"))
        assert len(list(Path(folder).glob("ledger/*"))) == 1 + len(commits.groups)


def test_lines_that_come_at_once_are_flushed_at_once(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr("luckbase.cluster.table.storage.os.fsync", flushed.append)
    counts = []
    for number in (1, 30):
        commits = Watched(tmp_path / str(number))
        for i in range(number):
            commits.add(file(f"tiers/{i}.parquet"))
        flushed.clear()
        commits.flush()
        counts.append(len(flushed))
        assert not commits
        assert len(list((tmp_path / str(number)).glob("ledger/*"))) == 2  # and a fence
    assert counts[0] == counts[1] > 0
