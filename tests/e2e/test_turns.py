"""A game that names the fields of a turn, asked by every command: Yahtzee near its end."""

import io
import json

import pytest

import luckbase
from luckbase.jobs.app import run
from luckbase.solver.errors import MemoryLimitError
from luckbase.solver.search.game_graph import Graph
from tests.places import ROOT

YAHTZEE = ROOT / "tests/games/yahtzee.py"
FILLED = "filled=1,2,3,4,5,6,7,8,9,10,11"
BEFORE = "filled=1,2,3,4,5,6,7,8,9,10,11,13 upper=50"

pytestmark = pytest.mark.usefixtures("own_games")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for the table of the last two boxes, a Yahtzee and the chance; solved once."""
    folder = tmp_path_factory.mktemp("yahtzee")
    (folder / "yahtzee.toml").write_text('game = "yahtzee"\n')
    return folder


@pytest.fixture
def command(folder, monkeypatch, capsys):
    """Runs commands on that table."""
    monkeypatch.chdir(folder)

    def call(*words, code=0):
        assert run([*words, "--game", str(YAHTZEE)]) == code
        return capsys.readouterr()

    solved = call("solve", "yahtzee.toml", "--from", FILLED, "upper=50")
    assert "states below" in solved.err or "nothing to do" in solved.err
    return call


def test_it_says_that_more_workers_have_no_effect(command, tmp_path):
    where = "yahtzee.toml", "--results", str(tmp_path), "--from", FILLED, "upper=49"
    assert "have no effect" in command("solve", *where, "--workers", "2").err
    assert "have no effect" not in command("solve", *where, "--force").err


def test_only_states_between_turns_are_stored(command):
    out = command("export", "yahtzee.toml", "--columns", "filled,upper,bonus,rolls,dice").out
    _, *rows = out.splitlines()
    filled = "1 2 3 4 5 6 7 8 9 10 11"
    assert sorted(row.replace('"', "") for row in rows) == [
        f"{filled} 12,50,0,3,none", f"{filled} 12,50,1,3,none", f"{filled} 13,50,0,3,none",
        f"{filled},50,0,3,none",
    ]  # fmt: skip
    assert "complete" in command("status").out


def test_a_question_inside_a_turn_is_answered_by_solving_it(command):
    said = command("query", "yahtzee.toml", *BEFORE.split(), "--json").out
    assert json.loads(said)["value"][0] == pytest.approx(50 * 347897 / 7558272, abs=1e-12)
    inside = [*BEFORE.split(), "rolls=1", "dice=46666"]
    said = json.loads(command("query", "yahtzee.toml", *inside, "--json").out)
    assert said["best"] == "keep 6666" and said["source"] == "table"
    assert said["value"] == [pytest.approx(50 / 6)] and said["error"] < 1e-10
    last = [*BEFORE.split(), "rolls=0", "dice=66666"]
    said = json.loads(command("query", "yahtzee.toml", *last, "--json").out)
    assert (said["best"], said["value"]) == ("yahtzee", [50.0])


def test_two_searches_answer_side_by_side(command):
    """A turn that ends outside one search is solved with the payoffs of the other."""
    roots, two = (FILLED, FILLED.replace(",11", ",12")), ("--results", "two")
    for root in roots:
        alone = ("--results", f"alone-{root[-2:]}")
        for where in (two, alone):
            command("solve", "yahtzee.toml", "--from", root, "upper=50", *where)
    for root in roots:
        alone = ("--results", f"alone-{root[-2:]}")
        query = ("query", "yahtzee.toml", root, "upper=50", "rolls=2", "dice=11126", "--json")
        both, one = (json.loads(command(*query, *where).out) for where in (two, alone))
        assert both["actions"] == one["actions"]


def test_payoffs_inside_a_turn_are_those_of_a_whole_search(command):
    with luckbase.open("yahtzee.toml") as table:
        game = table.game
        graph = Graph(game)
        graph.solve(game.parse({"filled": [*range(1, 12)], "upper": 50})[None])
        states = graph.states(graph.look_up(graph.keys))
        payoffs, known = table.get_many(states)
        assert known.all() and len(states) > 3000
        assert (payoffs == graph.values).all()


def test_rows_are_verified_by_solving_their_turns(command):
    assert "4 rows" in command("verify", "yahtzee.toml", "--all").out


def test_a_person_plays_and_agents_are_evaluated(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n" * 12))
    played = command("play", "yahtzee.toml", "--from", *BEFORE.split(), "--seed", "1").out
    assert "keep" in played
    words = ["evaluate", "yahtzee.toml", "--from", *BEFORE.split(), "--json"]
    exact = json.loads(command(*words).out)["value"][0]
    assert exact == pytest.approx(50 * 347897 / 7558272, abs=1e-12)
    games = json.loads(command(*words, "--agents", "yahtzee.toml", "--games", "200").out)
    assert abs(games["value"][0] - exact) < 4 * games["stderr"][0]


def test_a_plan_counts_the_rows(command):
    plan = luckbase.plan("yahtzee.toml", {"filled": [*range(1, 12)], "upper": 50})
    assert (plan.states, plan.exact) == (4, True)


def test_a_turn_that_does_not_fit_into_memory_is_named(command):
    """As one is whose fields do not get their defaults again."""
    with pytest.raises(MemoryLimitError) as caught:
        luckbase.solve("yahtzee.toml", {"filled": [*range(1, 11)], "upper": 9}, memory=150_000)
    assert "the turn that begins at filled=1,2,3,4,5,6,7,8,9,10" in str(caught.value)
    assert "does each turn end in a state in which rolls, dice have their" in str(caught.value)
