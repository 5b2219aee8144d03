"""The JSON API: its numbers are the table's, and its addresses lead on."""

import re
import shlex

import numpy as np
import pytest

import luckbase
from tests.jobs.web.serving import (
    GAMES,
    asking,
    drawn,
    id_of,
    outcomes_of,
    query_json,
    state_of,
    words_of,
)
from tests.places import BOARDS

SEEDS = range(12)


def path_of(results, id):
    return results.joinpath(*id.split("~"))


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_an_answer_is_what_query_says(game, client, web_results, capsys):
    id = id_of(client, game)
    for seed in SEEDS:
        text = state_of(client, id, **drawn(client, id, seed))
        printed = query_json(capsys, str(path_of(web_results, id)), *words_of(text["state"]))
        for mine, theirs in zip(text["actions"], printed.pop("actions"), strict=True):
            assert {name: mine[name] for name in theirs} == theirs
        assert {name: text[name] for name in printed} == printed


def test_a_state_says_what_was_left_out(client):
    id = id_of(client, "press-your-luck")
    zeros = [0, 0, 0]
    text = state_of(client, id, scores="0,1000,500")
    assert text["defaults"] == {"earned": zeros, "passed": zeros, "whammies": zeros}
    assert state_of(client, id, scores="0,1000,500", earned="0,1,0")["defaults"].keys() == {
        "passed", "whammies",
    }  # fmt: skip
    assert state_of(client, id_of(client, "jackpot"), open="1,2")["defaults"] == {}


@pytest.mark.parametrize("game", GAMES)
def test_the_outcomes_of_an_action_come_to_its_payoffs(game, client):
    """Each value is another row of the table, the chances are the rules'."""
    id = id_of(client, game)
    for seed in SEEDS:
        text = state_of(client, id, **drawn(client, id, seed))
        if "strategies" in text:
            continue
        for value, outcomes in outcomes_of(text):
            chances = np.array([each["chance"] for each in outcomes])
            worth = np.array([each["value"] for each in outcomes])
            paid = np.array([each["reward"] for each in outcomes])
            assert chances.sum() == pytest.approx(1, abs=1e-12)
            assert sorted(chances, reverse=True) == list(chances)
            assert chances @ (worth + paid) == pytest.approx(value, abs=2 * text["error"] + 1e-12)
            cases = outcomes[0]["cases"]
            assert sum(each["weight"] for each in outcomes) == cases
            for each in outcomes:
                assert each["weight"] / cases == pytest.approx(each["chance"], abs=1e-12)


@pytest.mark.parametrize("game", GAMES)
def test_the_address_of_an_outcome_leads_to_what_was_said(game, client):
    id = id_of(client, game)
    for seed in SEEDS[:4]:
        for _, outcomes in outcomes_of(state_of(client, id, **drawn(client, id, seed))):
            for each in outcomes[:3]:
                there = client.get(f"/tables/{id}/state?{each['query']}").json()
                assert there["value"] == pytest.approx(each["value"], abs=1e-15)
                assert (there["query"], there["over"]) == (each["query"], each["over"])


def test_both_choosing_at_once_gives_strategies_and_every_pair(client):
    id = id_of(client, "goofspiel")
    text = state_of(client, id, mine="1,2,3,4", theirs="1,2,3,4", deck="1,2,3,4", upcard="3")
    first, second = text["strategies"]
    for side in (first, second):
        assert sum(bid["chance"] for bid in side) == pytest.approx(1)
        assert all(bid["least"] - 1e-6 <= bid["chance"] <= bid["most"] + 1e-6 for bid in side)
    assert len(text["outcomes"]) == 16
    total = np.zeros(2)
    for each in text["outcomes"]:
        i, j = each["pair"]
        assert each["name"] == f"{first[i]['action']} against {second[j]['action']}"
        assert each["chance"] == pytest.approx(first[i]["chance"] * second[j]["chance"])
        total += each["chance"] * (np.array(each["value"]) + np.array(each["reward"]))
    assert total == pytest.approx(text["value"], abs=1e-9)


def test_the_turned_card_is_the_outcome_of_chance(client):
    id = id_of(client, "goofspiel")
    text = state_of(client, id, mine="1,2,3", theirs="1,2,3", deck="1,2,4")
    assert text["to_act"] is None and text["actions"] == []
    assert {each["name"] for each in text["outcomes"]} == {"upcard 1", "upcard 2", "upcard 4"}
    assert {(each["weight"], each["cases"]) for each in text["outcomes"]} == {(1, 3)}


