"""Many boards by one command: what is printed, exit codes, time; one as before."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import luckbase
from luckbase.cluster import machine
from luckbase.cluster.batch import run as batch
from tests.cluster.batch.boards import BOARDS, JACKPOT, pig, press, put
from tests.shared import python


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """Each test runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def test_json_is_one_line_a_board_on_stdout_also_of_a_bad_one(command):
    put(Path("b/1.toml"), press())
    put(Path("b/2.toml"), "game = 'pig'\n[rule]\n")
    code, out, err = command("solve", "b", "--json")
    first, second = (json.loads(line) for line in out.splitlines())
    assert (code, err) == (1, "")
    assert (first["event"], first["file"], first["board"]) == ("solved", "b/1.toml", "1")
    assert (second["event"], second["file"]) == ("failed", "b/2.toml")
    assert second["error"] == "b/2.toml: unknown key 'rule'; did you mean 'rules'?"
    alone = json.loads(command("solve", "b/1.toml", "--json", "--force")[1])
    assert alone.keys() == first.keys() - {"file", "set"}
    code, out, err = command("solve", "b")
    assert (code, out.count("\n")) == (1, 1)
    assert f"\n{second['error']}\n" in f"\n{err}"
    assert "2 boards: 1 complete, 1 failed in" in err.splitlines()[-1]


def test_one_board_alone_is_said_without_the_words_for_many(command):
    put(Path("a.toml"), pig())
    code, out, err = command("solve", "a.toml", "--workers", "1")
    assert code == 0 and out.count("\n") == 1 and Path(out.strip()).is_dir()
    assert "states in" in err.splitlines()[0] and "failed" not in err and "[1/1]" not in err
    assert re.search(r"speed +[1-9]\S*( million)? states/s end to end, [1-9]", err)
    code, again, err = command("solve", "a.toml")
    assert (code, again) == (0, out) and "nothing to do" in err
    put(Path("bad.toml"), "game")
    code, out, err = command("solve", "bad.toml")
    assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith("luckbase: bad.toml: ")
    assert command("solve", "bad.toml", "--dry-run")[0] == 2


def test_what_a_board_has_changed_is_said_also_of_one_that_is_searched(command):
    for board, name, old, new in (pig(), "goal", 10, 9), (JACKPOT, "sides", 4, 5):
        put(Path("a.toml"), board)
        assert "has changed" not in command("solve", "a.toml")[2]
        put(Path("a.toml"), board.replace(f"{name} = {old}", f"{name} = {new}"))
        said = f"a: the board has changed since its last table: {name}: was {old}, now {new}\n"
        assert said in command("solve", "a.toml")[2]


def test_a_dry_run_warns_where_all_boards_together_do_not_fit_on_the_disk(command, monkeypatch):
    for number in (3, 4):
        put(Path(f"b/{number}.toml"), press(whammies=number))
    sizes = [each.bytes for each in luckbase.plan_all("b")]
    usage = type(shutil.disk_usage("."))
    for free, fits in ((sum(sizes), True), (sum(sizes) - 1, False)):
        remaining = usage(1 << 50, 0, machine.DISK_RESERVE + free)
        monkeypatch.setattr(
            machine.shutil, "disk_usage", lambda path, remaining=remaining: remaining
        )
        code, out, err = command("solve", "b", "--dry-run")
        assert code == 0 and "2 of 2 boards to solve" in out and err == ""
        assert ("disk: all of them need about" in out) is not fits
        code, out, err = command("solve", "b", "--dry-run", "--json")
        assert len(out.splitlines()) == 2 and (err == "") is fits
    assert command("solve", "b")[0] == 0  # board by board, as long as there is room


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_the_only_board_of_a_folder_or_a_job_is_one_of_many(command, more):
    """2 is for what was named alone, and is itself wrong."""
    put(Path("b/1.toml"), "game")
    put(Path("night.toml"), '[[board]]\nfile = "b"\n')
    for names in (["b"], ["night.toml"], ["b/1.toml", "b"]):
        assert command("solve", *names, *more)[0] == 1
    assert command("solve", "./b/1.toml", *more)[0] == 2
    put(Path("night.toml"), "[[board]]\n")
    assert command("solve", "night.toml", *more)[0] == 2


