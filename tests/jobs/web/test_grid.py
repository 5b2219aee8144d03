"""Grids over two columns have the numbers of the table."""

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.charts import cell_state, grid
from tests.jobs.web.serving import id_of
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


def test_a_grid_in_pieces_is_the_same(table, monkeypatch):
    wish = ("mine", "turn"), {"mine": "0", "yours": "7"}, "margin"
    full = grid(table, *wish)
    monkeypatch.setattr("luckbase.cluster.answers.charts.GRID_PIECE", 37)  # no option
    pieces = grid(table, *wish)
    assert np.array_equal(full.values, pieces.values, equal_nan=True)
    assert full.words == pieces.words
