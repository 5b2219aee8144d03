"""What does not fit in the memory or on the disk: refused beforehand, or said when it comes up."""

import errno
import os
import re
from collections import namedtuple

import numpy as np
import pytest

from luckbase.cluster import machine
from luckbase.cluster.solve import full_table, worker
from luckbase.cluster.solve.plan import check_room, make_plan
from luckbase.cluster.store import RUNNING, storage
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import DiskLimitError, MemoryLimitError
from tests import solving
from tests.places import BOARDS
from tests.shared import commit_at_once

TINY = str(BOARDS / "press-your-luck/tiny.toml")
SMALLER = {
    "press-your-luck/tiny": "a smaller frontier or a larger score_unit takes less",
    "goofspiel/points": "fewer cards, such as cards=7, takes less",
    "skunk/seed": "a lower goal takes less",
    "pig/race": "a lower goal takes less",
    "pig/rounds": "a lower cut or fewer rounds takes less",
}


def load(name):
    return solving.load_layout(solving.load_board(BOARDS / f"{name}.toml"))


@pytest.mark.parametrize("name", list(SMALLER))
def test_the_game_says_what_makes_its_boards_smaller(name, tmp_path, monkeypatch):
    layout = load(name)
    with pytest.raises(MemoryLimitError, match=f"may be used; {SMALLER[name]}"):
        check_room(make_plan(layout), 1000, tmp_path, layout.smaller)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage(0, 0, 0))
    with pytest.raises(DiskLimitError, match=f"0 bytes is free; {SMALLER[name]}"):
        check_room(make_plan(layout), 1 << 50, tmp_path, layout.smaller)


def full(*given, **named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("where", "times"), [("write_tier", 6), ("put", 12), ("written", 6)])
def test_a_disk_that_fills_up_is_one_sentence_and_the_same_command_goes_on(
    where, times, tmp_path, monkeypatch, command
):
    """In a worker and in the driver; what was committed stays."""
    commit_at_once(monkeypatch)
    home = full_table if where == "write_tier" else storage.Folder
    true, calls = getattr(home, where), [0]

    def until_full(*given, **named):
        calls[0] += 1
        return full() if calls[0] > times else true(*given, **named)

    words = ["solve", TINY, "--set", "frontier=2", "--results", str(tmp_path), "--workers", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(home, where, until_full)
        code, out, err = command(*words)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"luckbase: {tmp_path}: the disk is full; the solved parts are kept; ")
    assert err.endswith(f"free some space and resume with: luckbase {' '.join(words)}\n")
    (table,) = tmp_path.glob("*/*/*")
    assert not (table / RUNNING).exists()
    committed = read_manifest(storage.Folder(table), table).files.values()
    before = {table / each.place: (table / each.place).stat().st_mtime_ns for each in committed}
    assert before and command(*words)[0] == 0
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


def sent_by_ray(*given, **named):
    class Sent(OSError):
        cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/there/file.part")

    raise Sent("(pid=1) ...")


@pytest.mark.parametrize(
    ("solve", "said"),
    [
        (sent_by_ray, "/there/file.part: the disk is full; the"),
        (lambda *given, **named: np.empty(1 << 59),
         r"not enough memory: .* 4\.00 EiB .*; the solved parts are kept"),
    ],
)  # fmt: skip
def test_what_has_no_room_in_a_worker_is_known_by_its_cause(solve, said, monkeypatch, command):
    monkeypatch.setattr("luckbase.cluster.solve.full_table.solve", solve)
    code, _, err = command("solve", TINY)
    assert code == 1 and re.match(f"luckbase: {said}", err)


def test_payoffs_that_go_to_a_full_disk_say_that_it_is_full(tmp_path, monkeypatch):
    """When they are made room for: a page of a mapped file that finds none ends the process."""
    monkeypatch.setattr(os, "posix_fallocate", full)
    pool = worker.Pool(8, tmp_path / "spill")
    assert pool.take((1,)).shape == (1,)
    with pytest.raises(OSError) as error:
        pool.take((1,))
    assert error.value.errno == errno.ENOSPC
