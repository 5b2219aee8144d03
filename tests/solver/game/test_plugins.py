"""Games in somebody's own file: found by it, known by its code, carried to where the work is; and
their transitions, which are compiled once. What the helpers of a transition write, games at random
(`tests/e2e/test_wild_games.py`) hold to value iteration."""

import importlib.util
import io
import json
import os
import pickle
import sys
import time
from functools import cache

import numpy as np
import pytest

from luckbase import evaluate
from luckbase.game import load_game, load_game_file
from luckbase.jobs.app import run
from luckbase.solver.board import registry
from luckbase.solver.board.file import read_board
from luckbase.solver.errors import BoardError, OptionError
from luckbase.solver.game.rules import Numbers, room_for
from luckbase.solver.search.expand import expand, who_acts
from tests import solving
from tests.places import BOARDS, ROOT
from tests.shared import python
from tests.solving import load_board

PATH = ROOT / "tests/games/climb.py"
CLIMB = PATH.read_text()
BOARD = 'game = "climb"\n[rules]\nrounds = 2\n'


pytestmark = pytest.mark.usefixtures("own_games")


@pytest.fixture
def board(tmp_path):
    path = tmp_path / "hill.toml"
    path.write_text(BOARD)
    return path


def file(folder, text=CLIMB, name="climb.py"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_a_game_is_not_known_before_its_file_is_and_the_sentence_says_how(board, tmp_path):
    with pytest.raises(BoardError, match=r"unknown game 'climb'.*register a game"):
        read_board(board)
    assert load_game_file(file(tmp_path)) == ("climb",)
    assert load_game(read_board(board)).players == 2


def test_the_version_of_its_rules_is_that_of_its_code_and_not_of_its_comments(board, tmp_path):
    versions = []
    for i, text in enumerate(
        (CLIMB, CLIMB + "# a comment\n", CLIMB.replace('"""Climb', '"""Mount'),
         CLIMB.replace("1 / sides", "1.0 / sides"),
         CLIMB.replace("players=2", "players=2, version=3"))
    ):  # fmt: skip
        load_game_file(file(tmp_path / str(i), text))
        versions.append(load_game(read_board(board)).rules_version)
    assert versions[0] == versions[1] == versions[2]
    assert len(set(versions[2:])) == 3 and versions[0] >> 32 == 1 and versions[4] >> 32 == 3


def test_a_table_that_an_older_text_has_solved_answers_nothing(board, tmp_path):
    load_game_file(file(tmp_path / "a"))
    before = solving.solve_below(read_board(board), results=tmp_path / "results").table
    load_game_file(file(tmp_path / "b", CLIMB.replace("k > 1", "k > 2")))
    after = solving.solve_below(read_board(board), results=tmp_path / "results").table
    assert before.parent == after.parent and before != after
    with solving.open_table(before) as old:  # named by its path it answers, and says which it is
        assert old.stale == ("climb.py has changed",)
        assert old.ask({}).origin.solve_id == old.identity == before.name
        with pytest.raises(OptionError, match=r"is a table of hill.*, not of this board"):
            evaluate(read_board(board), [old, old])
    with solving.open_table(after) as table:
        edges = table.game.parse({}).reshape(1, -1)
        assert table.probe(edges)[0, 0] != pytest.approx(0.5, abs=1e-6)


def test_a_process_that_has_not_seen_the_file_gets_it_with_the_board(board, tmp_path):
    """Also where the machine does not have it."""
    path = file(tmp_path / "own")
    load_game_file(path)
    pickled = tmp_path / "board.pickle"
    pickled.write_bytes(pickle.dumps([read_board(board), load_game(read_board(board))]))
    path.unlink()
    script = (
        "import pickle, sys; from luckbase.game import load_game\n"
        "board, game = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "assert load_game(board).strides[1].tolist() == game.strides[1].tolist() == [4, 4, 3]\n"
        "print(game.rules_version, board.source.file)\n"
    )
    done = python("-c", script, pickled, cwd=tmp_path)
    assert done.stdout.split() == [str(load_game(read_board(board)).rules_version), str(board)]


def test_ray_workers_solve_it(board, tmp_path, ray_cluster):
    load_game_file(file(tmp_path / "own"))
    created = read_board(board, {"rounds": "3"})
    alone = solving.solve_below(created, results=tmp_path / "one", workers=1)
    by_ray = solving.solve_below(
        created, results=tmp_path / "ray", workers=2, address=ray_cluster, one_piece=0
    )
    assert by_ray.ray and by_ray.levels > 1
    with solving.open_table(alone.table) as first, solving.open_table(by_ray.table) as second:
        states = np.concatenate(list(first.draw(first.rows, 0)))
        assert (first.probe(states) == second.probe(states)).all()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "registers no game"),
        ("x = (\n", r"line 1: SyntaxError"),
        ("\nx = 1 / 0\n", r"line 2: ZeroDivisionError: division by zero"),
        (CLIMB.replace('register("climb"', 'register("pig"'), "one of luckbase's own"),
        (CLIMB.replace("board.ints\n", "bored.ints\n"), "bored"),
        (CLIMB.replace("lead(", "led(").replace("@transition", "def led(x): ...\n@transition"),
         r"'led'.* write @numba.njit\(boundscheck=True\) above 'def led'$"),
        (CLIMB.replace("option(3, 1, 20)", "option(0, 1, 20)"),
         "line 21: ValidationError: rounds: 0 is too small; expected at least 1$"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_do_is_refused_in_a_sentence(text, sentence, tmp_path):
    with pytest.raises(OptionError, match=sentence) as message:
        load_game_file(file(tmp_path, text))
    assert str(message.value).startswith(f"--game: {tmp_path}") and "\n" not in str(message.value)
    assert "climb" not in registry.names()


def test_an_installed_package_brings_its_game_by_an_entry_point(board, tmp_path):
    """A distribution of its own on the path, found by its metadata alone."""
    site = tmp_path / "site"
    file(site, CLIMB, "climb_game.py")
    info = site / "climb_game-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: climb-game\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[luckbase.games]\nclimb = climb_game\n")
    script = (
        "import sys; from tests.solving import load_board, load_game\n"
        "assert 'climb_game' not in sys.modules\n"
        "print(load_game(load_board(sys.argv[1])).columns, 'climb_game' in sys.modules)\n"
    )
    done = python(
        "-c", script, board, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    )
    assert done.stdout == "('steps_1', 'steps_2', 'turns') True\n"


