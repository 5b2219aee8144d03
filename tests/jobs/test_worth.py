"""What play and advice are told a state is worth: the same from a table, from tiers in memory and
from a search, for either seat."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from luckbase import cluster, solver
from luckbase.jobs import worth
from luckbase.jobs.worth import find_worth
from luckbase.solver.game.capabilities import layout_of
from luckbase.solver.game.game import Game
from luckbase.solver.graph.bellman import expand
from luckbase.solver.graph.components import TOLERANCES
from luckbase.solver.graph.game_graph import Graph
from tests.solver.graph.written_out import chance, decides, over, written

BOARDS = Path(__file__).parents[2] / "boards"
GOOFSPIEL = [BOARDS / "goofspiel/points.toml", BOARDS / "goofspiel/win.toml"]


def game_of(board: Path) -> Game:
    return solver.load_game(solver.load_board(board, cards=4))


def graph_of(game: Game) -> Graph:
    """Everything that a play of the game can come to, by search."""
    graph = Graph(game)
    graph.solve(game.needed_start()[None])
    return graph


@pytest.mark.parametrize("board", GOOFSPIEL)
@pytest.mark.parametrize("source", ["tiers", "table", "search"])
def test_every_state_of_goofspiel_is_worth_what_the_search_says_to_either_seat(
    board: Path, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = game_of(board)
    graph = graph_of(game)
    if source == "table":
        cluster.solve(solver.load_board(board, cards=4), results=tmp_path)
    if source != "tiers":
        monkeypatch.setattr(worth, "_tiers", lambda game: pytest.fail("tiers were solved"))
    if source == "search":
        monkeypatch.setattr(worth, "MOST_ROWS", 0)
    states = graph.states(np.arange(graph.count))
    with ExitStack() as tables:
        found = find_worth(game, "x.toml", game.needed_start(), tmp_path, 10**6, tables)
        assert found.look(states) == pytest.approx(graph.values, abs=1e-9)


@pytest.mark.parametrize("board", GOOFSPIEL)
def test_the_rows_that_hold_the_swapped_players_are_looked_up_swapped(board: Path) -> None:
    """One side has the better cards in each; a row that were not swapped would be far off."""
    game = game_of(board)
    pairs = [([0b1100, 0b0011], 0b1001), ([0b0110, 0b0101], 0b0011), ([0b1010, 0b0101], 0b1100)]
    found = worth._tiers(layout_of(game))
    more = [0] * (game.field_count - 3)
    for hands, deck in pairs:
        one, two = game.canonical_states(
            np.array([[*hands, deck, *more], [*hands[::-1], deck, *more]])
        )
        assert layout_of(game).swapped(np.stack([one, two])).sum() == 1
        values = found.look(np.stack([one, two]))
        assert values[0] == pytest.approx(values[1][::-1], abs=1e-12)
        assert values[0, 0] > values[0, 1] + 0.1


@pytest.mark.parametrize("board", GOOFSPIEL)
def test_the_actions_at_a_turned_card_are_priced(board: Path) -> None:
    game = game_of(board)
    graph, found = graph_of(game), worth._tiers(layout_of(game))
    edges = expand(game, expand(game, game.needed_start()[None]).children[:1])
    q = found.of(edges)
    below = expand(game, edges.children)
    assert len(q.actions) == 16 and len(below.kinds) == 16
    assert q.values.sum(axis=1) == pytest.approx(graph.values[0].sum())


def test_a_searchs_worth_is_as_good_as_its_cycles_were_solved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("luckbase.solver.graph.components.TOLERANCES", (1e-3, *TOLERANCES))
    game = written(
        chance((0.5, 1), (0.5, 2)),
        decides(0, [(0.75, 1), (0.25, 2)], [(0.875, 1), (0.125, 2)]),
        over(1.0),
        players=1,
    )
    with ExitStack() as tables:
        found = find_worth(game, "x.toml", game.start(), Path("nowhere"), 100, tables)
    assert 0 < 1 - found.look(np.array([[0]]))[0, 0] <= found.error < 1e-3
