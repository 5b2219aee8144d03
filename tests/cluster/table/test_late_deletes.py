"""Deletes that come late, of drivers that were suspended and of requests that took their time: no
file that counts is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from luckbase.cluster.table import entries as table_entries
from luckbase.cluster.table.entries import ORPHAN_SECONDS, Entries
from luckbase.cluster.table.format import Written, new_entry, put_file
from luckbase.cluster.table.index import parts_of, read_index, take_index_away, write_index
from luckbase.cluster.table.ledger import marked, new_head
from luckbase.cluster.table.storage import Memory, Storage, Stored
from luckbase.solver import load_board, load_game
from tests.cluster.table.test_entries import DONE, FATES, WHO, Driver, Still, serial
from tests.places import BOARDS

NAMES = [f"tiers/{name}.parquet" for name in "ab"]
HEAD = new_head(load_game(load_board(BOARDS / "pig/tiny.toml")))
WHERE = Path("t")


class Writer(Driver):
    """A driver that puts files as well. clock: the store's; put_at: by it, of each object."""

    def __init__(self, objects, late, clock):
        super().__init__(objects, late)
        self.clock = clock
        self.ledger = None

    def details(self, prefix=""):
        names = self._asked(lambda: {n: self.objects[n] for n in sorted(self.objects)})
        put_at = {
            name: getattr(content, "put_at", self.clock[0]) for name, content in names.items()
        }
        return {n: Stored(len(names[n]), put_at[n]) for n in names if n.startswith(prefix)}

    def put_if_absent(self, name, content):
        dated = Dated(content)
        dated.put_at = self.clock[0]
        return super().put_if_absent(name, dated)


class Dated(bytes):
    """Bytes that a store has since then."""

    put_at: float


def unfenced(ledger, names):
    """`drop_files` with the bytes gone before the ledger says so."""
    for name in names:
        table_entries.entries_of(ledger).storage.delete(ledger.files[name].place)
    table_entries.drop_files(ledger, names)


class Writers(RuleBasedStateMachine):
    """Drivers of one table that write files and take some out again."""

    lapsed = True
    drop: Callable[..., None] = staticmethod(table_entries.drop_files)

    @initialize()
    def start(self):
        self.objects = {}
        self.late = []
        self.clock = [0.0]
        self.drivers = [Writer(self.objects, self.late, self.clock) for _ in range(2)]

    def _does(self, who, fates, work):
        driver = self.drivers[who]
        driver.finish()

        def run():
            try:
                work(driver, cast(Storage, driver))
            except BaseException:
                driver.ledger = None
                raise

        driver.do(run)
        driver.go_on(fates)

    @rule(who=WHO, fates=FATES)
    def begin(self, who, fates):
        def work(driver, storage):
            driver.ledger = None
            ledger = table_entries.begin(storage, WHERE, HEAD, str(who), self.lapsed)
            table_entries.sweep(storage, ledger)
            driver.ledger = ledger

        self._does(who, fates, work)

    @rule(who=WHO, fates=FATES, name=st.sampled_from(NAMES), text=st.sampled_from("xy"))
    def write(self, who, fates, name, text):
        """A file that is not there; a driver does not put again what it has deleted itself."""

        def work(driver, storage):
            ledger = driver.ledger
            if ledger is not None and name not in ledger.files and name not in ledger.damage:
                path = cast(Path, text.encode())
                entry = new_entry(name, 0, (1, 1), (0, 0), 0.0)
                file = Written(replace(entry, bytes=1, footer=1, sha256=text), path)
                assert ledger.entries is not None
                entry = put_file(storage, marked(name, ledger.entries.mark), file)
                table_entries.commit(ledger, entry.solved_in(0.0))

        self._does(who, fates, work)

    @rule(who=WHO, fates=FATES, name=st.sampled_from(NAMES))
    def take_out(self, who, fates, name):
        def work(driver, storage):
            if driver.ledger is not None and name in driver.ledger.files:
                self.drop(driver.ledger, [name])
                driver.ledger.damage.append(name)

        self._does(who, fates, work)

    @rule(who=WHO, fates=FATES)
    def go_on(self, who, fates):
        self.drivers[who].go_on(fates)

    @rule()
    def a_day_passes(self):
        self.clock[0] += 2 * ORPHAN_SECONDS

    @rule()
    def what_was_late_is_done(self):
        while self.late:
            self.late.pop()()

    def all_that_counts_is_there(self):
        entries = Entries(cast(Storage, Still(self.objects)), HEAD.identity)
        ledger = table_entries.read_lines(WHERE, entries, HEAD)
        assert not ledger.damage
        for entry in ledger.files.values():
            assert self.objects.get(entry.place) == entry.sha256.encode(), entry.place

    def teardown(self):
        for driver in getattr(self, "drivers", ()):
            driver.finish()
        if hasattr(self, "objects"):
            self.what_was_late_is_done()
            self.all_that_counts_is_there()