def test_the_games_of_this_package_are_found_without_numba():
    script = (
        "import sys; from luckbase.solver.board import registry\n"
        "print(*registry.names()); assert 'numba' not in sys.modules\n"
    )
    done = python("-c", script, check=False)
    assert done.stdout.split() == [
        "goofspiel", "jackpot", "pig", "pig-rounds", "press-your-luck", "skunk"
    ], done.stderr  # fmt: skip
    assert solving.load_board(ROOT / "boards/skunk/tiny.toml").game == "skunk"


def test_an_edit_of_the_file_is_one_line_however_many_tables_there_are(board, tmp_path, capsys):
    words = [str(board), "--results", str(tmp_path / "results"), "--game"]
    for sides in ("2", "3"):
        edited = str(file(tmp_path, CLIMB.replace("option(6, 2", f"option({sides}, 2")))
        assert run(["solve", *words, edited]) == 0
    assert run(["query", *words, edited]) == 0
    assert "steps=0,0 turns=4" in capsys.readouterr().out  # no state was given: the start
    edited = str(file(tmp_path, CLIMB.replace("k > 1", "k > 2")))
    assert run(["query", *words, edited]) == 1
    err = capsys.readouterr().err
    assert f"{board}: climb.py has changed since the table was solved; run: luckbase" in err
    assert err.count("\n") == 1 and "results/climb" not in err


# --- every command ----------------------------------------------------------------------------


@cache
def win(first, second, turns, always_rolls=False):
    """The first player's chance, written once more without the library."""
    if turns == 0 or max(first, second) == 10:
        return 0.5 * (1 + (first > second) - (first < second))
    mine = [(0, second) if k == 1 else (min(first + k, 10), second) for k in range(1, 7)]
    theirs = [(first, 0) if k == 1 else (first, min(second + k, 10)) for k in range(1, 7)]
    nexts = mine if turns % 2 == 0 else theirs
    roll = sum(win(*n, turns - 1, always_rolls) for n in nexts) / 6
    if always_rolls:
        return roll
    rest = win(first, second, turns - 1)
    return max(roll, rest) if turns % 2 == 0 else min(roll, rest)


def test_it_takes_sixty_lines_of_plain_python():
    assert CLIMB.count("\n") <= 60
    assert "numba" not in CLIMB and "numpy" not in CLIMB