def test_costs_are_what_the_one_who_decides_loses(client):
    id = id_of(client, "press-your-luck")
    text = state_of(client, id, scores="0,1000,500", earned="0,1,0")
    play, pass_ = text["actions"]
    assert (play["best"], play["cost"], pass_["best"]) == (True, 0.0, False)
    assert pass_["cost"] == pytest.approx(text["margin"])
    assert pass_["cost"] == pytest.approx(play["value"][1] - pass_["value"][1])
    assert pass_["next"]["name"] == "player 3 gets 1 spin"


def test_a_state_above_the_frontier_is_searched(client):
    id = id_of(client, "press-your-luck")
    text = state_of(client, id, scores="0,1000,500", earned="1,1,1")
    assert (text["source"], text["in_table"]) == ("search", False)
    with luckbase.open(BOARDS / "press-your-luck/tiny.toml", in_memory=True, frontier=3) as higher:
        known = higher.ask({"scores": (0, 1000, 500), "earned": (1, 1, 1)})
    assert text["value"] == pytest.approx(known.value, abs=2e-7)
    (action,) = [each for each in text["actions"] if each["best"]]
    worth = sum(each["chance"] * each["value"][0] for each in action["outcomes"])
    assert worth == pytest.approx(text["value"][0], abs=1e-9)


def test_a_search_that_is_too_large_says_how_to_get_it(web_results, tmp_path):
    (spaced := tmp_path / "my results").symlink_to(web_results)
    with asking(spaced) as client:
        id = id_of(client, "press-your-luck")
        reply = client.get(f"/tables/{id}/state?scores=0,0,0&earned=7,7,6")
    assert reply.status_code == 404
    text, command = reply.json()["error"].split("luckbase query ")
    assert "200,000" in text
    words = shlex.split(command)
    assert words[0] == "/".join(("results", *id.split("~")))
    assert words[1:3] == ["scores=0,0,0", "earned=7,7,6"]


# --- other views --------------------------------------------------------------------------------


def test_two_tables_side_by_side(client):
    first, second = id_of(client, "pig"), id_of(client, "skunk")
    text = client.get(f"/tables/{first}/compare?second={second}&mine=3&yours=10&turn=4").json()
    here = state_of(client, first, mine="3", yours="10", turn="4")
    there = state_of(client, second, mine="3", yours="10", turn="4")
    assert text["change"] == [b - a for a, b in zip(here["value"], there["value"], strict=True)]
    assert (text["first"]["value"], text["second"]["value"]) == (here["value"], there["value"])
    assert text["second_id"] == second


def test_two_tables_open_at_a_state_that_both_have(web_results, tmp_path):
    board = luckbase.load_board(BOARDS / "pig/tiny.toml", goal=12)
    luckbase.solve(board, results=tmp_path)
    with asking(web_results / "pig", tmp_path) as client:
        first, second = (each["id"] for each in client.get("/tables").json()["tables"])
        both = f"/tables/{first}/compare?second={second}"
        text = client.get(both).json()
        assert text["first"]["state"] == text["second"]["state"]
        reply = client.get(f"{both}&mine=3&yours=15&turn=4")  # one has no 15
        assert reply.status_code == 400 and "15 is too large" in reply.json()["error"]


def test_a_table_is_told_in_words(client):
    for listed in client.get("/tables").json()["tables"]:
        text = client.get(f"/tables/{listed['id']}").json()
        board = luckbase.load_board(BOARDS / listed["game"] / "tiny.toml")
        assert text["title"] == listed["title"] == board.title != listed["board"]
        assert text["game_title"] and text["about"].endswith((".", "?"))
        assert set(text["options"]) <= set(text["option_help"])
        assert all(field["help"] for field in text["fields"])
        labels = [example["label"] for example in text["examples"]]
        assert len(labels) == len(set(labels)) or not listed["tiers"]
        assert ("$500" in text["outcome_note"]) == (listed["game"] == "press-your-luck")


@pytest.mark.parametrize("seat", [1, 2])
@pytest.mark.parametrize("game", ["pig", "goofspiel"])
def test_a_game_costs_what_the_same_game_in_python_costs(game, seat, client, web_results):
    id, moves, text = id_of(client, game), [], {}
    for _ in range(200):
        game_so_far = {"seed": 5, "seat": seat, "against": "random", "move": moves, "hints": 1}
        text = client.get(f"/tables/{id}/play", params=game_so_far).json()
        if text["actions"] is None:
            break
        assert [hint["action"] for hint in text["hints"]] == text["actions"]
        assert any(hint["cost"] == 0 for hint in text["hints"])
        moves.append(text["actions"][0])
    assert text["over"]
    taken = iter(moves)
    with (
        luckbase.open(path_of(web_results, id)) as table,
        table.play(seat=seat, against="random", seed=5) as play,
    ):
        lines = play.through(lambda play: next(taken))
    assert [line for line in lines if not line.endswith("? ")] == text["log"]
    assert [each.cost for each in play.decisions] == [each["cost"] for each in text["decisions"]]