def test_a_dry_run_prints_what_why_how_long_and_how_much(command):
    put(Path("b/1.toml"), press())
    put(Path("b/2.toml"), pig())
    assert command("solve", "b/1.toml")[0] == 0
    put(Path("b/1.toml"), press(whammies=3))
    put(Path("b/3.toml"), "game")
    code, out, _ = command("solve", "b", "--dry-run")
    assert code == 1 and "b/1.toml: max_whammies: was 4, now 3" in out.splitlines()
    rows = [line.split()[:2] for line in out.splitlines() if line.startswith("  b/")]
    assert rows == [["b/1.toml", "stale"], ["b/2.toml", "missing"], ["b/3.toml", "refused"]]
    assert "2 of 3 boards to solve: " in out and "; 1 cannot be" in out
    _, out, _ = command("solve", "b", "--dry-run", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["state"] for line in lines] == ["stale", "missing", "refused"]
    assert {line["event"] for line in lines} == {"planned"}
    assert all(line["states"] > 0 and line["bytes"] > 0 for line in lines[:2])
    assert not list(Path("results").glob("pig/*"))


def test_a_dry_run_of_one_board_prints_its_whole_plan(command):
    put(Path("a.toml"), press())
    code, out, _ = command("solve", "a.toml", "--dry-run")
    assert code == 0 and out.startswith("a.toml is missing: no table yet\nThe plan for a\n")
    assert not Path("results").exists()
    assert command("solve", "a.toml")[0] == 0
    assert command("solve", "a.toml", "--dry-run")[1] == "a.toml is complete\n"
    again = command("solve", "a.toml", "--dry-run", "--force")[1]
    assert again.startswith("a.toml is again: --force: all of it again\nThe plan for a\n")
    put(Path("a.toml"), press(frontier=2))
    out = command("solve", "a.toml", "--dry-run")[1]
    assert "a.toml is partial: reaches further than its table" in out
    assert out.splitlines()[-1].startswith("still to solve  ")


def test_a_dry_run_of_one_board_that_does_not_fit_prints_the_plan_and_is_refused(command):
    put(Path("a.toml"), press(frontier=3, cap=20000))
    words = ["solve", "a.toml", "--dry-run", "--memory", "0.01"]
    code, out, err = command(*words)
    assert code == 2 and out.startswith("The plan for a\n")
    assert err.startswith("luckbase: memory: the largest tier needs") and err.count("\n") == 1
    code, out, err = command(*words, "--json")
    line = json.loads(out)
    assert code == 2 and line["state"] == "refused" and line["plan"]["states"] == line["states"]
    assert line["error"] in err


def test_a_job_file_says_where_and_the_command_comes_before_it(command):
    put(Path("x/a.toml"), JACKPOT)
    text = 'results = "../mine"\n[[board]]\nfile = "../x"\nvariants = [{}, { tiles = 3 }]\n'
    put(Path("jobs/night.toml"), text)
    code, out, _ = command("solve", "jobs/night.toml")
    assert code == 0 and out.count("mine/jackpot/a/") == out.count("\n") == 2
    code, out, _ = command("status", "jobs/night.toml")
    assert code == 0 and out.count("complete") == 2
    code, out, _ = command("solve", "jobs/night.toml", "--results", "results", "--set", "tiles=2")
    assert code == 0 and out.count("results/") == out.count("\n") == 1
    code, out, _ = command("status", "jobs/night.toml", "--results", "other")
    assert code == 1 and out.startswith("missing")
    advice = out.split("solved by: luckbase ")[1].split("\n")[0].split()
    assert advice[-2:] == ["--results", "other"] and command(*advice)[0] == 0


def test_status_of_a_folder_says_which_boards_have_no_table(command):
    put(Path("b/1.toml"), press())
    put(Path("b/2.toml"), pig())
    put(Path("b/3.toml"), "game")
    assert command("solve", "b/1.toml")[0] == 0
    code, out, _ = command("status", "b")
    words = [line.split()[0] for line in out.splitlines() if line[:1].strip()]
    assert code == 1 and words == ["complete", "missing", "refused"]
    assert "          solved by: luckbase solve b/2.toml" in out.splitlines()
    assert command("solve", "b/2.toml")[0] == 0
    Path("b/3.toml").unlink()
    code, out, _ = command("status", "b", "--json")
    states = [json.loads(line)["state"] for line in out.splitlines()]
    assert (code, states) == (0, ["complete", "complete"])


def test_what_would_be_right_is_solved_where_it_is_looked_for(command):
    put(Path("a.toml"), pig())
    query = ["status", "a.toml"]
    code, _, err = command(*query, "--results", "my r")
    assert code == 1 and err.rstrip().endswith("luckbase solve a.toml --results 'my r'")
    assert command("solve", "a.toml", "--results", "my r")[0] == 0
    assert command(*query, "--results", "my r")[0] == 0
    code, _, err = command(*query)
    assert code == 1 and err.rstrip().endswith("run: luckbase solve a.toml")


