"""What a stored error is made of: each test is of a part without which the error that is stored, or
said in an answer, is smaller than the one that was made."""

from fractions import Fraction

import numpy as np
import pytest

from luckbase.solver.game.arrays import FLOAT64_ERROR
from luckbase.solver.games.goofspiel.full_table import Layers
from luckbase.solver.matrix_games import simplex as matrix_game
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.games.dimes import Dimes
from tests.places import BOARDS
from tests.solver.search.written_out import board_of, decides, over, written

RUNGS = 20
LADDER = [
    decides(0, [(0.75, rung), (0.25, rung + 1)], [(0.875, rung), (0.125, rung + 1)])
    for rung in range(RUNGS)
]  # every rung is a cycle of its own, and whoever climbs for ever is at the top: 1
LADDER.append(over(1.0))


def test_every_step_adds_to_the_error():
    graph = Graph(written(*LADDER, players=1))
    graph.solve(np.array([[0]]))
    rungs = graph.errors[graph.look_up(np.arange(RUNGS, dtype=np.uint64))]
    assert (np.diff(rungs) < 0).all() and rungs[-1] > 0
    assert 1.0 - graph.values[0, 0] <= graph.error < 1e-14


def test_the_error_of_a_table_grows_with_the_length_of_the_game(tmp_path):
    """Ten cents a round: float64 is 3e-7 off after 100,000 rounds, and the table says so."""
    board = Dimes(game="dimes", name="dimes", rules=Dimes.Options(rounds=100_000))
    result = solving.solve_below(board, results=tmp_path, workers=1)
    with solving.open_table(result.table) as table:
        created = abs(Fraction(float(table.probe(np.array([[100_000]]))[0, 0])) - 10_000)
        assert 1e-8 < created <= table.error < 1e-4


def test_what_float64_sums_lose_is_in_a_search_tables_error(tmp_path):
    board = board_of(decides(0, [(0.5, 1), (0.5, 2)]), over(1.0), over(0.0), players=1)
    result = solving.solve_below(board, results=tmp_path, workers=1)
    assert result.manifest.error() == FLOAT64_ERROR > 0


def test_no_payoff_is_said_to_be_off_by_more_than_the_game_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(Graph, "error", 5.0)
    result = solving.solve_below(board_of(*LADDER, players=1), results=tmp_path, workers=1)
    assert result.manifest.error() == 1.0


# Goofspiel


def solved(board):
    """A board of five cards in memory: the payoffs of each layer."""
    layers = solving.load_layout(solving.load_board(BOARDS / f"goofspiel/{board}.toml", cards=5))
    assert isinstance(layers, Layers)
    payoffs = {}
    for tier in layers.tiers():
        payoffs[tier] = np.empty(layers.shape(tier))
        layers.solve_tier(tier, payoffs[tier], payoffs.__getitem__, lambda: False)
    return layers, payoffs


@pytest.mark.parametrize(
    ("board", "tier"), [("points", 2), ("points", 3), ("points", 4), ("win", 2), ("win", 3)]
)
def test_a_layers_error_holds_what_the_layers_below_may_be_off_by(board, tier):
    """Those below are moved by all that they may be off by, a gap a layer: so is this one, where
    one hand beats the other whatever is bid."""
    layers, payoffs = solved(board)
    out, off = np.empty(layers.shape(tier)), (tier - 1) * layers.layer_error
    below = payoffs[tier - 1] + off
    error = layers.solve_tier(tier, out, lambda _: below, lambda: False)
    moved = np.abs(out - payoffs[tier]).max()
    assert moved == pytest.approx(off, rel=0.01)
    assert moved <= error


def test_a_matrix_games_gap_is_in_an_answers_error(tmp_path, monkeypatch):
    board = solving.load_board(BOARDS / "goofspiel/points.toml", cards=3)
    table = solving.solve_board(board, results=tmp_path).table
    solve = matrix_game.solve

    def with_a_gap(games):
        result = solve(games)
        result.gaps[:] = 0.25
        return result

    monkeypatch.setattr(matrix_game, "solve", with_a_gap)
    with solving.open_table(table) as opened:
        words = {"mine": "1,2,3", "theirs": "1,2,3", "deck": "1,2,3", "upcard": "2"}
        assert opened.ask(words).error == opened.error + 0.25
