"""One solve of a table at a time: who is at it is said, who is not any more is taken over."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from luckbase.cluster.run import progress as lock_module
from luckbase.cluster.run.progress import LOCK, Lock, lock
from luckbase.cluster.table.entries import Entries
from luckbase.cluster.table.storage import Folder, Memory, place_of, storage_at
from luckbase.solver.errors import FencedError, RequestError
from tests.places import ROOT

SHORT = 0.6
"""Seconds of a lease."""
ALIVE = 6 * SHORT
"""Of one whose holder lives and must say so in time, on a busy machine too."""


def held_elsewhere(storage, **more):
    """By a process of another machine."""
    holder = {"host": "far", "process": 7, "machine": "far 1", "started": "5", "since": "noon"}
    said = {"holder": holder, "epoch": 3, "beat": 1, "lease": SHORT, **more}
    storage.put(LOCK, json.dumps(said).encode())


def test_it_says_who_holds_it_and_is_free_afterwards(tmp_path):
    running = rf"running: process {os.getpid()} on .* since"
    with lock(tmp_path), pytest.raises(RequestError, match=running):
        Lock(Folder(tmp_path), tmp_path).take()
    with lock(tmp_path) as again:
        assert again.epoch == 1


def test_one_that_says_nothing_for_a_lease_is_taken_over_once():
    storage, notes = Memory(), list[str]()
    held_elsewhere(storage)
    started = time.monotonic()
    two = [Lock(storage, Path("t"), ALIVE) for _ in range(2)]
    refused = list[Exception]()

    def take(mine):
        try:
            mine.take(notes.append)
        except RequestError as error:
            refused.append(error)

    threads = [threading.Thread(target=take, args=(one,)) for one in two]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started >= SHORT and "process 7 on far since noon" in notes[0]
    assert len(refused) == 1 and sum(one.tag is not None for one in two) == 1
    (winner,) = (one for one in two if one.tag is not None)
    assert winner.epoch == 4
    winner.release()


def test_one_that_is_removed_with_its_table_is_made_anew():
    storage, mine = Memory(), Lock(Memory(), Path("t"), SHORT)
    held_elsewhere(storage, lease=60.0)
    mine.storage = storage
    threading.Timer(0.2, storage.delete, [LOCK]).start()
    mine.take()
    assert mine.epoch == 0 and mine.tag
    mine.release()


def test_one_that_says_something_is_not_taken_over_however_long_it_holds_it():
    storage = Memory()
    theirs, mine = Lock(storage, Path("t"), ALIVE), Lock(storage, Path("t"), ALIVE)
    theirs._own["machine"] = mine._own["machine"] + " not"
    theirs.take()
    with pytest.raises(RequestError, match="is running: process"):
        mine.take()
    assert theirs.beat and mine.tag is None
    theirs.release()
    mine.take()
    mine.release()


def test_a_clock_that_is_an_hour_off_changes_nothing(monkeypatch):
    storage = Memory()
    held_elsewhere(storage)
    hour = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: hour)
    started = time.monotonic()
    mine = Lock(storage, Path("t"), SHORT)
    mine.take()
    assert time.monotonic() - started >= SHORT
    mine.release()


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"holder": 3}', b"\xff"])
def test_one_that_nobody_can_read_is_taken_over_after_a_lease(content):
    storage = Memory({LOCK: content})
    mine = Lock(storage, Path("t"), SHORT)
    mine.take()
    mine.release()


def test_a_holder_of_this_machine_that_is_dead_need_not_be_waited_for(tmp_path):
    script = (
        "import sys; from pathlib import Path; from luckbase.cluster.run.progress import Lock\n"
        "from luckbase.cluster.table.storage import Folder\n"
        "Lock(Folder(Path(sys.argv[1])), Path('t')).take(); print('held', flush=True)\n"
        "import time; time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, text=True,
                               stdout=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    mine = Lock(Folder(tmp_path), tmp_path)
    with pytest.raises(RequestError, match=f"process {process.pid} on"):
        mine.take()
    process.kill()
    process.wait()
    process.stdout.close()
    started = time.monotonic()
    mine.take()
    assert time.monotonic() - started < lock_module.LEASE
    mine.release()


def test_who_was_taken_over_commits_nothing_more(tmp_path):
    """A solve that was suspended for longer than its lease."""
    first, second = Entries(Folder(tmp_path), "id"), Entries(Folder(tmp_path), "id")
    first.begin("process 1 on near")
    first.add("a\n")
    second.begin("process 2 on far")
    with pytest.raises(FencedError, match="has begun: process 2 on far; this one stops"):
        first.add("b\n")
    second.add("c\n")
    found = Entries(Folder(tmp_path), "id").read()
    assert [line for entry in found for line in entry.lines] == ["a", "c"]


RACER = """
import sys, time
from luckbase.cluster.table.storage import place_of, storage_at
storage, races, who = storage_at(place_of(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
for i in range(races):
    storage.put(f"ready/{i}-{who}", b"1")
    while len(storage.list(f"ready/{i}-")) < 2:
        time.sleep(1e-4)
    print(int(storage.put_if_absent(f"race/{i}", who.encode())), flush=True)
"""


def race(place, races):
    """Two processes make the same object, again and again: one of them does."""
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, place, str(races), who], cwd=ROOT, text=True,
                         stdout=subprocess.PIPE) for who in "ab"
    ]  # fmt: skip
    won = [list(map(int, racer.communicate()[0].split())) for racer in racers]
    assert [a + b for a, b in zip(*won, strict=True)] == [1] * races
    storage = storage_at(place_of(place))
    assert [storage.read(f"race/{i}") for i in range(races)] == [
        b"a" if a else b"b" for a in won[0]
    ]


RACES = [20, pytest.param(200, marks=pytest.mark.slow)]


@pytest.mark.parametrize("races", RACES)
def test_of_two_processes_one_makes_an_object_of_a_folder(tmp_path, races):
    race(str(tmp_path), races)


@pytest.mark.parametrize("races", RACES)
def test_of_two_processes_one_makes_an_object_of_a_store(bucket, races):
    race(f"{bucket}/races-{races}", races)