def test_what_lost_a_file_is_made_again_where_it_is(command):
    put(Path("a.toml"), pig())
    table = command("solve", "a.toml", "--results", "mine")[1].strip()
    next(Path(table).glob("tiers/*")).unlink()
    code, out, _ = command("status", table)
    assert code == 1 and "made again by: luckbase solve " in out
    again = out.split("made again by: luckbase ")[1].split("\n")[0].split()
    assert again[-2:] == ["--results", "mine"] and command(*again)[0] == 0
    assert command("status", table)[0] == 0


def test_an_interrupt_says_how_far_it_came_and_how_to_go_on(command, monkeypatch):
    put(Path("b/1.toml"), press())
    put(Path("b/2.toml"), pig())
    put(Path("b/3.toml"), pig())
    true, stopped = batch.solve_board, "2"

    def stops(board, *given):
        if board.name == stopped:
            raise KeyboardInterrupt
        return true(board, *given)

    monkeypatch.setattr(batch, "solve_board", stops)
    code, out, err = command("solve", "b")
    assert code == 130 and len(out.splitlines()) == 1
    assert "3 boards: 1 solved in" in err and "; b/2.toml was stopped, 1 not begun" in err
    assert err.splitlines()[-1].endswith("finished files stay; run again: luckbase solve b")
    stopped = "1"
    code, out, err = command("solve", "b")
    assert (code, out) == (130, "")
    assert "3 boards: none done; b/1.toml was stopped, 2 not begun" in err
    stopped = "3"
    err = command("solve", "b")[2]
    assert "1 solved, 1 complete in" in err and err.count("b/3.toml was stopped\n") == 1


def test_clean_lists_and_with_yes_removes(command):
    """What is needed says tests/cluster/batch/test_clean.py."""
    put(Path("b/1.toml"), pig(9))
    old = command("solve", "b")[1].strip()
    put(Path("b/1.toml"), pig(10))
    new = command("solve", "b")[1].strip()
    code, out, err = command("clean")
    assert code == 0 and out.split()[:3] == ["not", "needed", old]
    assert "goal: was 9, now 10" in out and "--yes removes it" in err and Path(old).is_dir()
    line = json.loads(command("clean", "--json")[1])
    assert line["state"] == "unneeded" and line["bytes"] > 0
    _, out, err = command("clean", put(Path("c/2.toml"), pig(8)))
    assert not out and "every table of these boards is needed" in err
    code, out, err = command("clean", "--yes")
    assert code == 0 and out.startswith("removed") and "removed 1 table" in err
    assert not Path(old).exists() and Path(new).is_dir()
    assert "nothing to remove: every table under results" in command("clean", "--yes")[2]
    code, out, _ = command("clean", new, "--yes")
    assert code == 1 and "needs it" in out and Path(new).is_dir()


@pytest.mark.parametrize("words", [["solve", "--dry-run"], ["status"]])
def test_each_board_is_read_once(words, command, monkeypatch):
    loads, texts = tomllib.loads, []
    monkeypatch.setattr(tomllib, "loads", lambda text: texts.append(text) or loads(text))
    boards = [pig(goal) for goal in (7, 8, 9)]
    for i, text in enumerate(boards):
        put(Path(f"b/{i}.toml"), text)
    command(*words, "b")
    assert sorted(texts) == boards


def test_planning_full_tables_compiles_nothing(tmp_path):
    """Goofspiel alone does: it counts its patterns by three small functions."""
    put(tmp_path / "b/1.toml", press(frontier=2))
    put(tmp_path / "b/2.toml", pig())
    put(tmp_path / "b/3.toml", (BOARDS / "pig/rounds.toml").read_text())
    put(tmp_path / "b/4.toml", (BOARDS / "skunk/seed.toml").read_text())
    code = (
        "from luckbase.jobs.app import run; from luckbase.jobs.terminal import compiling_seconds;"
        "print(run(['solve', 'b', '--dry-run']), run(['status', 'b']), compiling_seconds())"
    )
    done = python("-c", code, cwd=tmp_path, env={"NUMBA_CACHE_DIR": str(tmp_path / "cold")})
    assert done.stdout.splitlines()[-1] == "0 1 0.0", done.stdout + done.stderr