@pytest.mark.parametrize("game", [game for game in GAMES if game != "jackpot"])
def test_every_opponent_that_is_offered_can_be_played(game, client):
    id = id_of(client, game)
    at = f"/tables/{id}"
    for agent in client.get(at).json()["agents"]:
        moves = []
        for _ in range(4):
            reply = client.get(f"{at}/play", params={"seed": 5, "against": agent, "move": moves})
            assert reply.status_code == 200, (agent, reply.text)
            if (actions := reply.json()["actions"]) is None:
                break
            moves.append(actions[-1])


def test_an_opponent_that_this_board_can_not_have_is_not_offered(client):
    id = id_of(client, "goofspiel")
    agents = client.get(f"/tables/{id}").json()["agents"]
    assert "win-optimal" not in agents and {"match", "points-optimal"} <= set(agents)
    reply = client.get(f"/tables/{id}/play?against=win-optimal")
    assert reply.status_code == 400 and "--" not in reply.json()["error"]
    assert "against: 'win-optimal' cannot play on this board here" in reply.json()["error"]


def test_an_opponent_who_works_long_is_not_offered(monkeypatch):
    from luckbase.jobs.web import pool
    from luckbase.solver.game.game import load_game
    from luckbase.solver.games.goofspiel import agents

    def solved(*given):
        raise AssertionError("is solved only to be listed")

    monkeypatch.setattr(agents, "_solved", solved)
    offered = {
        cards: pool.opponents(load_game(luckbase.load_board(
            BOARDS / "goofspiel/tiny.toml", cards=cards)))
        for cards in (5, 13)
    }  # fmt: skip
    assert set(offered[5]) - set(offered[13]) == {"points-optimal", "one-then-points"}


def test_what_can_not_be_played_from_says_so(client):
    at = f"/tables/{id_of(client, 'press-your-luck')}"
    above, below = "scores=0,1000,500&earned=1,1,1", "scores=0,1000,500&earned=0,1,1"
    text = client.get(f"{at}/state?{above}").json()
    assert not text["playable"]
    reply = client.get(f"{at}/play?{above}")
    assert reply.status_code == 404 and "cannot be played from" in reply.json()["error"]
    assert "--" not in reply.json()["error"]
    text = client.get(f"{at}/state?{below}").json()
    assert text["playable"]
    assert client.get(f"{at}/play?{below}").status_code == 200


@pytest.mark.parametrize("game", GAMES)
def test_a_game_begins_where_a_state_says_that_it_can(game, client):
    id = id_of(client, game)
    for seed in SEEDS:
        text = state_of(client, id, **drawn(client, id, seed))
        reply = client.get(f"/tables/{id}/play?{text['query']}")
        assert (reply.status_code == 200) == text["playable"], (text["query"], reply.text)


def test_a_game_of_press_your_luck_begins_at_a_start_that_is_drawn(client):
    index = f"/tables/{id_of(client, 'press-your-luck')}"
    about = client.get(index).json()
    labels = [each["label"] for each in about["examples"]]
    assert labels[0].startswith("a start, 14.1%: earned=")
    assert about["start"] == about["examples"][0]["state"]
    text = [client.get(f"{index}/play?seed={seed}").json()["log"] for seed in range(6)]
    begun = {re.search(r"earned=(\S+)", lines[0])[1] for lines in text}
    assert len(begun) > 1 and all("scores=0,500,1000" in lines[0] for lines in text)


@pytest.mark.parametrize("game", GAMES)
def test_every_search_chart_and_grid_that_is_offered_is_answered(game, client):
    at = f"/tables/{id_of(client, game)}"
    about = client.get(at).json()
    for chart in about["charts"]:
        text = client.get(f"{at}/chart/{chart['name']}").json()
        assert (text["kind"] == "listing") != chart["picture"]
    for number, search in enumerate(about["searches"], start=1):
        text = client.get(f"{at}/search/{number}?most=3").json()
        assert (text["where"], len(text["rows"])) == (search["where"], min(text["count"], 3))
    if len(about["axes"]) > 1:
        x, y = about["axes"][:2]
        assert client.get(f"{at}/grid?x={x}&y={y}").status_code == 200
    for example in about["examples"]:
        assert client.get(f"{at}/state?{example['query']}").status_code == 200