def test_a_made_up_game_goes_through_every_command(board, tmp_path, capsys, monkeypatch):
    """The answers against a solver of a few lines."""
    results = ["--results", str(tmp_path / "results")]
    board.write_text(BOARD.replace("rounds = 2", "rounds = 3"))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def said(*words):
        assert run([*map(str, words), "--game", str(PATH)]) == 0
        return capsys.readouterr().out

    table = said("solve", board, *results).strip()
    answer = json.loads(said("query", table, "steps=0,4", "turns=5", "--json"))
    assert answer["to_act"] == 2
    assert answer["value"] == pytest.approx([win(0, 4, 5), 1 - win(0, 4, 5)], abs=1e-14)
    assert {action["action"] for action in answer["actions"]} == {"rest", "roll"}
    assert "rows agree with the rules" in said("verify", table, "--all")
    assert "complete" in said("status", table)
    value = json.loads(said("evaluate", board, "--agents", "roll", "--json"))["value"]
    assert value == pytest.approx([win(0, 0, 6, True), 1 - win(0, 0, 6, True)], abs=1e-14)
    played = json.loads(said("evaluate", board, "--agents", "roll", "--games", "50000", "--json"))
    off = np.abs(np.array(played["value"]) - value)
    assert (off < 4 * np.array(played["stderr"])).all()
    assert said("graph", board, "--labels", "actions").startswith("// hill, optimal\ndigraph")
    remaining = said("play", board, *results, "--as", "2", "--against", "roll", "--seed", "1")
    assert "player 1 (roll) is up: steps=0,0 turns=6" in remaining and "you left" in remaining
    longer = tmp_path / "hill2.toml"
    longer.write_text(BOARD.replace("rounds = 2", "rounds = 4"))
    other = said("solve", longer, *results).strip()
    assert run(["diff", table, other]) == 0  # the same turns left are the same states
    assert "0 of the first are not in the second" in capsys.readouterr().out


# --- transitions that are kept compiled until they change -----------------------------------------


def test_who_acts_is_what_expanding_says():
    game = load_game(load_board(BOARDS / "press-your-luck/tiny.toml"))
    result = game.canonical_states(np.array([game.fields.read(text) for text in (
        "scores=0,1500,500 earned=1,0,1", "scores=500,0,500 earned=0,0,2 passed=0,1,0",
        "scores=1500,500,0 earned=0,0,0",
    )]))  # fmt: skip
    edges, (kinds, actors) = expand(game, result), who_acts(game, result)
    assert kinds.tolist() == edges.kinds.tolist() and actors.tolist() == edges.actors.tolist()
    assert len({*kinds.tolist()}) > 1


GAME = """
from luckbase.solver.game.rules import decision, lead, over, transition

STEP = 1

@transition
def count(board, state, edges):
    if state[0] >= board.ints[0]:
        return over(edges, 1.0)
    lead(edges, state, 0, 1.0)[0] = state[0] + STEP
    return decision(edges, 0)
"""


def loaded(path, name="counting"):
    """The module of a file, anew."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def after_one(count):
    edges = room_for(1, 1, 1)
    assert count(Numbers(np.array([9]), np.zeros(1)), np.array([0]), edges) == 1
    return int(edges.children[0, 0])


def test_what_was_compiled_is_met_again_until_the_file_changes(tmp_path):
    path = tmp_path / "counting.py"
    path.write_text(f"{GAME}\nRUN = {tmp_path.name!r}, {time.time_ns()}\n")  # of this run alone
    first, second = loaded(path).count, loaded(path).count
    assert [sum(f.stats.cache_hits.values()) for f in (first, second)] == [0, 1]
    assert after_one(first) == after_one(second) == 1
    path.write_text(path.read_text().replace("STEP = 1", "STEP = 2"))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))
    changed = loaded(path).count
    assert sum(changed.stats.cache_hits.values()) == 0
    assert after_one(changed) == 2


def test_another_process_meets_it_too(tmp_path):
    """What was kept under a name that the process does not know is compiled once more."""
    for name, known_as in (("counting", "counting"), ("renamed", "known_here_only")):
        path = tmp_path / f"{name}.py"
        path.write_text(f"{GAME}\nRUN = {tmp_path.name!r}, {time.time_ns()}\n")  # of this run alone
        loaded(path, known_as)
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
        "from counting import count as one\nfrom renamed import count as other\n"
        "print(*[sum(f.stats.cache_hits.values()) for f in (one, other)], len(other.signatures))\n"
    )
    text = python("-c", program, check=False)
    assert text.stdout.split() == ["1", "0", "1"], text.stderr


def test_a_function_that_stands_in_no_file_is_compiled_too():
    space = {"__name__": "notebook"}
    exec(compile(GAME, "<a cell>", "exec"), space)
    assert after_one(space["count"]) == 1
