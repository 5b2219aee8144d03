"""The JSON API: its numbers are the table's, and its addresses lead on."""

import re
import shlex
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import luckbase
from tests.jobs.web.serving import GAMES, asking, id_of, outcomes_of, query_json, state_of, words_of
from tests.places import BOARDS

SEEDS = range(12)


def path_of(results, id):
    return results.joinpath(*id.split("~"))


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_an_answer_is_what_query_says(game, client, web_results, capsys):
    id = id_of(client, game)
    for seed in SEEDS:
        said = state_of(client, id, random=str(seed))
        printed = query_json(capsys, str(path_of(web_results, id)), *words_of(said["state"]))
        for mine, theirs in zip(said["actions"], printed.pop("actions"), strict=True):
            assert {name: mine[name] for name in theirs} == theirs
        assert {name: said[name] for name in printed} == printed


def test_a_state_says_what_was_left_out(client):
    id = id_of(client, "press-your-luck")
    zeros = [0, 0, 0]
    said = state_of(client, id, scores="0,1000,500")
    assert said["defaults"] == {"earned": zeros, "passed": zeros, "whammies": zeros}
    assert state_of(client, id, scores="0,1000,500", earned="0,1,0")["defaults"].keys() == {
        "passed", "whammies",
    }  # fmt: skip
    assert state_of(client, id_of(client, "jackpot"), open="1,2")["defaults"] == {}


@pytest.mark.parametrize("game", GAMES)
def test_the_outcomes_of_an_action_come_to_its_payoffs(game, client):
    """Each value is another row of the table, the chances are the rules'."""
    id = id_of(client, game)
    for seed in SEEDS:
        said = state_of(client, id, random=str(seed))
        if "strategies" in said:
            continue
        for value, outcomes in outcomes_of(said):
            chances = np.array([each["chance"] for each in outcomes])
            worth = np.array([each["value"] for each in outcomes])
            paid = np.array([each["reward"] for each in outcomes])
            assert chances.sum() == pytest.approx(1, abs=1e-12)
            assert sorted(chances, reverse=True) == list(chances)
            assert chances @ (worth + paid) == pytest.approx(value, abs=2 * said["error"] + 1e-12)
            cases = outcomes[0]["cases"]
            assert sum(each["weight"] for each in outcomes) == cases
            for each in outcomes:
                assert each["weight"] / cases == pytest.approx(each["chance"], abs=1e-12)


@pytest.mark.parametrize("game", GAMES)
def test_the_address_of_an_outcome_leads_to_what_was_said(game, client):
    id = id_of(client, game)
    for seed in SEEDS[:4]:
        for _, outcomes in outcomes_of(state_of(client, id, random=str(seed))):
            for each in outcomes[:3]:
                there = client.get(f"/api/tables/{id}/state?{each['query']}").json()
                assert there["value"] == pytest.approx(each["value"], abs=1e-15)
                assert (there["query"], there["over"]) == (each["query"], each["over"])
                assert there["drawing"].startswith("<svg")


def test_both_choosing_at_once_gives_strategies_and_every_pair(client):
    id = id_of(client, "goofspiel")
    said = state_of(client, id, mine="1,2,3,4", theirs="1,2,3,4", deck="1,2,3,4", upcard="3")
    first, second = said["strategies"]
    for side in (first, second):
        assert sum(bid["chance"] for bid in side) == pytest.approx(1)
        assert all(bid["least"] - 1e-6 <= bid["chance"] <= bid["most"] + 1e-6 for bid in side)
    assert len(said["outcomes"]) == 16
    total = np.zeros(2)
    for each in said["outcomes"]:
        i, j = each["pair"]
        assert each["name"] == f"{first[i]['action']} against {second[j]['action']}"
        assert each["chance"] == pytest.approx(first[i]["chance"] * second[j]["chance"])
        total += each["chance"] * (np.array(each["value"]) + np.array(each["reward"]))
    assert total == pytest.approx(said["value"], abs=1e-9)


def test_the_turned_card_is_the_outcome_of_chance(client):
    id = id_of(client, "goofspiel")
    said = state_of(client, id, mine="1,2,3", theirs="1,2,3", deck="1,2,4")
    assert said["to_act"] is None and said["actions"] == []
    assert {each["name"] for each in said["outcomes"]} == {"upcard 1", "upcard 2", "upcard 4"}
    assert {(each["weight"], each["cases"]) for each in said["outcomes"]} == {(1, 3)}


