"""Who may change a table: whatever writers do to each other, nothing that was committed is lost,
and every file that counts is there."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from luckbase.cluster.store import writer as writers
from luckbase.cluster.store.format import Written, new_entry, put_file
from luckbase.cluster.store.manifest import NAME, decoded, new_head
from luckbase.cluster.store.storage import Folder, Memory, tag_of
from luckbase.cluster.store.writer import Writer, read_manifest
from luckbase.solver import errors
from tests.places import BOARDS, ROOT
from tests.solving import load_board, load_game

DRIVERS = 2
DONE, LOST, LANDED, LATE = "done", "lost", "landed", "late"
"""What becomes of a request: answered; lost on its way there, or on its way back; not answered, and
done some time later."""
NAMES = A, B = "tiers/a.parquet", "tiers/b.parquet"
HEAD = new_head(load_game(load_board(BOARDS / "pig/tiny.toml")))
WHERE = Path("t")


# --- drivers that are paused anywhere, over a bad network ----------------------------------------


class Driver:
    """A driver in a thread of its own, which waits before every request until it is let on. `do`
    hands it something to do; `go_on` lets it do so many requests. It is its own store, as a store
    over a bad network is."""

    anywhere, lists = False, True

    def __init__(self, objects, late):
        self.objects, self.late = objects, late
        self.writer = None
        self.deleted = set()
        self.busy = False
        self.fates = []
        self._let_on, self._waits = threading.Semaphore(0), threading.Semaphore(0)

    def do(self, work):
        """Begin something; it waits before its first request."""

        def run():
            try:
                work()
            except errors.FencedError:
                self.writer = None
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

    def _asked(self, change):
        while True:
            answered, answer = self.turn(change)
            if answered:
                return answer

    def swap(self, name, content, tag):
        def change():
            now = self.objects.get(name)
            if (None if now is None else tag_of(now)) != tag:
                return False
            self.objects[name] = content
            return True

        while True:
            answered, done = self.turn(change)
            now = content if done and answered else self._asked(lambda: self.objects.get(name))
            if now == content:
                return tag_of(content)
            if answered or (None if now is None else tag_of(now)) != tag:
                return None

    def put(self, name, content):
        self._asked(lambda: self.objects.__setitem__(name, content))

    def read(self, name):
        content = self._asked(lambda: self.objects.get(name))
        if content is None:
            raise FileNotFoundError(name)
        return bytes(content)

    def read_tagged(self, name):
        content = self.read(name)
        return content, tag_of(content)

    def list(self, prefix=""):
        names = self._asked(lambda: {name: len(self.objects[name]) for name in self.objects})
        return {name: size for name, size in sorted(names.items()) if name.startswith(prefix)}

    def delete(self, name):
        self._asked(lambda: self.objects.pop(name, None))


class Alone(Writer):
    """A writer that takes itself for the only one, at any moment; without a thread."""

    def _wait(self, on_note):
        return True

    def _renew(self):
        pass


FATES = st.one_of(
    st.just([DONE] * 40), st.sampled_from([1, 2, 3]).map(lambda n: [DONE] * n),
    st.lists(st.sampled_from([DONE, DONE, LOST, LANDED, LATE]), max_size=6),
)  # fmt: skip
WHO = st.integers(0, DRIVERS - 1)


class Drivers(RuleBasedStateMachine):
    """Drivers of one table that write files, take some out again, and solve some again."""

    @initialize()
    def start(self):
        self.objects = {}
        self.late = []
        self.drivers = [Driver(self.objects, self.late) for _ in range(DRIVERS)]
        self.acknowledged = set()
        self.count = 0

    def _does(self, who, fates, work):
        driver = self.drivers[who]
        driver.finish()

        def run():
            try:
                work(driver)
            except BaseException:
                driver.writer = None
                raise

        if work.__name__ == "begins" or driver.writer is not None:
            driver.do(run)
            driver.go_on(fates)

    @rule(who=WHO, fates=FATES)
    def begin(self, who, fates):
        """Whoever is at work or was stopped begins as a new process."""

        def begins(driver):
            driver.writer = None
            writer = Alone(driver, WHERE, HEAD).take()
            writer.sweep()
            driver.writer, driver.deleted = writer, set()

        self._does(who, fates, begins)

    def _write(self, driver, name, text):
        entry = new_entry(name, 0, (1, 1), (0, 0), 0.0)
        digest = hashlib.sha256(text.encode()).hexdigest()
        entry = replace(entry, bytes=1, footer=1, sha256=digest, footer_sha256=digest)
        entry = put_file(driver, Written(entry, text.encode()), driver.writer.place(name, digest))
        driver.writer.commit(entry.solved_in(0.0))

    @rule(who=WHO, fates=FATES, name=st.sampled_from(NAMES), text=st.sampled_from("xy"))
    def write(self, who, fates, name, text):
        """A file that is not there; a driver does not put again what it has deleted itself."""

        def writes(driver):
            if name not in {*driver.writer.manifest.files} | driver.deleted:
                self._write(driver, name, text)

        self._does(who, fates, writes)

    @rule(who=WHO, fates=FATES)
    def write_for_good(self, who, fates):
        """A file that nobody takes out."""
        self.count += 1
        name = f"tiers/n{self.count}.parquet"

        def writes(driver):
            self._write(driver, name, "z")
            self.acknowledged.add(name)

        self._does(who, fates, writes)

    @rule(who=WHO, fates=FATES, name=st.sampled_from(NAMES))
    def take_out(self, who, fates, name):
        def takes(driver):
            if name in driver.writer.manifest.files:
                driver.deleted.add(name)
                driver.writer.drop([name])

        self._does(who, fates, takes)

    @rule(who=WHO, fates=FATES, ends=st.booleans())
    def solve_again(self, who, fates, ends):
        """Files A and B, while they still answer; it may stop before its end."""

        def solves(driver):
            names = [name for name in NAMES if name in driver.writer.manifest.files]
            driver.writer = Alone(driver, WHERE, HEAD).take()
            names = [name for name in NAMES if name in driver.writer.manifest.files]
            driver.writer.replace("again", lambda manifest: manifest.take_out(names))
            for name in names:
                if name not in driver.writer.manifest.files:
                    self._write(driver, name, "w")
            if ends:
                driver.writer.finish()
            else:
                driver.writer = None

        self._does(who, fates, solves)

    @rule(who=WHO, fates=FATES)
    def go_on(self, who, fates):
        self.drivers[who].go_on(fates)

    @rule()
    def what_was_late_is_done(self):
        while self.late:
            self.late.pop()()

    def all_is_there(self):
        if NAME not in self.objects:
            assert not self.acknowledged
            return
        manifest = decoded(self.objects[NAME], WHERE)
        assert manifest.files.keys() >= self.acknowledged, "acknowledged files are lost"
        after = manifest.next.files if manifest.next else []
        for entry in (*manifest.files.values(), *after):
            result = hashlib.sha256(self.objects.get(entry.place, b"")).hexdigest()
            assert result == entry.sha256, f"{entry.place} is gone"

    def teardown(self):
        for driver in getattr(self, "drivers", ()):
            driver.finish()
        if hasattr(self, "objects"):
            self.all_is_there()
            self.what_was_late_is_done()
            self.all_is_there()


@pytest.mark.parametrize("examples", [40, pytest.param(3000, marks=pytest.mark.slow)])
def test_nothing_that_was_committed_is_lost_and_every_file_that_counts_is_there(examples):
    run_state_machine_as_test(
        Drivers, settings=settings(max_examples=examples, stateful_step_count=24, database=None,
                                   deadline=None, suppress_health_check=list(HealthCheck)),
    )  # fmt: skip


ALL = [DONE] * 60
SCHEDULES = {
    "a manifest that another has replaced": [
        ("begin", 0, ALL), ("begin", 1, ALL), ("write_for_good", 1, ALL),
        ("write_for_good", 0, ALL)],
    "files of one name": [
        ("begin", 0, ALL), ("write", 0, ALL, A, "x"), ("take_out", 0, [DONE], A),
        ("begin", 1, ALL), ("write", 1, ALL, A, "x"), ("go_on", 0, ALL)],
    "a file that is deleted": [
        ("begin", 0, ALL), ("write", 0, ALL, A, "x"), ("begin", 1, ALL), ("take_out", 0, ALL, A)],
    "a manifest that is as it was before": [
        ("begin", 0, ALL), ("write", 0, [DONE, LATE, *ALL], A, "x"), ("take_out", 0, ALL, A)],
}  # fmt: skip
"""What each driver does, and what becomes of its requests, where a simpler writer loses a file."""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_nothing_is_lost_where_a_simpler_writer_loses_it(schedule):
    machine = Drivers()
    machine.start()
    for what, *more in SCHEDULES[schedule]:
        getattr(machine, what)(**dict(zip(("who", "fates", "name", "text"), more, strict=False)))
    machine.teardown()


# --- one writer at a time ------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    """A lease of half a second."""
    monkeypatch.setattr(writers, "LEASE_SECONDS", 0.6)
    monkeypatch.setattr(writers, "BEAT_SECONDS", 0.1)


def elsewhere(storage, head=HEAD):
    """A writer of another machine takes the table."""
    writer = Writer(storage, WHERE, head)
    far = {"host": "far", "process": 7, "machine": "far 1", "started": "5", "since": "noon"}
    writer._record = replace(writer._record, **far)
    return writer.take()


def ended(writer):
    """A process that ended without a word."""
    writer._ended.set()
    writer._thread.join()
    writers._alive.discard(writer.id)


@pytest.mark.parametrize("kind", [Memory, Folder])
def test_a_second_writer_is_refused_and_the_table_is_free_afterwards(kind, tmp_path):
    storage = Memory() if kind is Memory else Folder(tmp_path)
    with (
        Writer(storage, WHERE, HEAD).take(),
        pytest.raises(
            errors.RequestError, match=r"t: another solve of this table is running: process"
        ),
    ):
        Writer(storage, WHERE, HEAD).take()
    with Writer(storage, WHERE, HEAD).take() as writer:
        assert writer.manifest.writer == writer._record
    assert not read_manifest(storage, WHERE).is_written
    assert not storage.list(writers.BEATS)


def test_a_writer_of_another_host_that_is_silent_is_taken_over_once(short):
    storage, notes, refused, taken = Memory(), [], [], []
    ended(elsewhere(storage))
    began = time.monotonic()

    def take():
        try:
            taken.append(Writer(storage, WHERE, HEAD).take(notes.append))
        except errors.RequestError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began >= 0.6 and "process 7 on far since noon" in notes[0]
    assert len(refused) == 1 and len(taken) == 1
    ended(taken[0])


def test_a_writer_of_another_host_that_shows_signs_of_life_is_not_taken_over(short):
    storage = Memory()
    with elsewhere(storage) as far:
        with pytest.raises(errors.RequestError, match="is running: process 7 on far since noon"):
            Writer(storage, WHERE, HEAD).take()
        far.commit()
    Writer(storage, WHERE, HEAD).take().__exit__(None, None, None)


def test_a_table_that_becomes_free_while_another_waits_is_taken_at_once(short, monkeypatch):
    monkeypatch.setattr(writers, "LEASE_SECONDS", 60.0)
    monkeypatch.setattr(writers, "BEAT_SECONDS", 60.0)
    storage = Memory()
    far = elsewhere(storage)
    threading.Timer(0.3, far.__exit__, [None, None, None]).start()
    began = time.monotonic()
    with Writer(storage, WHERE, HEAD).take():
        assert time.monotonic() - began < 30


def test_a_clock_that_is_an_hour_off_changes_nothing(short, monkeypatch):
    storage = Memory()
    ended(elsewhere(storage))
    hour = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: hour)
    began = time.monotonic()
    with Writer(storage, WHERE, HEAD).take():
        assert time.monotonic() - began >= 0.6


def test_a_process_of_this_host_that_has_ended_is_taken_over_at_once(tmp_path):
    script = (
        "import sys; from pathlib import Path\n"
        "from luckbase.cluster.store.storage import Folder\n"
        "from tests.cluster.store.test_writer import HEAD, WHERE, Writer\n"
        "Writer(Folder(Path(sys.argv[1])), WHERE, HEAD).take(); print('taken', flush=True)\n"
        "import time; time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, text=True,
                               stdout=subprocess.PIPE)  # fmt: skip
    assert process.stdout.readline() == "taken\n"
    with pytest.raises(errors.RequestError, match=f"process {process.pid} on"):
        Writer(Folder(tmp_path), WHERE, HEAD).take()
    process.kill()
    process.wait()
    process.stdout.close()
    began = time.monotonic()
    with Writer(Folder(tmp_path), WHERE, HEAD).take():
        assert time.monotonic() - began < 5


def test_a_writer_that_was_taken_over_fails_at_its_next_commit():
    storage = Memory()
    first = Alone(storage, WHERE, HEAD).take()
    first.commit(file(A))
    second = Alone(storage, WHERE, HEAD).take()
    second.commit(file(B))
    second_is = rf"has begun: process {second._record.process} on .*; this one stops"
    with pytest.raises(errors.FencedError, match=second_is):
        first.commit(file("tiers/c.parquet"))
    assert read_manifest(storage, WHERE).files.keys() == {A, B}


def test_a_table_of_format_4_is_refused_with_the_command_that_solves_it_again():
    storage = Memory({"table.json": b'{"format": 4, "game": "pig", "board": "tiny"}'})
    for use in (lambda: read_manifest(storage, WHERE), lambda: Writer(storage, WHERE, HEAD).take()):
        with pytest.raises(
            errors.ForeignTableError, match=r"format 4; .* luckbase solve pig/tiny$"
        ):
            use()


# --- commits -------------------------------------------------------------------------------------


def file(name):
    entry = new_entry(name, 0, (1, 1), (0, 0), 0.0)
    return replace(entry, bytes=1, footer=1, sha256="0a" * 32, footer_sha256="0b" * 32)


def test_what_is_added_is_committed_some_seconds_later_and_at_the_end(monkeypatch):
    storage = Memory()
    with Writer(storage, WHERE, HEAD).take() as writer:
        assert writer.seconds == float("inf")
        writer.add(file(A))
        assert 4 < writer.seconds <= writers.COMMIT_SECONDS
        assert not read_manifest(storage, WHERE).files
        writer.commit()
        assert read_manifest(storage, WHERE).files.keys() == {A}
        writer.add(file(B))
    assert read_manifest(storage, WHERE).files.keys() == {A, B}


@pytest.mark.parametrize(("slow", "pause"), [(0.01, 5.0), (1.0, 20.0), (30.0, 60.0)])
def test_slow_commits_are_further_apart_but_never_more_than_a_minute(slow, pause, monkeypatch):
    with Writer(Memory(), WHERE, HEAD).take() as writer:
        now = iter([0.0, slow])
        monkeypatch.setattr(writers.time, "monotonic", lambda: next(now, slow))
        writer._since = 0.0
        writer.commit()
        assert writer._pause == pytest.approx(pause)
        monkeypatch.undo()


def test_an_error_loses_nothing_that_was_added():
    storage = Memory()
    with pytest.raises(KeyError), Writer(storage, WHERE, HEAD).take() as writer:
        writer.add(file(A))
        raise KeyError
    assert read_manifest(storage, WHERE).files.keys() == {A}


# --- solved again --------------------------------------------------------------------------------


def solved(storage, names):
    with Writer(storage, WHERE, HEAD).take() as writer:
        for name in names:
            entry = file(name).placed(writer.place(name))
            storage.put(entry.place, b"1")
            writer.add(entry)
    return read_manifest(storage, WHERE)


def test_what_a_solve_again_of_something_else_has_is_not_taken():
    storage = Memory()
    solved(storage, NAMES)
    with Writer(storage, WHERE, HEAD).take() as writer:
        writer.replace("one", lambda manifest: manifest.take_out([A]))
        writer.commit(file(A).placed(writer.place(A)))
    with Writer(storage, WHERE, HEAD).take() as writer:
        writer.replace("two", lambda manifest: manifest.take_out([A]))
        assert [*writer.manifest.files] == [B]


# --- leftovers -----------------------------------------------------------------------------------


def test_leftovers_of_stopped_writers_go_and_other_peoples_files_stay(tmp_path):
    storage = Folder(tmp_path)
    killed = Writer(storage, tmp_path, HEAD).take()
    assert storage.list(writers.BEATS)
    stage = f"shards/0-1.{killed.id}.arrow"
    remaining = [killed.place(A), f"{A}.host-1-0123abcd-3.part", stage]
    others = [
        "tiers/mine.parquet", "tiers/mine.0123abcd.parquet", "tiers/notes.txt", "tiers/x.part",
        "shards/thesis.arrow", "shards/notes.txt", "log/diary.log", ".writer-0123abcd",
    ]  # fmt: skip
    for name in (*remaining, *others):
        storage.put(name, b"1")
    ended(killed)
    with Writer(storage, tmp_path, HEAD).take() as writer:
        writer.sweep()
    there = storage.list()
    assert not {*remaining} & there.keys() and {*others} <= there.keys()


# --- the store, and the folder -------------------------------------------------------------------


class Careless(Memory):
    """A store that ignores one of the conditions of a write."""

    anywhere, ignored = True, ""

    def swap(self, name, content, tag):
        if self.ignored != ("If-None-Match" if tag is None else "If-Match"):
            return super().swap(name, content, tag)
        self.put(name, content)
        return tag_of(content)


@pytest.mark.parametrize("ignored", ["If-None-Match", "If-Match"])
def test_a_store_that_ignores_a_condition_is_refused(ignored):
    storage = Careless()
    storage.ignored = ignored
    with pytest.raises(errors.StoreError, match=f"header {ignored} .* would keep two solves apart"):
        Writer(storage, WHERE, HEAD).take()
    assert not storage.list()


def test_a_folder_that_is_locked_for_long_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("luckbase.cluster.store.storage.LOCK_SECONDS", 0.2)
    folder = Folder(tmp_path)
    with folder._alone(NAME), pytest.raises(errors.StoreError, match="locked by another process"):
        folder.swap(NAME, b"1", None)


def test_a_folder_without_locks_is_refused_in_a_sentence(tmp_path, monkeypatch):
    def no_locks(file, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(errors.StoreError, match="its file system has no locks"):
        Folder(tmp_path).swap(NAME, b"1", None)


@pytest.mark.parametrize(
    ("options", "local"),
    [("rw,vers=4.2,local_lock=none", ""), ("rw,nolock,vers=3,local_lock=all", "local_lock=all"),
     ("rw,vers=3,nolock", "nolock"), ("rw,localflock", "localflock")],
)  # fmt: skip
def test_a_mount_whose_locks_other_hosts_do_not_see_is_refused(
    options, local, tmp_path, monkeypatch
):
    mounts = f"1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / {tmp_path} rw - nfs far:/x {options}\n"
    read = Path.read_text
    monkeypatch.setattr(
        Path, "read_text",
        lambda path, *a, **k: mounts if path.name == "mountinfo" else read(path, *a, **k),
    )  # fmt: skip
    if not local:
        return Folder(tmp_path / "t").check_writable()
    with pytest.raises(errors.StoreError, match=f"is mounted with {local}, so other hosts"):
        Folder(tmp_path / "t").check_writable()


def test_a_manifest_that_was_changed_is_replaced_by_a_solve_which_says_so():
    storage = Memory({NAME: b"{}"})
    with pytest.raises(errors.CorruptTableError, match=r"manifest.json: was changed"):
        read_manifest(storage, WHERE)
    with Writer(storage, WHERE, HEAD).take() as writer:
        assert "was changed" in writer.damage
    assert read_manifest(storage, WHERE).files == {}
