"""A decision to train with: of its difficulty; what each choice costs is what the table says."""

import pytest

from tests.jobs.web.serving import GAMES, id_of, state_of

STEPS = {"goofspiel": 0.1}
"""What margins are counted in: a tenth of a point, else a hundredth of a win."""
NO_CLOSE = ("pig", "skunk", "jackpot")
"""Games whose tiny tables may have no close decision."""
DIFFICULTIES = {"easy": (5, 1000), "medium": (1, 5), "hard": (0, 1)}


def trained(client, game, **query):
    reply = client.get(f"/tables/{id_of(client, game)}/train", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("game", GAMES)
def test_a_decision_costs_what_the_table_says(game, client):
    for seed in range(3):
        text = trained(client, game, seed=seed)
        values = state_of(client, id_of(client, game), **fields_of(text["query"]))
        assert {name: text[name] for name in ("actions", "value", "why")} == {
            name: values[name] for name in ("actions", "value", "why")
        }
        seat = (values["to_act"] or 1) - 1
        assert text["seat"] == seat + 1
        worth = {action["action"]: action["value"][seat] for action in values["actions"]}
        costs = [choice["cost"] for choice in text["choices"]]
        assert {choice["action"] for choice in text["choices"]} == set(worth) and len(worth) > 1
        for choice in text["choices"]:
            assert choice["cost"] == pytest.approx(
                values["value"][seat] - worth[choice["action"]], abs=1e-6
            )
            assert choice["best"] == (choice["cost"] == 0)
        assert min(costs) == 0 < max(costs)
        assert text["margin"] == pytest.approx(min(cost for cost in costs if cost), abs=1e-6)


def fields_of(query):
    return dict(word.split("=") for word in query.split("&"))


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_it_is_as_difficult_as_was_wished(game, difficulty, client):
    low, high = DIFFICULTIES[difficulty]
    reply = client.get(
        f"/tables/{id_of(client, game)}/train", params={"difficulty": difficulty, "seed": 4}
    )
    if reply.status_code == 404:  # a tiny table may have none
        assert "take another one" in reply.json()["error"]
        assert game in NO_CLOSE or difficulty == "hard"
        assert difficulty != "easy"
        return
    text = reply.json()
    assert text["difficulty"] == difficulty
    assert low < text["margin"] / STEPS.get(game, 0.01) <= high


def test_the_same_seed_is_the_same_decision_and_others_are_others(client):
    first = trained(client, "pig", seed=1, difficulty="easy")
    assert trained(client, "pig", seed=1, difficulty="easy") == first
    assert len({trained(client, "pig", seed=n)["query"] for n in range(8)}) > 4