def test_costs_are_what_the_one_who_decides_loses(client):
    id = id_of(client, "press-your-luck")
    said = state_of(client, id, scores="0,1000,500", earned="0,1,0")
    play, pass_ = said["actions"]
    assert (play["best"], play["cost"], pass_["best"]) == (True, 0.0, False)
    assert pass_["cost"] == pytest.approx(said["margin"])
    assert pass_["cost"] == pytest.approx(play["value"][1] - pass_["value"][1])
    assert pass_["next"]["name"] == "player 3 gets 1 spin"


def test_a_state_above_the_frontier_is_searched(client):
    id = id_of(client, "press-your-luck")
    said = state_of(client, id, scores="0,1000,500", earned="1,1,1")
    assert (said["source"], said["held"]) == ("search", False)
    with luckbase.open(BOARDS / "press-your-luck/tiny.toml", in_memory=True, frontier=3) as higher:
        known = higher.ask({"scores": (0, 1000, 500), "earned": (1, 1, 1)})
    assert said["value"] == pytest.approx(known.value, abs=2e-7)
    (action,) = [each for each in said["actions"] if each["best"]]
    worth = sum(each["chance"] * each["value"][0] for each in action["outcomes"])
    assert worth == pytest.approx(said["value"][0], abs=1e-9)


def test_a_search_that_is_too_large_says_how_to_get_it(web_results, tmp_path):
    (spaced := tmp_path / "my results").symlink_to(web_results)
    with asking(spaced) as client:
        id = id_of(client, "press-your-luck")
        reply = client.get(f"/api/tables/{id}/state?scores=0,0,0&earned=7,7,6")
    assert reply.status_code == 404
    said, command = reply.json()["error"].split("luckbase query ")
    assert "200,000" in said
    assert shlex.split(command)[0].startswith(str(spaced))


