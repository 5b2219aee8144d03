"""Tiers in parts, by Goofspiel: the same rows however a layer is split, asked, resumed."""

import hashlib
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from luckbase import cluster, solver
from luckbase.cluster.answers.tier_part import TierPart
from luckbase.cluster.answers.verify import check_files, check_residuals
from luckbase.cluster.solve import tiers
from luckbase.solver.errors import StateError
from luckbase.solver.games.goofspiel import full_table as layout

POINTS = Path(__file__).parents[3] / "boards/goofspiel/points.toml"
WIN = Path(__file__).parents[3] / "boards/goofspiel/win.toml"


@pytest.fixture
def small_parts(monkeypatch):
    layout.layer_of.cache_clear()
    monkeypatch.setattr("luckbase.solver.game.game._loaded", deque())
    monkeypatch.setattr(layout, "GAMES_A_PART", 3000)
    yield
    layout.layer_of.cache_clear()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    board = solver.load_board(POINTS, cards=7)
    return cluster.solve_board(board, results=tmp_path_factory.mktemp("whole")).table


def payoffs(path):
    with cluster.open_table(path) as table:
        states = np.concatenate(list(table.draw(table.rows, 0)))
        return states, table.probe(states)


def digests(path):
    files = sorted((path / "tiers").rglob("*.parquet"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


@pytest.mark.parametrize("workers", [1, 3])
def test_parts_give_the_same_rows_as_whole_tiers(whole, tmp_path, small_parts, workers):
    board = solver.load_board(POINTS, cards=7)
    table = cluster.solve_board(board, results=tmp_path, workers=workers).table
    assert len(list(table.rglob("*.parquet"))) > 12
    states, values = payoffs(table)
    wanted, exact = payoffs(whole)
    assert (states == wanted).all()
    assert values.tobytes() == exact.tobytes()
    with cluster.open_table(table) as opened:
        assert isinstance(opened.full, TierPart)
        assert check_files(opened) == []
        assert check_residuals(opened, 500).worst < 1e-12
    assert not (table / "spill").exists()


@pytest.mark.parametrize("board", [POINTS, WIN])
def test_parts_are_put_together_to_the_bits_of_a_whole_tier(board, small_parts, monkeypatch):
    """The parts may come in any order."""
    monkeypatch.setattr(layout, "GAMES_A_PART", 300)
    layers = solver.load_layout(solver.load_board(board, cards=6))
    random = np.random.default_rng(1)
    below = random.random(layers.shape(4))
    ranges = layers.parts(4)
    assert len(ranges) > 5
    order = random.permutation(len(ranges)).tolist()
    parts = {part: below[slice(*ranges[part])] for part in order}
    assert tiers.payoffs_of(layers, 4, parts).tobytes() == below.tobytes()


def test_a_state_and_its_swap_are_one_row_with_the_payoffs_exchanged(whole):
    with cluster.open_table(whole) as table:
        one = table.ask({"mine": "1,4,5", "theirs": "2,3,6", "deck": "1,2,7"}).value
        other = table.ask({"mine": "2,3,6", "theirs": "1,4,5", "deck": "1,2,7"}).value
        assert one == other[::-1] and one[0] == -one[1] != 0


@pytest.mark.parametrize("board", [POINTS, WIN])
def test_a_turned_card_is_answered_with_both_sides_bids(board, tmp_path):
    """docs/numbers.md#numbers-of-this-project: on the 5,
    points .8636 on the 5; win 1: .1444, 2: .0154, 5: .8402."""
    table = cluster.solve_board(solver.load_board(board, cards=5), results=tmp_path).table
    every = dict.fromkeys(("mine", "theirs", "deck"), "1,2,3,4,5")
    with cluster.open_table(table) as opened:
        answer = opened.ask(every | {"upcard": "5"})
        assert answer.strategies is not None and answer.to_act is None
        chances = {bid.name: bid.chance for bid in answer.strategies[0]}
        if board == POINTS:
            assert chances["bid 5"] == pytest.approx(0.8636, abs=5e-5)
        else:
            assert chances["bid 1"] == pytest.approx(0.1444, abs=5e-5)
            assert chances["bid 2"] == pytest.approx(0.0154, abs=5e-5)
            assert chances["bid 5"] == pytest.approx(0.8402, abs=5e-5)
        assert sum(chances.values()) == pytest.approx(1)
        assert answer.as_json()["strategies"][0][0]["action"] == "bid 1"
        assert check_residuals(opened, None).worst < 1e-12


def test_bids_are_named_by_the_persons_own_cards(whole):
    """Paper, 3.1: {2,4} against {1,3}, queen (2) and king (4) left: high on the king with ..."""
    with cluster.open_table(whole) as table:
        answer = table.ask({"mine": "2,7", "theirs": "1,5", "deck": "3,6", "upcard": "6"})
        assert answer.strategies is not None
        assert [bid.name for bid in answer.strategies[0]] == ["bid 2", "bid 7"]
        assert [bid.name for bid in answer.strategies[1]] == ["bid 1", "bid 5"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"mine": "1,2", "theirs": "1", "deck": "1,2"}, "theirs: 1 card, and mine has 2"),
        ({"mine": "1,1", "theirs": "1,2", "deck": "1,2"}, "mine: 1 is there twice"),
        (
            {"mine": "1,2", "theirs": "1,2", "deck": "1,2", "upcard": "3"},
            "upcard: 3 is not in deck",
        ),
        ({"mine": "1,8", "theirs": "1,2", "deck": "1,2"}, "mine: 8 is not a number from 1 to 7"),
    ],
)
def test_what_is_no_state_is_one_sentence(whole, words, said):
    with cluster.open_table(whole) as table, pytest.raises(StateError, match=said):
        table.ask(words)


def test_a_table_plays_both_sides_of_a_turned_card(whole):
    from luckbase.solver.policies.evaluate import evaluate_profile

    with cluster.open_table(whole) as table:
        agent = table.agent()
        left = "1,2,3,4,5"  # the last five turns
        start = table.game.parse({"mine": left, "theirs": left, "deck": left})
        assert evaluate_profile(table.game, start, [agent, agent]).value[0] == pytest.approx(0)
        won = evaluate_profile(table.game, start, [agent, "random"]).value[0]
        assert won == pytest.approx(2.0413, abs=1e-4)
