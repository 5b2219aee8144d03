"""Full tables of Press Your Luck boards whose spins leave a choice, double or take a whammy away:
the kernel held to the reference that reads the squares aloud, and to the rules."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from luckbase.solver import dense
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.board.model import canonical
from luckbase.solver.check import check_game
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import no_decisions
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.games.press_your_luck.tiers import Tier
from tests.solver.board.board_files import BOARDS, FEBRUARY, press_your_luck
from tests.solver.games.press_your_luck import InMemory
from tests.solver.games.test_press_your_luck_slides import UNIT, as_the_reference, boards
from tests.solving import load_game, load_layout, one_step


def planes_of(name, players, choices="best"):
    """The layout of a board of the show with best choices, in two steps of $1,000."""
    form = {**canonical(press_your_luck(BOARDS / f"{name}.toml", choices=choices, **SMALL))}
    form.pop("start", None)
    form["rules"] = {**form["rules"], "players": players}
    return load_layout(board_from_canonical(name, form))


SMALL = {"score_unit": "1000", "score_cap": "2000", "frontier": "2"}


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(boards(full=True))
def test_full_tables_of_random_boards_are_as_the_reference_has_them(made):
    """Every slide but those that bring several spins; a board on which best replies do not settle
    is refused."""
    planes = made.game.need(FullTable)
    words = dict(zip(("scores", "earned", "passed", "whammies"), made.state, strict=True))
    words["scores"] = tuple(UNIT * units for units in made.state[0])
    state = made.game.parse(words).reshape(1, -1)
    as_the_reference(made, lambda: InMemory(planes).look_up(state)[0])


@pytest.mark.parametrize(
    ("name", "choices"), [("1985-02-double", "best"), ("1984-06-double", "random")]
)
def test_every_row_of_the_boards_of_the_show_is_a_step_of_the_rules(name, choices):
    board = press_your_luck(BOARDS / f"{name}.toml", choices=choices, payoffs="float64", **SMALL)
    start = {"scores": (0, 0, 1000), "earned": (1, 0, 1)}
    assert check_game(load_game(board), [start], most=100, rows=300_000)


def test_what_choosing_brings_who_is_up_says_the_full_table():
    """Best against random choices, February 1985 in units of $1,000."""
    states = [
        {"scores": (0, 8000, 3000), "earned": (0, 1, 0)},
        {"scores": (0, 8000, 3000), "earned": (0, 2, 0)},
        {"scores": (0, 2000, 4000), "earned": (0, 1, 1)},
    ]
    result = []
    for choices in ("best", "random"):
        board = press_your_luck(FEBRUARY, score_unit="1000", frontier="2", choices=choices)
        planes = load_layout(board)
        wanted = np.array([planes.game.parse(state) for state in states])
        needed = [tier for tier in planes.tiers() if tier.spins == 1 or tier.whammies == (0, 0, 0)]
        solved = dense.InMemory(planes, needed)
        result.append(InMemory(planes, solved.payoffs).look_up(wanted)[:, 1])
    assert result[0] - result[1] == pytest.approx([-0.003867, 0.001248, 0.012652], abs=5e-7)


@pytest.mark.parametrize("dirt", [np.nan, np.inf, 7.0])
@pytest.mark.parametrize("name", ["1985-02-double", "1985-02"])
def test_a_dirty_buffer_gives_the_same_bits(name, dirt):
    """Where states lean on themselves and on one another, nothing of what was there is read; by
    the kernel of choices, and by that of boards without them."""
    planes = planes_of(name, 3, "best" if "double" in name else "random")
    solved = dense.InMemory(planes, best=True)
    for tier in planes.tiers()[::5]:
        dirty, best = np.full(planes.shape(tier), dirt), no_decisions(planes.rows(tier))
        planes.solve_tier(tier, dirty, solved.payoffs.__getitem__, lambda: False, best=best)
        assert dirty.tobytes() == solved.payoffs[tier].tobytes()
        assert best.tobytes() == solved.best[tier].tobytes()


def test_two_players_have_a_full_table_that_is_as_that_of_three_with_one_out():
    """Player 3 is out from the beginning; and every row of two is a step of the rules."""
    two, three = planes_of("1985-02-double", 2), planes_of("1985-02-double", 3)
    assert {len(tier.whammies) for tier in two.tiers()} == {2}
    of_two, of_three = (dense.InMemory(planes).payoffs for planes in (two, three))
    for tier in two.tiers():
        same = Tier(tier.spins, (*tier.whammies, 4))
        assert of_two[tier].tobytes() == of_three[same].tobytes()
    assert check_game(two.game, [{"scores": (0, 1000), "earned": (1, 1)}], most=50, rows=10_000)


def test_slides_that_bring_several_spins_are_refused_by_name():
    form = {
        "game": "press-your-luck", "outcomes": {"1000 + 2 spins": "1/3", "whammy": "2/3"},
        "rules": {"spin_cap": 2}, "solve": {"score_unit": UNIT, "score_cap": 2 * UNIT},
    }  # fmt: skip
    with pytest.raises(OptionError, match=r"several spins.*--from"):
        load_layout(board_from_canonical("made", form))


def test_rows_longer_than_a_block_of_choices_are_steps_of_the_rules():
    """The kernel chooses for 128 states at a time; a row of this board has 130 scores. Its lists
    begin alike, and have one to four effects of every kind."""
    squares = {
        "1": ["to 2, 3", "to 2, 3, 4", 1], "2": ["whammy", 2],
        "3": ["2 or lose a whammy", "double"], "4": ["1 + spin", "lose a whammy"],
    }  # fmt: skip
    board = board_from_canonical("made", {
        "game": "press-your-luck", "squares": squares,
        "rules": {"players": 2, "choices": "best", "max_whammies": 2},
        "solve": {"score_unit": 1, "score_cap": 129, "frontier": 1, "payoffs": "float64"},
    })  # fmt: skip
    game = load_game(board)
    solved = dense.InMemory(game.need(FullTable))
    layout = solved.layout
    assert sum(map(layout.rows, layout.tiers())) == 4 * 4 * 130**2
    for tier in layout.tiers():
        states = layout.states_at(tier, np.arange(0, layout.rows(tier), 7))  # of every score
        stored, by_rules = solved.lookup(states)[0], one_step(solved, states)
        np.testing.assert_allclose(stored, by_rules, rtol=0, atol=1e-11)