# --- other views --------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_a_main_line_takes_the_best_and_the_likeliest(game, client):
    """Of equally likely outcomes the middle one, and none twice."""
    id = id_of(client, game)
    said = client.get(f"/api/tables/{id}/mainline?most=50").json()
    line = said["line"]
    assert line[-1]["over"] or len(line) == 50 or said["stopped"]
    queries = [step["query"] for step in line]
    assert len(set(queries)) == len(queries) > 1
    for k, (step, after) in enumerate(pairwise(line)):
        there = client.get(f"/api/tables/{id}/state?{step['query']}").json()
        outcomes = there["outcomes"]
        if not outcomes:
            (best,) = [each for each in there["actions"] if each["best"]]
            assert step["action"] == best["action"]
            outcomes = [best["next"]] if "next" in best else best["outcomes"]
        (taken,) = [each for each in outcomes if each["query"] == after["query"]
                    and each["name"] == step["outcome"]]  # fmt: skip
        assert taken["chance"] == pytest.approx(max(each["chance"] for each in outcomes))
        me = (there["to_act"] or 1) - 1
        worth = [each["value"][me] + each["reward"][me] for each in outcomes
                 if each["chance"] == pytest.approx(taken["chance"])
                 and each["query"] not in queries[: k + 1]]  # fmt: skip
        assert taken["value"][me] + taken["reward"][me] == sorted(worth)[(len(worth) - 1) // 2]


def test_a_main_line_of_pig_comes_to_the_end(client):
    said = client.get(f"/api/tables/{id_of(client, 'pig')}/mainline?most=200").json()
    assert said["line"][-1]["over"] and said["stopped"] is None


def test_a_main_line_that_comes_back_says_so_and_stops(client, monkeypatch):
    """Where only one outcome is the likeliest, and it leads back."""
    from luckbase.cluster.table import moves as of_moves
    from luckbase.jobs.web import states

    def round_and_round(table, state, most):
        there = of_moves.moves(table, state, most)
        back = replace(there.moves[0].outcomes[0], state=there.answer.state, chance=0.9)
        move = replace(there.moves[0], outcomes=(back, *there.moves[0].outcomes[1:]), best=True)
        return replace(there, moves=(move,))

    monkeypatch.setattr(states, "moves", round_and_round)
    said = client.get(f"/api/tables/{id_of(client, 'pig')}/mainline").json()
    assert len(said["line"]) == 1
    assert said["stopped"] == f"comes back to {said['line'][0]['text']}"


def test_two_tables_side_by_side(client):
    first, second = id_of(client, "pig"), id_of(client, "skunk")
    said = client.get(f"/api/compare?first={first}&second={second}&mine=3&yours=10&turn=4").json()
    here = state_of(client, first, mine="3", yours="10", turn="4")
    there = state_of(client, second, mine="3", yours="10", turn="4")
    assert said["change"] == [b - a for a, b in zip(here["value"], there["value"], strict=True)]
    assert said["first"]["value"] == here["value"]
    assert {each["action"] for each in said["differences"]} == {"roll", "hold"}


def test_two_tables_open_at_a_state_that_both_have(web_results, tmp_path):
    board = luckbase.load_board(BOARDS / "pig/tiny.toml", goal=12)
    luckbase.solve(board, results=tmp_path)
    with asking(web_results / "pig", tmp_path) as client:
        first, second = (each["id"] for each in client.get("/api/tables").json()["tables"])
        both = f"/api/compare?shared=1&first={first}&second={second}"
        said = client.get(f"{both}&mine=3&yours=10&turn=4").json()
        assert not said["moved"] and said["first"]["state"]["yours"] == 10
        said = client.get(f"{both}&mine=3&yours=15&turn=4").json()  # one has no 15
        assert said["moved"] and said["first"]["state"] == said["second"]["state"]
        assert said["first"]["state"]["yours"] < 12
        assert not client.get(both).json()["moved"]
        assert client.get(f"{both}&mine=3&yours=15".replace("shared=1&", "")).status_code == 400


def test_a_table_is_told_in_words(client):
    for listed in client.get("/api/tables").json()["tables"]:
        said = client.get(f"/api/tables/{listed['id']}").json()
        board = luckbase.load_board(BOARDS / listed["game"] / "tiny.toml")
        assert said["title"] == listed["title"] == board.title != listed["board"]
        assert said["game_title"] and said["about"].endswith((".", "?"))
        assert set(said["options"]) <= set(said["option_help"])
        assert all(field["help"] for field in said["fields"])
        labels = [example["label"] for example in said["examples"]]
        assert len(labels) == len(set(labels)) or listed["kind"] == "search"
        assert ("$500" in said["outcome_note"]) == (listed["game"] == "press-your-luck")


@pytest.mark.parametrize("seat", [1, 2])
@pytest.mark.parametrize("game", ["pig", "goofspiel"])
def test_a_game_costs_what_the_same_game_in_python_costs(game, seat, client, web_results):
    id, moves, said = id_of(client, game), [], {}
    for _ in range(200):
        game_so_far = {"seed": 5, "seat": seat, "against": "random", "move": moves, "hints": 1}
        said = client.get(f"/api/tables/{id}/play", params=game_so_far).json()
        if said["ask"] is None:
            break
        hints = said["ask"]["hints"]
        assert [hint["action"] for hint in hints] == said["ask"]["actions"]
        assert any(hint["cost"] == 0 for hint in hints)
        moves.append(said["ask"]["actions"][0])
    assert said["over"] and said["result"] == said["said"][-1]
    taken = iter(moves)
    with (
        luckbase.open(path_of(web_results, id)) as table,
        table.play(seat=seat, against="random", seed=5) as play,
    ):
        lines = play.through(lambda play: next(taken))
    assert [line for line in lines if not line.endswith("? ")] == said["said"]
    assert [one.cost for one in play.decisions] == [one["cost"] for one in said["decisions"]]
    assert said["cost"] == pytest.approx(sum(one.cost for one in play.decisions))


@pytest.mark.parametrize("game", [game for game in GAMES if game != "jackpot"])
def test_every_opponent_that_is_offered_can_be_played(game, client):
    id = id_of(client, game)
    at = f"/api/tables/{id}"
    for agent in client.get(at).json()["agents"]:
        moves = []
        for _ in range(4):
            reply = client.get(f"{at}/play", params={"seed": 5, "against": agent, "move": moves})
            assert reply.status_code == 200, (agent, reply.text)
            if (ask := reply.json()["ask"]) is None:
                break
            moves.append(ask["actions"][-1])


def test_an_opponent_that_this_board_can_not_have_is_not_offered(client):
    id = id_of(client, "goofspiel")
    agents = client.get(f"/api/tables/{id}").json()["agents"]
    assert "win-optimal" not in agents and {"match", "points-optimal"} <= set(agents)
    reply = client.get(f"/api/tables/{id}/play?against=win-optimal")
    assert reply.status_code == 400 and "--" not in reply.json()["error"]
    assert "against: 'win-optimal' cannot play on this board here" in reply.json()["error"]


def test_an_opponent_who_works_long_is_not_offered(monkeypatch):
    from luckbase.jobs.web import tables
    from luckbase.solver.game.game import load_game
    from luckbase.solver.games.goofspiel import agents

    def solved(*given):
        raise AssertionError("is solved only to be listed")

    monkeypatch.setattr(agents, "_solved", solved)
    offered = {
        cards: tables.opponents(load_game(luckbase.load_board(
            BOARDS / "goofspiel/tiny.toml", cards=cards)))
        for cards in (5, 13)
    }  # fmt: skip
    assert set(offered[5]) - set(offered[13]) == {"points-optimal", "one-then-points"}


def test_what_can_not_be_played_from_says_so(client):
    at = f"/api/tables/{id_of(client, 'press-your-luck')}"
    above, below = "scores=0,1000,500&earned=1,1,1", "scores=0,1000,500&earned=0,1,1"
    said = client.get(f"{at}/state?{above}").json()
    assert not said["playable"] and "cannot be played from" in said["why_not_playable"]
    reply = client.get(f"{at}/play?{above}")
    assert reply.status_code == 404 and "cannot be played from" in reply.json()["error"]
    assert "--" not in reply.json()["error"]
    said = client.get(f"{at}/state?{below}").json()
    assert (said["playable"], said["why_not_playable"]) == (True, None)
    assert client.get(f"{at}/play?{below}").status_code == 200


@pytest.mark.parametrize("game", GAMES)
def test_a_game_begins_where_a_state_says_that_it_can(game, client):
    at = f"/api/tables/{id_of(client, game)}"
    for seed in SEEDS:
        said = client.get(f"{at}/state?random={seed}&drawing=0").json()
        reply = client.get(f"{at}/play?{said['query']}")
        assert (reply.status_code == 200) == said["playable"], (said["query"], reply.text)


def test_a_game_of_press_your_luck_begins_at_a_start_that_is_drawn(client):
    at = f"/api/tables/{id_of(client, 'press-your-luck')}"
    about = client.get(at).json()
    labels = [each["label"] for each in about["examples"]]
    assert about["begins"] and labels[0].startswith("a start, one in 7: earned=")
    assert about["start"] == about["examples"][0]["state"]
    said = [client.get(f"{at}/play?seed={seed}").json()["said"] for seed in range(6)]
    begun = {re.search(r"earned=(\S+)", lines[0])[1] for lines in said}
    assert len(begun) > 1 and all("scores=0,500,1000" in lines[0] for lines in said)


@pytest.mark.parametrize("game", ["press-your-luck", "pig"])
def test_a_drawing_is_its_backdrop_and_what_is_the_states_own(game, client):
    at = f"/api/tables/{id_of(client, game)}"
    whole, own = (
        client.get(f"{at}/state?random=1&drawing={how}").json()["drawing"] for how in ("1", "state")
    )
    backdrop = client.get(at).json()["backdrop"]
    assert own.replace("</desc>", f"</desc>{backdrop}") == whole
    assert (len(own) < len(whole)) == (game == "press-your-luck")


@pytest.mark.parametrize("game", GAMES)
def test_every_search_chart_and_grid_that_is_offered_is_answered(game, client):
    at = f"/api/tables/{id_of(client, game)}"
    about = client.get(at).json()
    for chart in about["charts"]:
        said = client.get(f"{at}/chart/{chart['name']}").json()
        assert (said["kind"] == "listing") != chart["picture"]
    for search in client.get(f"{at}/columns").json()["examples"]:
        asked = {"where": search["where"], "most": 3}
        assert client.get(f"{at}/filter", params=asked).status_code == 200
    if len(about["axes"]) > 1:
        x, y = (axis["name"] for axis in about["axes"][:2])
        assert client.get(f"{at}/grid?x={x}&y={y}").status_code == 200
    for example in about["examples"]:
        assert client.get(f"{at}/state?{example['query']}").status_code == 200
