"""Grids over two columns have the numbers of the table."""

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.charts import cell_state, grid
from tests.jobs.web.serving import id_of, state_of
from tests.places import BOARDS


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


def test_the_best_action_has_one_number_and_its_region_a_name(client):
    with client.pool.open(id_of(client, "press-your-luck")) as opened:
        table = opened.table
        state, text = {"scores": (0, 500, 1000), "earned": (0, 1, 0)}, {}
        result = grid(table, ("scores_2", "scores_3"), state, "best")
        for i, own in enumerate(result.xs.tolist()):
            for j, rival in enumerate(result.ys.tolist()):
                best = table.ask({**state, "scores": (0, own, rival)}).best
                text.setdefault(best, set()).add(result.values[i, j])
    assert all(len(numbers) == 1 for numbers in text.values()) and len(text) == 2
    assert {word.text for word in result.words} == {"play", "pass"}
    assert result.lines


def test_the_usual_colour_is_the_payoff_of_the_player_up(client):
    id = id_of(client, "press-your-luck")
    query = "x=scores_2&y=scores_3&scores=0,500,1000&earned=0,1,0"
    text = client.get(f"/tables/{id}/grid?{query}").json()
    assert text["names"] == ["scores_2", "scores_3", "value_2"]
    for i, j in ((0, 1), (2, 3)):
        scores = f"0,{text['xs'][i]},{text['ys'][j]}"
        assert (
            text["values"][i][j] == state_of(client, id, scores=scores, earned="0,1,0")["value"][1]
        )


def test_the_parameters_of_its_cells_lead_to_their_states(client):
    id = id_of(client, "press-your-luck")
    with client.pool.open(id) as opened:
        table = opened.table
        state = {"scores": (0, 500, 1000), "earned": (0, 1, 0)}
        result = grid(table, ("scores_2", "scores_3"), state)
        cells = cell_state(table.game, result)
        i, j = 1, 2
        there = {**cells, "scores_2": result.xs[i], "scores_3": result.ys[j]}
        assert table.ask(there).value[1] == result.values[i, j]
        again = client.get(f"/tables/{id}/grid", params={**cells, "x": "scores_2", "y": "scores_3"})
        assert again.json()["values"][i][j] == result.values[i, j]


def test_cells_that_the_table_does_not_answer_are_empty(client):
    gaps = 0
    with client.pool.open(id_of(client, "press-your-luck")) as opened:
        table = opened.table
        state = {"scores": (0, 500, 1000), "earned": (0, 1, 0)}
        result = grid(table, ("earned_1", "earned_3"), state, "value_2")
        for i, j in np.ndindex(result.values.shape):
            earned = (int(result.xs[i]), 1, int(result.ys[j]))
            try:
                right = table.ask({**state, "earned": earned}).value[1]
            except luckbase.LuckbaseError:
                right, gaps = np.nan, gaps + 1
            assert result.values[i, j] == pytest.approx(right, nan_ok=True)
    assert 0 < gaps < result.values.size


def test_a_grid_in_pieces_is_the_same(table, monkeypatch):
    wish = ("mine", "turn"), {"mine": "0", "yours": "7"}, "margin"
    full = grid(table, *wish)
    monkeypatch.setattr("luckbase.cluster.answers.charts.GRID_PIECE", 37)  # no option
    pieces = grid(table, *wish)
    assert np.array_equal(full.values, pieces.values, equal_nan=True)
    assert full.words == pieces.words
