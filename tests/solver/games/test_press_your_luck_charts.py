"""The charts of Press Your Luck: every number is a table's answer, and the reference's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luckbase
from luckbase.cluster.table.table import Table
from luckbase.solver.charts import ChartRequest, Curves, Heatmap, Listing
from luckbase.solver.errors import LuckbaseError, OptionError, StateError
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.games.press_your_luck.setting import (
    SettingDefaults,
    choices,
    leads_of,
    settings,
)
from tests.reference.press_your_luck import Reference
from tests.solver.games.press_your_luck import reference_of

TINY = Path(__file__).parents[3] / "boards/press-your-luck/tiny.toml"
SCORES = range(0, 3000, 500)


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    with luckbase.open(TINY, in_memory=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def reference(table: Table) -> Reference:
    return reference_of(table.game)


def asked(table: Table, scores: Any, earned: Any, whammies: Any = (0, 0, 0)) -> dict[str, float]:
    """Action -> the chance of the player up, as `Table.ask` has it."""
    answer = table.ask({"scores": scores, "earned": earned, "whammies": whammies})
    assert answer.to_act is not None
    found = {a.name.split()[0]: a.value[answer.to_act - 1] for a in reversed(answer.actions)}
    return found | {"best": 1.0 if (answer.best or "").startswith("pass") else 0.0}


def rows(table: Table, name: str, **fields: str) -> list[dict[str, Any]]:
    made = table.chart(name, fields)
    return [dict(zip(made.columns, row, strict=True)) for row in made.rows]


# --- at what lead to pass ------------------------------------------------------------------------


@pytest.mark.parametrize("whammies", ["0,0,0", "0,0,3", "4,0,2", "2,3,1"])
@pytest.mark.parametrize("up", [1, 2, 3])
def test_a_lead_to_pass_from_is_what_the_answers_say_lead_by_lead(
    table: Table, up: int, whammies: str
) -> None:
    if whammies.startswith("4") and up == 1:
        with pytest.raises(StateError, match="up: player 1 is out"):
            table.chart("lead", {"up": "1", "whammies": whammies})
        return
    held = [int(w) for w in whammies.split(",")]
    last = 2 if up == 3 else 3
    for row in rows(table, "lead", up=str(up), rival="500,1500", whammies=whammies):
        passing = []
        for own in SCORES:
            scores, earned = [0, 0, 0], [0, 0, 0]
            scores[up - 1], scores[last - 1] = own, row["rival_score"]
            earned[up - 1] = row["spins"]
            passing.append((own - row["rival_score"], asked(table, scores, earned, held)["best"]))
        passes = {lead for lead, best in passing if best}
        said = {
            lead
            for span in str(row["passes"]).split()
            for lead in range(int(span.split("..")[0]), int(span.split("..")[1]) + 1, 500)
        }
        assert said == passes, row
        plays = {lead for lead, best in passing if not best}
        above = [lead for lead in sorted(passes) if lead > max(plays, default=-9999)]
        assert row["pass_from"] == (above[0] if above else "")
        assert row["rival"] == last


def test_the_published_lead_at_the_pass_is_that_of_the_reference(
    table: Table, reference: Reference
) -> None:
    found = [row for row in rows(table, "lead") if row["pass_from"] != ""]
    assert found
    for row in found:
        own = (row["rival_score"] + row["pass_from"]) // 500
        scores, earned = (0, own, row["rival_score"] // 500), (0, row["spins"], 0)
        exact = dict(reference.actions(scores, earned, (0, 0, 0), (0, 0, 0)))
        assert row["play_there"] == pytest.approx(exact["play"][1], abs=2e-7)
        assert row["pass_there"] == pytest.approx(exact["pass to 3"][1], abs=2e-7)
        below = dict(reference.actions((0, own - 1, scores[2]), earned, (0, 0, 0), (0, 0, 0)))
        assert below["play"][1] > below["pass to 3"][1] or own == 0


def test_leads_are_those_of_the_list_rival_by_rival(table: Table) -> None:
    listed = {
        (row["rival_score"], row["spins"]): row["pass_from"]
        for row in rows(table, "lead", rival="0,500,1000,1500,2000,2500")
    }
    drawn = rows(table, "leads")
    assert [row["rival_score"] for row in drawn] == list(SCORES)
    for row in drawn:
        for spins in (1, 2, 3):
            assert row[f"spins_{spins}"] == listed[row["rival_score"], spins]


# --- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"spins": "2", "third": "1000"}, {"up": "1"}, {"up": "3"}])
def test_every_cell_of_play_or_pass_is_the_tables_answer(
    table: Table, reference: Reference, fields: dict[str, str]
) -> None:
    made = table.chart("decide", fields)
    assert isinstance(made, Heatmap)
    up, spins = int(fields.get("up", 2)) - 1, int(fields.get("spins", 1))
    last = 1 if up == 2 else 2
    passing = np.zeros(made.values.shape, bool)
    for i, own in enumerate(made.xs):
        for j, rival in enumerate(made.ys):
            scores, earned = [0, 0, 0], [0, 0, 0]
            scores[3 - up - last] = int(fields.get("third", 0))
            scores[up], scores[last], earned[up] = int(own), int(rival), spins
            found = asked(table, scores, earned)
            passing[i, j] = found.pop("best")
            assert made.values[i, j] == pytest.approx(max(found.values()), abs=1e-12)
            units = tuple(score // 500 for score in scores)
            exact = reference.value(units, tuple(earned), (0, 0, 0), (0, 0, 0))[up]
            assert made.values[i, j] == pytest.approx(exact, abs=2e-7)
    (line,) = made.lines
    pieces = np.column_stack([line.xs, line.ys]).reshape(-1, 3, 2)[:, :2].mean(axis=1)
    across = {(x, y) for x, y in pieces.tolist()}
    turned = np.argwhere(passing[1:] != passing[:-1])
    assert {(500.0 * i + 250, 500.0 * j) for i, j in turned} <= across
    assert len(across) == len(turned) + (passing[:, 1:] != passing[:, :-1]).sum()
    for words in made.words:
        at = round(words.x / 500), round(words.y / 500)
        assert passing[at] == (words.text == "pass")


def test_playing_and_passing_over_the_lead_are_the_actions_of_the_answers(table: Table) -> None:
    drawn = rows(table, "by-lead", rival="1000")
    assert [row["lead"] for row in drawn] == [-1000, -500, 0, 500, 1000]
    for row in drawn:
        found = asked(table, (0, 1000 + row["lead"], 1000), (0, 1, 0))
        assert row["play"] == pytest.approx(found["play"], abs=1e-9)
        assert row["pass"] == pytest.approx(found["pass"], abs=1e-9)
        made = table.chart("by-lead", {"rival": "1000"})
        assert isinstance(made, Curves)
        inside = any(band.first <= row["lead"] <= band.last for band in made.bands)
        assert inside == bool(found["best"])
    passing = [row["lead"] for row in drawn if asked(table, (0, 1000 + row["lead"], 1000),
                                                     (0, 1, 0))["best"]]  # fmt: skip
    (band,) = made.bands  # half a step further, but not beyond what is drawn
    assert (band.first, band.last) == (min(passing) - 250, 1000)


def test_chances_by_spins_are_the_answers_as_far_as_the_table_reaches(
    table: Table, reference: Reference
) -> None:
    drawn = rows(table, "by-spins", own="2000", rival="500")
    assert [row["spins"] for row in drawn] == [1, 2, 3]
    for row in drawn:
        exact = reference.actions((0, 4, 1), (0, row["spins"], 0), (0, 0, 0), (0, 0, 0))
        for name, triple in exact:
            assert row[name.split()[0]] == pytest.approx(triple[1], abs=2e-7)
    made = table.chart("by-spins")
    assert isinstance(made, Curves)
    assert "4 to 12 spins: not in this table" in made.about
    assert made.bands[0].first == 3.5 and "frontier=4" in made.bands[0].text


def test_who_must_play_has_no_chance_by_passing(table: Table) -> None:
    """Third place: strictly behind both others."""
    drawn = rows(table, "by-lead", rival="1500", third="1000")
    assert [row["pass"] == "" for row in drawn] == [row["lead"] < -500 for row in drawn]


def test_who_may_not_choose_is_not_said_to_have_chosen(table: Table) -> None:
    """At the cap one passes, in third place one plays."""
    top = table.chart("by-spins", {"own": "3000"})
    assert isinstance(top, Curves)
    assert top.title == "No choice: they must pass, with 1 to 3 spins"
    assert np.isnan(top.curves[0].values).all() and not np.isnan(top.curves[1].values).any()
    last = table.chart("by-spins", {"own": "0", "rival": "500", "third": "500"})
    assert isinstance(last, Curves)
    assert last.title == "No choice: they must play, with 1 to 3 spins"


# --- where the other opponent has more -----------------------------------------------------------


def test_leads_are_blank_where_the_other_opponent_gets_the_spins(table: Table) -> None:
    plain, made = table.chart("leads"), table.chart("leads", {"third": "1000"})
    assert isinstance(plain, Curves) and isinstance(made, Curves)
    listed = {
        (row["rival_score"], row["spins"]): row["pass_from"]
        for row in rows(table, "lead", rival="1000-1000,1500,2000,2500", third="1000")
    }
    for spins, curve in enumerate(made.curves, 1):
        assert np.isnan(curve.values[:2]).all()  # at 0 and 500 dollars player 1 is the rival
        ends = ["" if np.isnan(x) else x for x in curve.values[2:]]
        assert ends == [listed[score, spins] for score in (1000, 1500, 2000, 2500)]
    (band,) = made.bands
    assert (band.first, band.last) == (0, 750) and "the third has" in band.text
    assert "blank where player 3 has less than player 1, who then gets the spins" in made.about
    assert not plain.bands and "blank" not in plain.about
    gone = table.chart("leads", {"third": "3000", "spins": "1"})
    assert isinstance(gone, Curves)
    assert np.isnan(gone.curves[0].values).all() and "less than player 1" in gone.title


def test_play_or_pass_is_blank_where_the_other_opponent_gets_the_spins(table: Table) -> None:
    made = table.chart("decide", {"third": "1000"})
    assert isinstance(made, Heatmap) and made.blank is not None
    assert made.blank.tolist() == [[y < 1000 for y in made.ys]] * len(made.xs)
    assert not np.isnan(made.values).any()
    assert "blank where player 3 has less than player 1, who then gets the spins" in made.about
    for line in made.lines:
        assert np.nanmin(line.ys) >= 750
    assert all(words.y >= 1000 for words in made.words)
    assert made.names == ("scores_2", "scores_3", "value")
    assert made.rest is not None and made.rest["scores"].startswith("1000,")


@pytest.mark.parametrize("name", ["lead", "leads", "by-lead", "by-spins", "decide"])
def test_a_board_with_two_scores_gets_its_charts_or_a_sentence(name: str) -> None:
    board = luckbase.load_board(TINY, score_cap=500, frontier=1)
    with luckbase.open(board, in_memory=True) as smallest:
        if name == "decide":
            with pytest.raises(OptionError, match="two scores below the cap; this table has 1"):
                smallest.chart(name)
        else:
            assert smallest.chart(name).rows


# --- what hangs on less than the error -----------------------------------------------------------


def test_a_choice_closer_than_the_error_is_counted_and_not_called_a_pass(table: Table) -> None:
    charts = table.game.need(Charts)
    (setting,) = settings(table.game, {}, SettingDefaults(frozenset({"own"})))
    (lead,) = leads_of(table.game, partial(choices, table.game, table.probe, 0.0), [setting])
    gains = np.abs(lead.choice.passed - lead.choice.play)
    error = float(np.nanmin(gains[gains > 0])) / 2 * 1.001
    unsure = choices(table.game, table.probe, error, setting.with_scores(1, np.array(SCORES)))
    assert unsure.unsure.sum() > lead.choice.unsure.sum()
    assert not (unsure.unsure & unsure.passing).any()
    made = charts.make("lead", table.probe, ChartRequest({"spins": "1"}, error=error))
    assert isinstance(made, Listing) and "too close to call" in made.note


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("lead", "riva=500", "unknown field 'riva'; did you mean 'rival'?"),
        ("lead", "rival=250", "250 is not a multiple of 500"),
        ("lead", "rival=9000", "9000 is too large; expected at most 3000"),
        ("lead", "spins=4", "spins: 4 in all, and the table covers 3; solve with frontier=4"),
        ("lead", "spins=0", "spins: 0 in all, and the others hold 0; player 2 needs one"),
        ("lead", "spins=one", "spins: 'one' is not a number or several"),
        ("lead", "spins=1-9999", "spins: 1-9999 are too many"),
        ("lead", "up=4", "up: 4 is not a player"),
        ("lead", "earned_1=1", "up: player 1 holds a spin and is up before player 2"),
        ("lead", "whammies=4,0,4", "every opponent is out"),
        ("lead", "whammies=0,0", "whammies: '0,0' has 2 values, not 3"),
        ("lead", "scores=0,500,0", "scores_2: player 2 is up, and this chart is over their score"),
        ("lead", "earned_2=1", "earned_2: player 2 is up, and has what the others leave of spins="),
        ("lead", "passed_2=1", "passed_2: player 2 is up, and who must spin has no choice"),
        ("lead", "rival=500 scores_3=500", "rival: is the same as scores_3, which is given too"),
        ("decide", "rival=500", "rival: this chart is over the rival's score; leave it out"),
        ("lead", "own=500", "own: player 2 is up, and this chart is over their score; leave it"),
        ("leads", "own=500", "own: player 2 is up, and this chart is over their score"),
        ("decide", "own=500", "own: player 2 is up, and this chart is over their score"),
        ("by-lead", "own=500", "own: player 2 is up, and this chart is over their score"),
        ("decide", "spins=1,2", "spins: this chart is of one value; write spins=1"),
        ("by-spins", "up=1,2", "up: this chart is of one value; write up=1"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(table: Table, name: str, fields: str, said: str) -> None:
    with pytest.raises(LuckbaseError) as error:
        table.chart(name, dict(field.split("=") for field in fields.split()))
    assert said in str(error.value) and "\n" not in str(error.value)
