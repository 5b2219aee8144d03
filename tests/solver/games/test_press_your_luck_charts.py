"""The charts of Press Your Luck: every number is a table's answer, and the reference's."""

import math
import re

import numpy as np
import pytest

import luckbase
from luckbase.solver.charts import ChartRequest, Curves, Heatmap
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.games.press_your_luck.charts import choices, settings
from tests.places import BOARDS
from tests.solver.games.press_your_luck import reference_of

TINY = BOARDS / "press-your-luck/tiny.toml"
SCORES = range(0, 3000, 500)


@pytest.fixture(scope="module")
def table():
    with luckbase.open(TINY, in_memory=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def reference(table):
    return reference_of(table.game)


def asked(table, scores, earned, whammies=(0, 0, 0)):
    """Action -> the chance of the player up, as `Table.ask` has it."""
    answer = table.ask({"scores": scores, "earned": earned, "whammies": whammies})
    result = {a.name.split()[0]: a.value[answer.to_act - 1] for a in reversed(answer.actions)}
    return result | {"best": 1.0 if (answer.best or "").startswith("pass") else 0.0}


def rows(table, name, **fields):
    created = table.chart(name, fields)
    return [dict(zip(created.columns, row, strict=True)) for row in created.rows]


# --- at what lead to pass ------------------------------------------------------------------------


def pass_from(table, at, spins, whammies=(0, 0, 0)):
    """The least score of the player up from which the answers pass, less the rival's; NaN for none.

    at: (player up, last opponent, scores), players from 0.
    """
    up, last, scores = at
    lead = math.nan
    for own in reversed(SCORES):
        here, earned = list(scores), [0, 0, 0]
        here[up], earned[up] = own, spins
        if not asked(table, here, earned, whammies)["best"]:
            break
        lead = own - scores[last]
    return lead


@pytest.mark.parametrize("whammies", ["0,0,0", "0,0,3", "4,0,2", "2,3,1"])
@pytest.mark.parametrize("up", [1, 2, 3])
def test_a_lead_to_pass_from_is_what_the_answers_say(table, up, whammies):
    if whammies.startswith("4") and up == 1:
        with pytest.raises(StateError, match="up: player 1 is out"):
            table.chart("leads", {"up": "1", "whammies": whammies})
        return
    stored = [int(w) for w in whammies.split(",")]
    last = 1 if up == 3 else 2
    for row in rows(table, "leads", up=str(up), whammies=whammies):
        scores = [0, 0, 0]
        scores[last] = row["rival_score"]
        for spins in (1, 2, 3):
            result = pass_from(table, (up - 1, last, scores), spins, stored)
            assert row[f"spins_{spins}"] == pytest.approx(result, nan_ok=True), row


def test_several_values_of_any_field_are_a_curve_each(table):
    several = table.chart("leads", {"third": "0,500", "whammies_3": "0-1"})
    assert len(several.curves) == 12
    for curve in several.curves:
        name = re.fullmatch(r"spins_(\d)_third_(\d+)_whammies_0_0_(\d)", curve.name)
        fields = dict(zip(("spins", "third", "whammies_3"), name.groups(), strict=True))
        (single,) = table.chart("leads", fields).curves
        np.testing.assert_array_equal(curve.values, single.values)


# --- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"spins": "2", "third": "1000"}, {"up": "1"}, {"up": "3"}])
def test_every_cell_of_play_or_pass_is_the_tables_answer(table, reference, fields):
    created = table.chart("decide", fields)
    up, spins = int(fields.get("up", 2)) - 1, int(fields.get("spins", 1))
    last = 1 if up == 2 else 2
    passing = np.zeros(created.values.shape, bool)
    for i, own in enumerate(created.xs):
        for j, rival in enumerate(created.ys):
            scores, earned = [0, 0, 0], [0, 0, 0]
            scores[3 - up - last] = int(fields.get("third", 0))
            scores[up], scores[last], earned[up] = int(own), int(rival), spins
            result = asked(table, scores, earned)
            passing[i, j] = result.pop("best")
            assert created.values[i, j] == pytest.approx(max(result.values()), abs=1e-12)
            units = tuple(score // 500 for score in scores)
            exact = reference.value(units, tuple(earned), (0, 0, 0), (0, 0, 0))[up]
            assert created.values[i, j] == pytest.approx(exact, abs=2e-7)
    (line,) = created.lines
    pieces = np.column_stack([line.xs, line.ys]).reshape(-1, 3, 2)[:, :2].mean(axis=1)
    across = {(x, y) for x, y in pieces.tolist()}
    turned = np.argwhere(passing[1:] != passing[:-1])
    assert {(500.0 * i + 250, 500.0 * j) for i, j in turned} <= across
    assert len(across) == len(turned) + (passing[:, 1:] != passing[:, :-1]).sum()
    for words in created.words:
        at = round(words.x / 500), round(words.y / 500)
        assert passing[at] == (words.text == "pass")


def test_the_words_beside_the_curves_of_leads_are_above_or_below_all(table):
    assert not table.chart("leads").words  # at each score of the rival a curve is missing
    chart = table.chart("leads", {"spins": "1"})
    assert isinstance(chart, Curves)
    assert {words.text for words in chart.words} == {"pass", "play"}
    for words in chart.words:
        ends = np.array([curve.values[chart.xs == words.x] for curve in chart.curves])
        assert (words.y > ends if words.text == "pass" else words.y < ends).all()


# --- where the other opponent has more -----------------------------------------------------------


def test_leads_are_blank_where_the_other_opponent_gets_the_spins(table):
    plain, created = table.chart("leads"), table.chart("leads", {"third": "1000"})
    assert isinstance(plain, Curves) and isinstance(created, Curves)
    for spins, curve in enumerate(created.curves, 1):
        assert np.isnan(curve.values[:2]).all()  # at 0 and 500 dollars player 1 is the rival
        scores = ((1, 2, (1000, 0, score)) for score in (1000, 1500, 2000, 2500))
        expected = [pass_from(table, at, spins) for at in scores]
        np.testing.assert_array_equal(curve.values[2:], expected)
    (band,) = created.bands
    assert (band.first, band.last) == (0, 750) and "the third has" in band.text
    assert "blank where player 3 has less than player 1, who then gets the spins" in created.about
    assert not plain.bands and "blank" not in plain.about
    gone = table.chart("leads", {"third": "3000", "spins": "1"})
    assert np.isnan(gone.curves[0].values).all() and "less than player 1" in gone.title


def test_play_or_pass_is_blank_where_the_other_opponent_gets_the_spins(table):
    created = table.chart("decide", {"third": "1000"})
    assert isinstance(created, Heatmap) and created.blank is not None
    assert created.blank.tolist() == [[y < 1000 for y in created.ys]] * len(created.xs)
    assert not np.isnan(created.values).any()
    assert "blank where player 3 has less than player 1, who then gets the spins" in created.about
    for line in created.lines:
        assert np.nanmin(line.ys) >= 750
    assert all(words.y >= 1000 for words in created.words)
    assert created.names == ("scores_2", "scores_3", "value")
    assert created.rest is not None and created.rest["scores"].startswith("1000,")


@pytest.mark.parametrize("name", ["leads", "decide"])
def test_a_board_with_two_scores_gets_its_charts_or_a_sentence(name):
    board = luckbase.load_board(TINY, score_cap=500, frontier=1)
    with luckbase.open(board, in_memory=True) as smallest:
        if name == "decide":
            with pytest.raises(OptionError, match="two scores below the cap; this table has 1"):
                smallest.chart(name)
        else:
            assert smallest.chart(name).rows


# --- what hangs on less than the error -----------------------------------------------------------


def test_a_choice_closer_than_the_error_is_not_called_a_pass(table):
    (setting,) = settings(table.game, {})
    rival = np.array([setting.scores[setting.last]])
    states = setting.over(rival, np.array(SCORES))
    sure = choices(table.game, table.probe, ChartRequest(), states)
    gains = sure.passed - sure.play
    error = float(gains[gains > 0].min()) / 2 * 1.001
    unsure = choices(table.game, table.probe, ChartRequest(error=error), states)
    assert unsure.passing.sum() == sure.passing.sum() - 1
