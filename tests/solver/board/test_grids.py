"""A board file with several grids is several boards, the finest first."""

import pytest

from luckbase.solver.board.file import read_board, read_boards
from luckbase.solver.board.model import rules_identity
from luckbase.solver.game.game import load_game
from tests.solver.board.board_files import FEBRUARY, TINY, edited

GRIDS = [(250, 1, 4), (500, 2, 8), (1000, 3, 20)]


def reach(board):
    return board.solve.score_unit, board.solve.frontier, board.solve.decisions


@pytest.mark.parametrize(
    ("settings", "boards"),
    [
        ({}, GRIDS),
        ({"max_whammies": "3"}, GRIDS),
        ({"score_unit": "500"}, [(500, 2, 8)]),
        ({"score_unit": "500", "frontier": "4"}, [(500, 4, None)]),
        ({"score_unit": "500", "decisions": "5"}, [(500, 2, 5)]),
        ({"score_unit": "500", "frontier": "1", "decisions": "5"}, [(500, 1, 5)]),
        ({"score_unit": "400"}, [(400, 2, None)]),
        ({"score_unit": "400", "decisions": "5"}, [(400, 2, 5)]),
    ],
    ids=str,
)
def test_options_pick_grids_of_february(settings, boards):
    result = list(read_boards(FEBRUARY, settings))
    assert [reach(board) for board in result] == boards
    assert read_board(FEBRUARY, settings) == result[0]
    for board in result:  # its own options lead back to it
        again = list(read_boards(FEBRUARY, board.source.settings))
        assert [reach(each) for each in again] == [reach(board)]
        assert board.source.settings.items() >= settings.items()


def test_a_grid_is_the_board_that_its_options_make(tmp_path):
    """One grid needs no name; the order in the file does not matter."""
    plain = edited(TINY, "frontier =", "frontier = 2 #")
    unit = edited(TINY, "score_unit =", "#").replace("frontier =", "#")
    first, second = tmp_path / "one.toml", tmp_path / "two.toml"
    first.write_text(f"{unit}\n[[grid]]\nscore_unit = 500\nfrontier = 2\n")
    second.write_text(
        f"{unit}\n[[grid]]\nscore_unit = 1000\n[[grid]]\nscore_unit = 500\nfrontier = 2\n"
    )
    (tmp_path / "plain.toml").write_text(plain)
    right = rules_identity(load_game(read_board(tmp_path / "plain.toml")))
    for path in (first, second):
        board = read_board(path)
        assert rules_identity(load_game(board)) == right
        assert reach(board) == (500, 2, None)
    assert read_board(first).source.settings == {}
    assert read_board(first, {"frontier": "3"}).solve.frontier == 3
    assert [reach(board)[0] for board in read_boards(second)] == [500, 1000]
