"""Press Your Luck on boards whose keys use mixed radices: a search, refusals; and the drawing of two
and three players."""

import re
from itertools import pairwise

import numpy as np
import pytest

from luckbase.cluster.answers.table import search_in_memory
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.errors import LuckbaseError, OptionError
from luckbase.solver.game.capabilities import Charts, Drawing, FullTable
from luckbase.solver.scene import Box
from tests.solving import load_game


def game_of(players, cap=3000, unit=500):
    form = {
        "game": "press-your-luck", "rules": {"players": players},
        "outcomes": {"whammy": "1/6", "500": "1/2", "500 + spin": "1/3"},
        "solve": {"score_cap": cap, "score_unit": unit},
    }  # fmt: skip
    return load_game(board_from_canonical("made", form))


def test_larsons_cap_is_searched_and_keys_tell_its_states_apart():
    """442 units of $250 for three players: 64 bits are too few for powers of two. Player 3 passes;
    with a spin that comes back player 2 does too, so x = 1/3 (1/6 + x/3) that player 3 goes out."""
    game = game_of(3, 110_500, 250)
    assert (game.strides[1] < 0).all() and game.fields.most.tolist() == [442] * 3 + [31] * 6 + [
        4
    ] * 3
    start = game.parse("scores=0,1000,109000 earned=0,0,1 whammies=0,0,3")[None]
    table = search_in_memory(game, start, 100_000)
    assert table.probe(start)[0].tolist() == pytest.approx([0, 1 / 16, 15 / 16])


@pytest.mark.parametrize(("cap", "unit", "said"), [
    (110_500, 250, "has 442 units of score_unit, above 255, that no full table takes yet; run: "
     "luckbase solve with --from and a state, to search what lies below, as in --from "
     "scores=0,0,0 earned=1,1,1"),
    (1_000_000, 1, "1,000,000 units of score_unit 1 for 3 players do not fit in a key of 64 bits; "
     "write a larger score_unit"),
])  # fmt: skip
def test_a_board_of_too_many_scores_is_refused(cap, unit, said):
    with pytest.raises(LuckbaseError, match=re.escape(said)) as found:
        game_of(3, cap, unit).need(FullTable)
    assert found.value.exit_code == 2


@pytest.mark.parametrize("players", [2, 3])
def test_every_player_has_a_desk_beside_the_others(players):
    game = game_of(players)
    draw = game.need(Drawing).scene
    scores, rest = [3000, 500, 0][:players], [1] * players
    scene = draw(np.array([*scores, *rest, *[5] * players, *rest]))
    desks = [shape for shape in scene.shapes if isinstance(shape, Box) and shape.kind == "desk"]
    assert len(desks) == players and desks[0].x > 110
    assert all(a.x + a.wide < b.x for a, b in pairwise(desks))
    assert desks[-1].x + desks[-1].wide < scene.wide - 110


def test_a_chart_of_a_game_without_a_full_table_is_refused_with_the_reason():
    game = game_of(3, 110_500, 250)
    start = game.parse("scores=0,1000,109000 earned=0,0,1 whammies=0,0,3")[None]
    table = search_in_memory(game, start, 100_000)
    with pytest.raises(OptionError, match="has 442 units of score_unit, above 255, that no full"):
        table.check_chart(game.need(Charts).kinds[0])