@pytest.fixture(autouse=True)
def one_request_after_another(monkeypatch):
    monkeypatch.setattr(table_entries, "Entries", serial(Entries))


@pytest.mark.parametrize("examples", [20, pytest.param(3000, marks=pytest.mark.slow)])
def test_whatever_is_deleted_late_all_that_counts_is_there(examples):
    run_state_machine_as_test(
        Writers,
        settings=settings(
            max_examples=examples, stateful_step_count=20, deadline=None, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


class Unchecked(Entries):
    """Whoever sweeps does not ask whether another has begun since it listed."""

    def check(self):
        pass


A, B = NAMES
ALL = 60
SCHEDULES = {
    "names of its own": [
        ("begin", 0, ALL), ("write", 0, ALL, A, "x"), ("take_out", 0, 2, A), ("begin", 1, ALL),
        ("write", 1, ALL, A, "x"), ("go_on", 0, ALL),
    ],
    "a check after the list": [
        ("begin", 0, 4), ("begin", 1, ALL), ("write", 1, ALL, A, "x"), ("a_day_passes",),
        ("write", 1, ALL, B, "x"), ("go_on", 0, ALL),
    ],
    "an entry before the bytes": [
        ("begin", 0, ALL), ("write", 0, ALL, A, "x"), ("begin", 1, ALL), ("take_out", 0, ALL, A),
    ],
}  # fmt: skip
"""What each ingredient is for: without it, this loses a file."""


def runs(machine, schedule):
    machine.start()
    for what, *more in schedule:
        given = dict(zip(("who", "fates", "name", "text"), more, strict=False))
        given |= {"fates": [DONE] * given["fates"]} if given else {}
        getattr(machine, what)(**given)
    machine.teardown()


@pytest.mark.parametrize("without", SCHEDULES)
def test_without_any_of_its_ingredients_a_file_is_gone(without, monkeypatch):
    runs(Writers(), SCHEDULES[without])
    mutant = Writers()
    mutant.lapsed = without != "names of its own"
    if without == "a check after the list":
        monkeypatch.setattr(table_entries, "Entries", serial(Unchecked))
    if without == "an entry before the bytes":
        mutant.drop = unfenced
    with pytest.raises(AssertionError, match=r"tiers/"):
        runs(mutant, SCHEDULES[without])


# --- the index -----------------------------------------------------------------------------------


class Remote(Memory):
    """A store."""

    anywhere = True


def test_an_index_that_comes_late_does_not_replace_a_later_one():
    storage = Remote()
    table_entries.write_head(storage, HEAD)
    head = storage.read(table_entries.HEAD)
    early = table_entries.begin(storage, WHERE, HEAD, "0")
    later = table_entries.begin(storage, WHERE, HEAD, "1")
    take_index_away(storage, later)
    write_index(storage, head, early)
    assert parts_of(read_index(storage) or b"") == (b"", b"", b"")
    assert table_entries.read_ledger(storage, WHERE).head == HEAD
    write_index(storage, head, later)
    said = read_index(storage)
    take_index_away(storage, early)
    write_index(storage, head, early)
    assert said is not None and parts_of(said)[0] == head
    assert read_index(storage) == said
