"""The loop of a driver: what is solved is committed, and nothing goes that is still read."""

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.cluster.solve.driver import Run
from luckbase.cluster.solve.schedule import Schedule
from luckbase.cluster.solve.worker import PayoffsReady
from luckbase.cluster.store import writer as writers
from luckbase.cluster.store.storage import Memory
from luckbase.cluster.store.writer import Writer, read_manifest
from tests.cluster.solve.test_schedule import plans
from tests.cluster.store.test_manifest import HEAD, file


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
        if not self.events:
            for _ in range(self.data.draw(st.integers(1, len(self.tasks)))):
                task = self.tasks.pop(self.data.draw(st.integers(0, len(self.tasks) - 1)))
                self.events += [PayoffsReady(task.shard)] if task.keep else []
                self.events.append(task)
        if not self.left:
            raise LostError
        self.left -= 1
        return self.events.pop(0)

    def drop(self, tier):
        """They keep nothing."""


@settings(max_examples=40)
@given(plans(), st.data())
def test_what_is_solved_is_committed_also_at_an_error_and_nothing_goes_that_is_read(shards, data):
    workers = SomeWorkers(data.draw(st.integers(1, 4)), data, data.draw(st.integers(0, 40)))
    schedule = Schedule(shards, workers=workers.slots, memory=100)
    pause = data.draw(st.sampled_from([0.0, 3600.0]))
    query, commits = [], []
    kept, gone = set[int](), set[int]()
    name = {shard.index: f"tiers/{shard.index}.parquet" for shard in shards}
    storage = Memory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "COMMIT_SECONDS", pause)
        patch.setattr(writers, "SHARE", float("inf"))
        writer = Writer(storage, Path("t"), HEAD).take()
        commit = writer.commit
        patch.setattr(writer, "commit", lambda: (commits.append(1), commit()))

        class SomeRun(Run):
            make_schedule = progress = lambda self: None
            shown = 0.0

            def __init__(self):
                self.workers, self.schedule, self.writer = workers, schedule, writer

            def task(self, step):
                kept.update([step.shard] if step.keep else [])
                return SimpleNamespace(shard=step.shard, keep=step.keep)

            def commit(self, receipt):
                query.append(receipt.shard)
                self.writer.add(file(name[receipt.shard]))

            def drop(self, shards_gone):
                readers = {s.index for s in shards if {*s.children} & {*shards_gone}}
                assert {*query} >= {*shards_gone, *readers}
                gone.update(shards_gone)

            def count(self, receipt): ...
            def note_memory(self, receipt): ...
            def show(self, progress): ...

        with suppress(LostError), writer:
            SomeRun().follow_schedule()
    read = read_manifest(storage, Path("t"))
    assert read.files.keys() == {name[i] for i in query}
    assert schedule.finished == (len(query) == len(shards)) or not workers.left
    assert gone == kept or not schedule.finished
    assert bool(commits) == (bool(query) and not pause) or not schedule.finished
