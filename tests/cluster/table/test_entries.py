"""The ledger's entries: whatever drivers do to each other, no acknowledged line is lost."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from luckbase.cluster.table.entries import FENCE, Entries
from luckbase.solver.errors import FencedError

DRIVERS = 2
DONE, LOST, LANDED, LATE = "done", "lost", "landed", "late"
"""What becomes of a request: answered; lost on its way there, or on its way back; not answered, and
done some time later."""


class Driver:
    """A driver in a thread of its own, which waits before every request until it is let on. `do`
    hands it something to do; `go_on` lets it do so many requests."""

    def __init__(self, objects, late):
        self.objects, self.late = objects, late
        self.entries = None
        self.lines = []
        self.busy = False
        self.fates = []
        self._let_on, self._waits = threading.Semaphore(0), threading.Semaphore(0)

    def do(self, work):
        """Begin something; it waits before its first request."""

        def run():
            try:
                work()
            except FencedError:
                self.entries = None
            finally:
                self.busy = False
                self._waits.release()

        self.busy = True
        threading.Thread(target=run, daemon=True).start()
        self._waits.acquire()

    def go_on(self, fates):
        """Do so many requests, with what becomes of each."""
        for fate in fates:
            if self.busy:
                self.fates = [fate]
                self._let_on.release()
                self._waits.acquire()

    def finish(self):
        """Do the rest of what it is at."""
        while self.busy:
            self.go_on([DONE])

    def turn(self, change):
        """A request: whether it is answered, and what."""
        self._waits.release()
        self._let_on.acquire()
        fate = self.fates.pop()
        if fate == LATE:
            self.late.append(change)
        answer = change() if fate in (DONE, LANDED) else None
        return fate == DONE, answer

    # What the protocol needs of a store, as a store over a bad network does it.

    def put_if_absent(self, name, content):
        while True:
            answered, there = self.turn(lambda: self.objects.setdefault(name, content))
            if not answered:
                there = self._asked(lambda: self.objects.get(name))
            if there is not None:
                return bool(there == content)

    def read(self, name):
        content = self._asked(lambda: self.objects.get(name))
        if content is None:
            raise FileNotFoundError(name)
        return bytes(content)

    def list(self, prefix):
        names = self._asked(lambda: sorted(self.objects))
        return {name: 0 for name in names if name.startswith(prefix)}

    def delete(self, name):
        self._asked(lambda: self.objects.pop(name, None))

    def _asked(self, change):
        while True:
            answered, answer = self.turn(change)
            if answered:
                return answer


class Still:
    """The same objects, for a reader whom nobody disturbs."""

    def __init__(self, objects):
        self.objects = objects
        self.list = lambda prefix: dict.fromkeys(sorted(objects), 0)
        self.delete = objects.pop

    def read(self, name):
        return self.objects[name]

    def put_if_absent(self, name, content):
        return self.objects.setdefault(name, content) == content


def lines_in(objects):
    found = Entries(Still(objects), "id").read()
    assert not any(entry.damage for entry in found)
    return {line for entry in found for line in entry.lines}


FATES = st.one_of(
    st.just([DONE] * 40), st.sampled_from([1, 2, 3]).map(lambda n: [DONE] * n),
    st.lists(st.sampled_from([DONE, DONE, LOST, LANDED, LATE]), max_size=6),
)  # fmt: skip
WHO = st.integers(0, DRIVERS - 1)


class Drivers(RuleBasedStateMachine):
    """Some drivers of one table, each of which takes itself for the only one: what a lease that
    runs out at any moment leads to."""

    kind: type[Entries] = Entries

    @initialize()
    def start(self):
        self.objects = {}
        self.late = []
        self.drivers = [Driver(self.objects, self.late) for _ in range(DRIVERS)]
        self.acknowledged = set()
        self.count = 0

    @rule(who=WHO, fates=FATES)
    def begin(self, who, fates):
        """Whoever is at work or was stopped begins as a new process."""
        driver = self.drivers[who]
        driver.finish()

        def work():
            driver.entries = None
            mine = self.kind(driver, "id")
            mine.begin(str(who))
            driver.lines = [line for entry in mine.read() for line in entry.lines]
            driver.entries = mine

        driver.do(work)
        driver.go_on(fates)

    @rule(who=WHO, fates=FATES, compacts=st.booleans())
    def commit(self, who, fates, compacts):
        """A line; and at the end of a solve all lines in one entry."""
        driver = self.drivers[who]
        driver.finish()
        mine, self.count = driver.entries, self.count + 1
        line = f"line {self.count}"

        def work():
            assert mine is not None
            mine.add(f"{line}\n")
            driver.lines.append(line)
            self.acknowledged.add(line)
            if compacts:
                mine.compact("".join(f"{each}\n" for each in driver.lines))

        if mine is not None:
            driver.do(work)
            driver.go_on(fates)

    @rule(who=WHO, fates=FATES)
    def go_on(self, who, fates):
        self.drivers[who].go_on(fates)

    @rule()
    def what_was_late_is_done(self):
        while self.late:
            self.late.pop()()

    def nothing_is_lost(self):
        assert lines_in(self.objects) >= self.acknowledged

    def teardown(self):
        for driver in getattr(self, "drivers", ()):
            driver.finish()
        if hasattr(self, "objects"):
            self.what_was_late_is_done()
            self.nothing_is_lost()


def serial(kind):
    """The same with one request after another."""
    reads = {"_read_all": lambda self, names: [self.storage.read(name) for name in names]}
    return type(kind.__name__, (kind,), reads)


def run(kind, examples, steps=24, **more):
    machine = type("Machine", (Drivers,), {"kind": serial(kind)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), **more,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("examples", [25, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_acknowledged_line_is_lost(examples):
    run(Entries, examples)


class FencesDeleted(Entries):
    """They go at a compaction, with all that does not count any more."""

    def _superseded(self):
        return [n for n in self._numbers() if n < self.number]


class AllDeleted(Entries):
    """All that is listed goes at a compaction but fences."""

    def _superseded(self):
        return [n for n in self._numbers() if n != self.number and self._kind(n) != FENCE]


class NoFence(Entries):
    """Whoever begins goes on after the last number that there is."""

    def begin(self, holder):
        self.number = max(self._numbers(), default=0)
        if not self.number:
            super().begin(holder)


class NoSecondList(Entries):
    """Whoever has made a fence has begun."""

    def begin(self, holder):
        while not self.number:
            number = max(self._numbers(), default=0) + 1
            self.number = number * self._put(number, FENCE, "", holder)


SCHEDULES = {
    FencesDeleted: [("begin", 0, 40), ("begin", 1, 40), ("end", 1, 40), ("commit", 0, 40)],
    AllDeleted: [("begin", 0, 40), ("end", 0, 2), ("begin", 1, 40), ("commit", 1, 40)],
    NoFence: [("begin", 0, 40), ("begin", 1, 40), ("end", 1, 40), ("commit", 0, 40),
              ("commit", 0, 40)],
    NoSecondList: [("begin", 0, 40), ("begin", 1, 1), ("end", 0, 40), ("go_on", 1, 1),
                   ("end", 0, 40), ("commit", 1, 40)],
}  # fmt: skip
"""What loses a line: what each driver does, and how many requests of it before another comes."""


def runs(kind, schedule):
    machine = type("Machine", (Drivers,), {"kind": serial(kind)})()
    machine.start()
    for what, who, requests in schedule:
        if what in ("commit", "end"):
            machine.commit(who=who, fates=[DONE] * requests, compacts=what == "end")
        else:
            getattr(machine, what)(who=who, fates=[DONE] * requests)
    machine.teardown()


@pytest.mark.parametrize("mutant", SCHEDULES)
def test_without_any_of_its_ingredients_it_loses_one(mutant):
    runs(Entries, SCHEDULES[mutant])
    with pytest.raises(AssertionError):
        runs(mutant, SCHEDULES[mutant])


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SCHEDULES)
def test_drivers_that_nobody_directs_find_that_too(mutant):
    with pytest.raises(AssertionError):
        run(mutant, 5000, steps=20, phases=[Phase.generate])
