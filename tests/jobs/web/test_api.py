"""The JSON API: its numbers are the table's, and its addresses lead on."""

import re
import shlex
from html import unescape
from urllib.parse import urljoin

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.charts import cell_state, grid
from luckbase.jobs.web import views
from tests.jobs.web.serving import GAMES, PAGE, asking, drawn, id_of, queried, state_of
from tests.places import BOARDS

EACH_GAME = pytest.mark.parametrize("game", GAMES)
SEEDS = range(12)
LUCK = "press-your-luck"


def asked(client, game, view="", **query):
    """The answer of a view of a game's table."""
    reply = client.get(f"/tables/{id_of(client, game)}{view}", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def fields_of(query):
    return dict(word.split("=") for word in query.split("&"))


# --- numbers ----------------------------------------------------------------------------------


@EACH_GAME
def test_an_answer_is_what_query_says(game, client, web_results):
    id = id_of(client, game)
    for seed in SEEDS:
        text = state_of(client, id, **drawn(client, id, seed))
        printed = queried(web_results.joinpath(*id.split("~")), fields_of(text["query"]))
        for mine, theirs in zip(text["actions"], printed.pop("actions"), strict=True):
            assert {name: mine[name] for name in theirs} == theirs
        assert {name: text[name] for name in printed} == printed


def test_a_state_says_what_was_left_out(client):
    text = asked(client, LUCK, "/state", scores="0,1000,500", earned="0,1,0")
    assert text["defaults"] == {"passed": [0, 0, 0], "whammies": [0, 0, 0]}
    assert asked(client, "jackpot", "/state", open="1,2")["defaults"] == {}


@EACH_GAME
def test_outcomes_have_payoffs_that_come_to_those_of_their_action_and_lead_on(game, client):
    """Each value is another row of the table, the chances are the rules'."""
    id = id_of(client, game)
    for seed in SEEDS:
        text = state_of(client, id, **drawn(client, id, seed))
        if "strategies" in text:
            continue
        actions = [] if text["outcomes"] else text["actions"]
        moves = [(each["value"], each.get("outcomes") or [each["next"]]) for each in actions]
        for value, outcomes in moves or [(text["value"], text["outcomes"])]:
            worth = sum(
                each["chance"] * (np.array(each["value"]) + each["reward"]) for each in outcomes
            )
            assert worth == pytest.approx(value, abs=2 * text["error"] + 1e-9)
            chances = [each["chance"] for each in outcomes]
            assert sum(chances) == pytest.approx(1) and sorted(chances)[::-1] == chances
            shares = [each["weight"] / each["cases"] for each in outcomes]
            assert shares == pytest.approx(chances, abs=1e-12)
            for each in outcomes[:3]:
                there = client.get(f"/tables/{id}/state?{each['query']}").json()
                assert there["value"] == pytest.approx(each["value"], abs=1e-15)
                assert (there["query"], there["over"]) == (each["query"], each["over"])


def test_both_choosing_at_once_gives_strategies_and_every_pair(client):
    hands = dict.fromkeys(("mine", "theirs", "deck"), "1,2,3,4")
    text = asked(client, "goofspiel", "/state", **hands, upcard="3")
    first, second = text["strategies"]
    for bid in first + second:
        assert bid["least"] - 1e-6 <= bid["chance"] <= bid["most"] + 1e-6
    assert [sum(bid["chance"] for bid in side) for side in (first, second)] == pytest.approx([1, 1])
    assert len(text["outcomes"]) == 16
    total = np.zeros(2)
    for each in text["outcomes"]:
        one, other = (side[i] for side, i in zip((first, second), each["pair"], strict=True))
        assert each["name"] == f"{one['action']} against {other['action']}"
        assert each["chance"] == pytest.approx(one["chance"] * other["chance"])
        total += each["chance"] * (np.array(each["value"]) + each["reward"])
    assert total == pytest.approx(text["value"], abs=1e-9)


def test_costs_are_what_the_one_who_decides_loses(client):
    text = asked(client, LUCK, "/state", scores="0,1000,500", earned="0,1,0")
    play, pass_ = text["actions"]
    assert (play["best"], play["cost"], pass_["best"]) == (True, 0.0, False)
    assert pass_["cost"] == pytest.approx(text["margin"])
    assert pass_["cost"] == pytest.approx(play["value"][1] - pass_["value"][1])
    assert pass_["next"]["name"] == "player 3 gets 1 spin"


def test_a_search_that_is_too_large_says_how_to_get_it(web_results, tmp_path):
    (spaced := tmp_path / "my results").symlink_to(web_results)
    with asking(spaced) as client:
        id = id_of(client, LUCK)
        far = f"/tables/{id}/state?scores=0,0,0&earned=7,7,6"
        reply, page = client.get(far), client.get(far, headers=PAGE).text
    assert "Above this table</h1>" in page and "luckbase query" in page
    text, command = reply.json()["error"].split("luckbase query ")
    assert reply.status_code == 404 and "200,000" in text
    place = "/".join(("results", *id.split("~")))
    assert shlex.split(command)[:3] == [place, "scores=0,0,0", "earned=7,7,6"]


# --- other views --------------------------------------------------------------------------------


def test_two_tables_side_by_side(client):
    second, state = id_of(client, "skunk"), {"mine": "3", "yours": "10", "turn": "4"}
    text = asked(client, "pig", "/compare", second=second, **state)
    here, there = (asked(client, game, "/state", **state)["value"] for game in ("pig", "skunk"))
    assert text["change"] == [b - a for a, b in zip(here, there, strict=True)]
    assert (text["first"]["value"], text["second"]["value"]) == (here, there)
    assert text["second_id"] == second


def test_two_tables_open_at_a_state_that_both_have(web_results, table_of):
    with asking(web_results / "pig", table_of(BOARDS / "pig/tiny.toml", goal=12)) as client:
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
        assert ("$500" in text["outcome_note"]) == (listed["game"] == LUCK)


@EACH_GAME
def test_every_search_chart_grid_and_example_that_is_offered_is_answered(game, client):
    about = asked(client, game)
    for chart in about["charts"]:
        text = asked(client, game, f"/chart/{chart['name']}")
        assert (text["kind"] == "listing") != chart["picture"]
    if len(about["axes"]) > 1:
        x, y = about["axes"][:2]
        assert asked(client, game, "/grid", x=x, y=y)
    for example in about["examples"]:
        assert asked(client, game, "/state", **fields_of(example["query"]))


@EACH_GAME
def test_every_page_that_a_page_of_a_game_links_to_shows_something(game, client):
    """Also all charts and searches, and below a path that a proxy takes away before it asks the
    server. Links that differ by their query are followed once."""
    at = f"/some/where/tables/{id_of(client, game)}"
    seen, todo = set(), ["/some/where/", f"{at}/state"]
    while todo:
        path = todo.pop()
        reply = client.get(path.removeprefix("/some/where"), headers=PAGE)
        good = 404 if path.startswith(f"{at}/compare") else 200  # it is the only table of its game
        assert reply.status_code == good, path
        assert ("/chart/" in path) <= ("<svg" in reply.text or "<pre" in reply.text), path
        for link in re.findall(r'(?:href|src|action)="([^"#]+)', reply.text):
            there = urljoin(path, unescape(link))
            assert there.startswith("/some/where/"), (path, link)
            if there.partition("?")[0] not in seen:
                seen.add(there.partition("?")[0])
                todo += [there] * there.startswith((at, "/some/where/static"))
    about = client.get(at.removeprefix("/some/where")).json()
    assert {f"{at}/chart/{chart['name']}" for chart in about["charts"]} <= seen
    assert {f"{at}/search/{number + 1}" for number in range(len(about["searches"]))} <= seen
    assert {"/some/where/", "/some/where/static/live.js"} <= seen


@EACH_GAME
def test_rows_of_a_search_are_those_of_an_export_with_their_answers(game, table_of, monkeypatch):
    monkeypatch.setattr(views, "SECONDS", 600.0)  # no option; other tests keep the machine busy
    path = table_of(BOARDS / game / "tiny.toml", **({"frontier": 1} if game == LUCK else {}))
    with asking(path) as client, luckbase.open(path) as table:
        ready = asked(client, game)["searches"]
        assert ready
        for number, search in enumerate(ready, start=1):
            text = asked(client, game, f"/search/{number}", most=3)
            names = ["payoff_1", "to_act"]
            right = table.to_arrow(search["where"], columns=names, actions=True).read_all()
            assert (text["label"], text["where"]) == (search["label"], search["where"])
            assert text["count"] == len(right) and len(text["rows"]) == min(len(right), 3)
            assert text["complete"] and text["looked_at"] == text["total"] == table.rows
            for row, other in zip(text["rows"], right.slice(0, 3).to_pylist(), strict=True):
                answer = table.ask(fields_of(row["query"]))
                assert row["value"] == list(answer.value)
                assert row["value"] == pytest.approx([other["payoff_1"], *row["value"][1:]])
                assert (row["best"], row["margin"]) == (answer.best, answer.margin)
                assert (row["to_act"] or 0) == other["to_act"]


def test_a_search_stops_when_its_time_is_over(client, monkeypatch):
    monkeypatch.setattr(views, "SECONDS", -1.0)  # no option
    text = asked(client, "pig", "/search/1")
    assert not text["complete"] and text["looked_at"] == text["count"] == 0 < text["total"]


def test_a_search_above_a_table_stops_when_its_time_is_over(client, monkeypatch):
    path = f"/tables/{id_of(client, LUCK)}/state?scores=0,1000,500&earned=1,1,1"
    assert client.get(path).json()["source"] == "search"
    monkeypatch.setattr(views, "SEARCH_SECONDS", -1.0)  # no option
    reply = client.get(path)
    assert reply.status_code == 404
    assert "states or takes -1 s; this command searches further: luckbase" in reply.json()["error"]


# --- games ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seat", [1, 2])
@pytest.mark.parametrize("game", ["pig", "goofspiel"])
def test_a_game_costs_what_the_same_game_in_python_costs(game, seat, client, web_results):
    moves, how = [], {"seed": 5, "seat": seat, "against": "random"}
    for _ in range(200):
        text = asked(client, game, "/play", **how, move=moves, hints=1)
        if text["actions"] is None:
            break
        assert [hint["action"] for hint in text["hints"]] == text["actions"]
        assert any(hint["cost"] == 0 for hint in text["hints"])
        moves.append(text["actions"][0])
    assert text["over"]
    taken = iter(moves)
    with (
        luckbase.open(web_results.joinpath(*id_of(client, game).split("~"))) as table,
        table.play(**how) as play,
    ):
        lines = play.through(lambda play: next(taken))
    assert [line for line in lines if not line.endswith("? ")] == text["log"]
    assert [each.cost for each in play.decisions] == [each["cost"] for each in text["decisions"]]


@pytest.mark.parametrize("game", [game for game in GAMES if game != "jackpot"])
def test_every_opponent_that_is_offered_can_be_played(game, client):
    for agent in asked(client, game)["agents"]:
        moves = []
        for _ in range(4):
            actions = asked(client, game, "/play", seed=5, against=agent, move=moves)["actions"]
            if actions is None:
                break
            moves.append(actions[-1])


def test_an_opponent_that_this_board_can_not_have_is_not_offered(client):
    agents = asked(client, "goofspiel")["agents"]
    assert "win-optimal" not in agents and {"match", "points-optimal"} <= set(agents)
    reply = client.get(f"/tables/{id_of(client, 'goofspiel')}/play?against=win-optimal")
    assert reply.status_code == 400 and "--" not in reply.json()["error"]
    assert "against: 'win-optimal' cannot play on this board here" in reply.json()["error"]


def test_an_opponent_who_works_long_is_not_offered(monkeypatch):
    from luckbase.jobs.web import pool
    from luckbase.solver.game.game import load_game
    from luckbase.solver.games.goofspiel import agents

    def solved(*given):
        raise AssertionError("is solved only to be listed")

    monkeypatch.setattr(agents, "_solved", solved)
    few, many = (
        pool.opponents(load_game(luckbase.load_board("goofspiel/tiny", cards=cards)))
        for cards in (5, 13)
    )
    assert set(few) - set(many) == {"points-optimal", "one-then-points"}


@EACH_GAME
def test_a_game_begins_where_a_state_says_that_it_can(game, client):
    id = id_of(client, game)
    above = {"scores": "0,1000,500", "earned": "1,1,1"}
    states = [drawn(client, id, seed) for seed in range(12)] + [above] * (game == LUCK)
    for state in states:
        text = state_of(client, id, **state)
        reply = client.get(f"/tables/{id}/play?{text['query']}")
        assert (reply.status_code == 200) == text["playable"], (text["query"], reply.text)
        assert text["playable"] or "--" not in reply.json()["error"]
    if game == LUCK:
        assert reply.status_code == 404 and "cannot be played from" in reply.json()["error"]


def test_a_game_of_press_your_luck_begins_at_a_start_that_is_drawn(client):
    about = asked(client, LUCK)
    assert about["examples"][0]["label"].startswith("a start, 14.1%: earned=")
    assert about["start"] == about["examples"][0]["state"]
    text = [asked(client, LUCK, "/play", seed=seed)["log"] for seed in range(6)]
    begun = {re.search(r"earned=(\S+)", lines[0])[1] for lines in text}
    assert len(begun) > 1 and all("scores=0,500,1000" in lines[0] for lines in text)


# --- decisions to train with ----------------------------------------------------------------------

NO_CLOSE = ("pig", "skunk", "jackpot")
"""Games whose tiny tables may have no close decision."""
DIFFICULTIES = {"easy": (5, 1000), "medium": (1, 5), "hard": (0, 1)}
"""Margins in hundredths of a win, or tenths of a point."""


@EACH_GAME
def test_a_decision_costs_what_the_table_says(game, client):
    for seed in range(3):
        text = asked(client, game, "/train", seed=seed)
        values = asked(client, game, "/state", **fields_of(text["query"]))
        for name in ("actions", "value", "why"):
            assert text[name] == values[name]
        seat = (values["to_act"] or 1) - 1
        worth = {action["action"]: action["value"][seat] for action in values["actions"]}
        costs = {choice["action"]: choice["cost"] for choice in text["choices"]}
        right = {name: values["value"][seat] - each for name, each in worth.items()}
        assert costs == pytest.approx(right, abs=1e-6) and len(worth) > 1
        assert [each["best"] for each in text["choices"]] == [not cost for cost in costs.values()]
        assert text["seat"] == seat + 1 and min(costs.values()) == 0
        assert text["margin"] == pytest.approx(min(filter(None, costs.values())), abs=1e-6)


@EACH_GAME
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_a_decision_is_as_difficult_as_was_wished(game, difficulty, client):
    low, high = DIFFICULTIES[difficulty]
    at = f"/tables/{id_of(client, game)}/train"
    reply = client.get(at, params={"difficulty": difficulty, "seed": 4})
    if reply.status_code == 404:  # a tiny table may have none
        assert "take another one" in reply.json()["error"]
        assert difficulty == "hard" or (game in NO_CLOSE and difficulty != "easy")
        return
    assert reply.json()["difficulty"] == difficulty
    assert low < reply.json()["margin"] / (0.1 if game == "goofspiel" else 0.01) <= high


def test_the_same_seed_is_the_same_decision_and_others_are_others(client):
    first, again = (asked(client, "pig", "/train", seed=1, difficulty="easy") for _ in range(2))
    assert again == first
    assert len({asked(client, "pig", "/train", seed=n)["query"] for n in range(8)}) > 4


# --- grids over two columns -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    with luckbase.open(BOARDS / "pig/tiny.toml", in_memory=True) as opened:
        yield opened


@pytest.mark.parametrize("colour", ["value_1", "value_2", "margin"])
def test_a_grid_has_the_number_of_each_state(colour, table, monkeypatch):
    base = {"mine": "0", "yours": "0", "turn": "3"}
    monkeypatch.setattr("luckbase.cluster.answers.charts.AXIS_VALUES", 6)  # no option
    result = grid(table, ("mine", "yours"), base, colour)
    assert result.values.shape == (5, 5) and np.diff(result.xs).tolist() == [4] * 4
    for i, mine in enumerate(result.xs.tolist()):
        for j, yours in enumerate(result.ys.tolist()):
            answer = table.ask({"mine": mine, "yours": yours, "turn": 3})
            known = {
                "value_1": answer.value[0], "value_2": answer.value[1], "margin": answer.margin,
            }[colour]  # fmt: skip
            shown = result.values[i, j]
            assert np.isnan(shown) if known is None else shown == pytest.approx(known)


@pytest.fixture(scope="module")
def press(table_of):
    with luckbase.open(table_of(BOARDS / "press-your-luck/tiny.toml", frontier=1)) as opened:
        yield opened


STATE = {"scores": (0, 500, 1000), "earned": (0, 1, 0)}


def test_the_best_action_has_one_number_and_its_region_a_name(press):
    result, text = grid(press, ("scores_2", "scores_3"), STATE, "best"), {}
    for i, own in enumerate(result.xs.tolist()):
        for j, rival in enumerate(result.ys.tolist()):
            best = press.ask({**STATE, "scores": (0, own, rival)}).best
            text.setdefault(best, set()).add(result.values[i, j])
    assert all(len(numbers) == 1 for numbers in text.values()) and len(text) == 2
    assert {word.text for word in result.words} == {"play", "pass"}
    assert result.lines


def test_the_usual_colour_is_the_payoff_of_the_player_up_and_cells_lead_to_their_states(
    press, client
):
    result = grid(press, ("scores_2", "scores_3"), STATE)
    cells, (i, j) = cell_state(press.game, result), (1, 2)
    there = {**cells, "scores_2": result.xs[i], "scores_3": result.ys[j]}
    assert press.ask(there).value[1] == result.values[i, j]
    at = f"/tables/{id_of(client, 'press-your-luck')}/grid"
    text = client.get(at, params={**cells, "x": "scores_2", "y": "scores_3"}).json()
    assert text["names"] == ["scores_2", "scores_3", "value_2"]
    assert text["values"][i][j] == pytest.approx(result.values[i, j], abs=1e-7)


def test_cells_that_the_table_does_not_answer_are_empty(press):
    gaps, result = 0, grid(press, ("earned_1", "earned_3"), STATE, "value_2")
    for i, j in np.ndindex(result.values.shape):
        earned = (int(result.xs[i]), 1, int(result.ys[j]))
        try:
            right = press.ask({**STATE, "earned": earned}).value[1]
        except luckbase.LuckbaseError:
            right, gaps = np.nan, gaps + 1
        assert result.values[i, j] == pytest.approx(right, nan_ok=True)
    assert 0 < gaps < result.values.size
