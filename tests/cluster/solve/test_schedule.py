"""The schedule as a machine: random plans, random orders of completion, every invariant."""

from hypothesis import given
from hypothesis import strategies as st

from luckbase.cluster.solve.schedule import Drop, Schedule, Shard, Solve


def check_invariants(schedule):
    assert not schedule.waiting & schedule.running.keys()
    met = {i for i in schedule.waiting if all(c in schedule.kept for c in schedule.children[i])}
    assert set(schedule.ready) == met
    in_use = sum(schedule.shards[i].memory for i in schedule.running)
    assert in_use <= schedule.memory or len(schedule.running) == 1
    assert schedule.committed.isdisjoint(schedule.to_commit)
    assert schedule.to_commit <= schedule.waiting | schedule.running.keys()
    for index in schedule.running:
        assert all(child in schedule.kept for child in schedule.children[index])
    for index in schedule.kept:
        assert schedule.readers[index] or index in schedule.running, "kept, and nobody reads it"
    if schedule.waiting:
        assert schedule.running, "something waits and nothing runs"


@st.composite
def plans(draw):
    """Up to 14 shards; each reads some of those before it."""
    count = draw(st.integers(1, 14))
    return [
        Shard(
            i,
            f"shard {i}",
            tuple(sorted(draw(st.sets(st.integers(0, i - 1), max_size=3)))) if i else (),
            rows=1,
            memory=draw(st.integers(1, 10)),
            cores=draw(st.sampled_from([0, 1, 1, 4])),
        )
        for i in range(count)
    ]


@given(st.data())
def test_every_shard_is_committed_once_after_its_children_within_the_bounds(data):
    shards = data.draw(plans())
    everyone = [shard.index for shard in shards]
    committed = data.draw(st.sets(st.sampled_from(everyone)))
    stored = {i for i in committed if data.draw(st.booleans())}
    workers, memory = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 25))
    most = workers * data.draw(st.integers(1, 2))
    schedule = Schedule(
        shards, workers=workers, memory=memory, committed=committed, stored=stored,
        ahead=most // workers,
    )  # fmt: skip
    reads = {i: () if i in stored else shards[i].children for i in everyone}
    available, commits, solves = set(), [], []
    running = set()

    def follow(steps):
        for step in steps:
            if isinstance(step, Drop):
                assert step.shard in available
                assert step.shard not in running, "its file is still being written"
                available.discard(step.shard)
        for step in steps:
            if isinstance(step, Solve):
                assert set(reads[step.shard]) <= available
                assert step.commit == (step.shard not in committed)
                running.add(step.shard)
                solves.append(step.shard)
        busy = [schedule.running[i] for i in running if shards[i].cores]
        assert sum(busy) <= most or len(busy) == 1
        assert all(schedule.running[i] <= shards[i].cores for i in running)
        assert sum(shards[i].memory for i in running) <= memory or len(running) == 1
        check_invariants(schedule)

    follow(schedule.start())
    while not schedule.finished:
        shard = data.draw(st.sampled_from(sorted(running)))
        if schedule.readers[shard] and data.draw(st.booleans()):
            available.add(shard)
            follow(schedule.payoffs_ready(shard))
        else:
            running.discard(shard)
            commits += [shard] * (shard in schedule.to_commit)
            available.update([shard] * bool(schedule.readers[shard]))
            follow(schedule.solved(shard))
    assert sorted(commits) == sorted(set(everyone) - committed)
    assert len(set(solves)) == len(solves)
    assert not available, "everything kept is dropped in the end"
    # A committed shard is solved again only where a shard that was solved reads it.
    for again in set(solves) & committed:
        assert any(again in reads[i] for i in solves)


def test_the_earliest_ready_shard_goes_first_and_memory_bounds_the_rest():
    shards = [Shard(i, str(i), (), 1, 4) for i in range(4)]
    schedule = Schedule(shards, workers=3, memory=9)
    first = schedule.start()
    assert [s.shard for s in first if isinstance(s, Solve)] == [0, 1]
    after = schedule.solved(1)
    assert [s.shard for s in after if isinstance(s, Solve)] == [2]


def test_payoffs_are_read_while_their_file_is_written_and_dropped_once_it_is():
    shards = [Shard(0, "0", (), 1, 1), Shard(1, "1", (0,), 1, 1)]
    schedule = Schedule(shards, workers=2, memory=10)
    assert schedule.start() == [Solve(0, commit=True, keep=True)]
    assert schedule.payoffs_ready(0) == [Solve(1, commit=True, keep=False)]
    assert schedule.payoffs_ready(0) == []
    assert schedule.solved(1) == []  # 0 is written from what 1 has read
    assert schedule.solved(0) == [Drop(0)]
    assert schedule.finished


def test_a_shard_has_several_cores_where_few_are_ready_and_one_where_many_are():
    def cores(count, workers):
        shards = [Shard(i, str(i), (), 1, 1, cores=16) for i in range(count)]
        steps = Schedule(shards, workers=workers, memory=1000).start()
        return [step.cores for step in steps if isinstance(step, Solve)]

    assert cores(1, 64) == [16]
    assert cores(4, 64) == [16] * 4
    assert cores(31, 64) == [4] * 16  # and no more than there are
    assert cores(200, 64) == [1] * 64
    narrow = [Shard(i, str(i), (), 1, 1) for i in range(3)]
    assert [step.cores for step in Schedule(narrow, workers=64, memory=9).start()] == [1, 1, 1]
    mixed = [Shard(0, "0", (), 1, 1, cores=1), Shard(1, "1", (), 1, 1, cores=16)]
    assert [step.cores for step in Schedule(mixed, workers=64, memory=9).start()] == [1, 16]
