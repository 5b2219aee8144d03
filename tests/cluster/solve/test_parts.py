"""Tiers in parts, by Goofspiel: the same rows however a layer is split, asked, resumed."""

from collections import deque

import numpy as np
import pytest

from luckbase.cluster.answers.tier_part import TierPart
from luckbase.cluster.answers.verify import check_files, check_residuals
from luckbase.solver.games.goofspiel import full_table as layout
from tests import solving
from tests.places import BOARDS

POINTS = BOARDS / "goofspiel/points.toml"


@pytest.fixture
def small_parts(monkeypatch):
    layout.layer_of.cache_clear()
    monkeypatch.setattr("luckbase.solver.game.game._loaded", deque())
    monkeypatch.setattr(layout, "GAMES_A_PART", 3000)
    yield
    layout.layer_of.cache_clear()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    board = solving.load_board(POINTS, cards=7)
    return solving.solve_board(board, results=tmp_path_factory.mktemp("whole")).table


def payoffs(path):
    with solving.open_table(path) as table:
        states = np.concatenate(list(table.draw(table.rows, 0)))
        return states, table.probe(states)


@pytest.mark.parametrize("workers", [1, 3])
def test_parts_give_the_same_rows_as_whole_tiers(whole, tmp_path, small_parts, workers):
    board = solving.load_board(POINTS, cards=7)
    table = solving.solve_board(board, results=tmp_path, workers=workers).table
    assert len(list(table.rglob("*.parquet"))) > 12
    states, values = payoffs(table)
    wanted, exact = payoffs(whole)
    assert (states == wanted).all()
    assert values.tobytes() == exact.tobytes()
    with solving.open_table(table) as opened:
        assert isinstance(opened.full, TierPart)
        assert check_files(opened) == []
        assert check_residuals(opened, 500).worst < 1e-12
    assert not (table / "spill").exists()


def test_a_table_plays_both_sides_of_a_turned_card(whole):
    from luckbase.solver.policies.evaluate import evaluate_profile

    with solving.open_table(whole) as table:
        agent = table.agent()
        remaining = "1,2,3,4,5"  # the last five turns
        start = table.game.parse({"mine": remaining, "theirs": remaining, "deck": remaining})
        assert evaluate_profile(table.game, start, [agent, agent]).value[0] == pytest.approx(0)
        won = evaluate_profile(table.game, start, [agent, "random"]).value[0]
        assert won == pytest.approx(2.0413, abs=1e-4)
