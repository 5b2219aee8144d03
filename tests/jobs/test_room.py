"""What does not fit in the memory or on the disk: refused beforehand, or said when it comes up; and
plans of searches, also as JSON."""

import errno
import json
import os
import re

import numpy as np
import pytest

import luckbase
from luckbase.cluster import machine
from luckbase.cluster.search import plan as planning
from luckbase.cluster.search.plan import Count, count_below, goes_in_circles, planned_search
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.solve import full_table, worker
from luckbase.cluster.solve.plan import check_room, make_plan
from luckbase.cluster.store import RUNNING, storage
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import DiskLimitError, MemoryLimitError
from luckbase.solver.game.game import Stopped
from luckbase.solver.search.expand import root_keys
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
    usage = type(machine.shutil.disk_usage(tmp_path))
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


PRESS = str(BOARDS / "press-your-luck/1985-02.toml")
START = {"scores": "0,2000,3500", "earned": "0,3,2"}
FROM = ["--from", *(f"{name}={value}" for name, value in START.items())]


def test_a_search_by_stages(command, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "COUNTED_STATES", 30_000)  # no option
    words = ["solve", PRESS, *FROM, "--dry-run", "--results", str(tmp_path), "--workers", "2"]
    out = command(*words)[1]
    assert "states          more than 30,000 by levels" in out and "2 workers" in out
    assert [line[:16].rstrip() for line in out.splitlines()[2:]] == [
        "states", "table on disk", "until it ends", "peak memory", "time",
    ]  # fmt: skip
    text = json.loads(command(*words, "--json")[1])["plan"]
    assert text == luckbase.plan(PRESS, START, workers=2, results=tmp_path).as_json()
    assert not text["exact"] and text["states"] == 30_000
    assert text["table_bytes"] == 22 * text["states"]
    assert text["kept_bytes"] == 6 * text["states"]
    assert text["seconds"] == pytest.approx(text["states"] * 1e-6 / 1.7, abs=0.1)
    assert not list(tmp_path.iterdir())


def test_a_small_one_is_counted_and_is_what_the_solve_does(tmp_path):
    board = BOARDS / "press-your-luck/tiny.toml"
    start = {"scores": "0,1000,500", "earned": "1,2,1"}
    result = luckbase.plan(board, start, results=tmp_path)
    solved = luckbase.solve(board, start, results=tmp_path, workers=1)
    assert result.as_json()["exact"] and result.as_json()["levels"] == 0
    assert solved.states == result.states  # those that are over have no row, and are none of them
    rows = sum(entry.bytes for entry in solved.manifest.files.values())
    assert rows / 2 <= result.table_bytes <= 2 * rows


def test_a_board_without_a_full_table_is_planned_from_its_start(command):
    _, out, _ = command("solve", "--dry-run", BOARDS / "jackpot/seed.toml")
    assert "states          15,743 in one piece" in out


def test_a_full_disk_refuses_the_plan(command, tmp_path, monkeypatch):
    usage = type(machine.shutil.disk_usage(tmp_path))
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage(0, 0, 0))
    monkeypatch.setattr(planning, "COUNTED_STATES", 30_000)  # no option
    code, _, err = command("solve", "--dry-run", PRESS, *FROM, "--results", tmp_path)
    assert code == 2
    assert "disk: the search needs about " in err and " under " in err
    assert "states nearer the end takes less" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "settings", "circles", "microseconds"),
    [
        ("pig/race", {}, True, 35.0),
        ("pig/rounds", {"rounds": 2, "cut": 450}, False, 1.0),  # just too many for one piece
        ("skunk/tiny", {}, True, 35.0),
        ("jackpot/tiny", {}, False, 1.6),
        ("goofspiel/points", {"cards": 6}, False, 8.0),
        ("press-your-luck/tiny", {}, False, 1.6),
    ],
)
def test_games_that_go_in_circles_or_in_which_both_choose_at_once_take_longer(
    name, settings, circles, microseconds, tmp_path, monkeypatch
):
    result = list[Count]()

    def noted(*given):
        result.append(count_below(*given))
        return result[-1]

    monkeypatch.setattr(planning, "count_below", noted)
    board = solving.load_board(BOARDS / f"{name}.toml", **settings)
    game = solving.load_game(board)
    words = {"scores": "0,1000,500", "earned": "1,1,1"}
    roots = game.parse(words)[None] if game.board.game == "press-your-luck" else None
    plan = planned_search(game, root_keys(game, roots), tmp_path, 1)
    assert plan.seconds == pytest.approx(plan.states * microseconds * 1e-6)
    assert goes_in_circles(game, result[0].keys) == circles


def test_stage_files_are_as_large_as_planned_where_states_are_not_found_in_runs(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(planning, "ONE_PIECE", 10)  # a plan has no option for it
    board = solving.load_board(BOARDS / "goofspiel/points.toml", cards=7)
    game = solving.load_game(board)
    planned = planned_search(game, root_keys(game, None), tmp_path, 1)
    sizes = list[int]()

    def noted(search):
        folder = search.report.table
        sizes.append(sum((folder / each.place).stat().st_size for each in search.shards.values()))
        raise Stopped

    monkeypatch.setattr(StageSearch, "_up", noted)
    with pytest.raises(Stopped):
        solving.solve_below(board, results=tmp_path, one_piece=0, workers=1)
    assert 0.7 < planned.kept_bytes / sizes[0] < 1.5
