"""Full tables of Press Your Luck boards whose spins leave a choice, double or take a whammy away:
the kernel held to the reference that reads the squares aloud, and to the rules."""

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings

from luckbase.solver import dense
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.board.model import canonical
from luckbase.solver.check import check_game
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.games.press_your_luck import choosing
from luckbase.solver.games.press_your_luck.outcomes import (
    DOUBLES,
    LOSES,
    MAY_LOSE,
    PAYS,
    WHAMMY,
    Effect,
)
from luckbase.solver.games.press_your_luck.tiers import Tier
from tests.reference.press_your_luck_slides import Unsettled
from tests.solver.board.board_files import BOARDS, FEBRUARY, press_your_luck
from tests.solver.games.press_your_luck import InMemory
from tests.solver.games.test_press_your_luck_slides import UNIT, boards
from tests.solving import load_game, load_layout


def planes_of(name, players):
    """The layout of a board of the show with best choices, in two steps of $1,000."""
    form = {**canonical(press_your_luck(BOARDS / f"{name}.toml", choices="best", **SMALL))}
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
    try:
        table, value = InMemory(planes), made.reference.value(*made.state)
    except (StateError, Unsettled) as error:
        assert isinstance(error, Unsettled) or "best replies do not settle" in str(error)
        event("unsettled")
        return
    result = table.look_up(made.game.parse(words).reshape(1, -1))[0]
    np.testing.assert_allclose(result, value, atol=1e-9)


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


def test_three_at_the_cap_with_one_spin_on_the_board_of_february():
    """docs/numbers.md#numbers-of-this-project, whatever the next in turn order may choose."""
    board = press_your_luck(FEBRUARY, score_unit="1000", frontier="1")
    planes = load_layout(board)
    state = planes.game.parse({"scores": (20_000,) * 3, "earned": (1, 0, 0)}).reshape(1, -1)
    result = InMemory(planes).look_up(state)[0]
    assert result == pytest.approx([0.36528138, 0.28711239, 0.34760623], abs=5e-9)


@pytest.mark.parametrize("dirt", [np.nan, np.inf, 7.0])
def test_a_dirty_buffer_gives_the_same_bits(dirt):
    """Where states lean on themselves and on one another, nothing of what was there is read."""
    planes = planes_of("1985-02-double", 3)
    solved = dense.InMemory(planes).payoffs
    for tier in (Tier(1, (0, 0, 0)), Tier(1, (4, 0, 3)), Tier(2, (0, 1, 3))):
        dirty = np.full(planes.shape(tier), dirt)
        planes.solve_tier(tier, dirty, solved.__getitem__, lambda: False)
        assert dirty.tobytes() == solved[tier].tobytes()


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


# --- each state by itself ------------------------------------------------------------------------

LISTS = (
    (Effect(PAYS, 1),), (Effect(PAYS, 2), Effect(MAY_LOSE)), (Effect(PAYS, 1), Effect(WHAMMY)),
    (Effect(PAYS, 1), Effect(WHAMMY), Effect(PAYS, 3)), (Effect(WHAMMY), Effect(LOSES)),
    (Effect(PAYS, 1), Effect(WHAMMY), Effect(DOUBLES, 0, 1)), (Effect(LOSES), Effect(DOUBLES)),
    (Effect(PAYS, 1), Effect(WHAMMY), Effect(PAYS, 3), Effect(PAYS, 2, 1)),
    (Effect(PAYS, 1), Effect(PAYS, 2)), (Effect(PAYS, 1), Effect(DOUBLES)),
    (Effect(DOUBLES, 0, 1),), (Effect(PAYS, 3), Effect(PAYS, 1), Effect(WHAMMY)),
)  # fmt: skip
"""Lists of effects that begin alike, one after the other or none; every kind, a tie at the cap."""
NEAR, APART = 4e-13, 3e-12
"""Payoffs that are tied, also as a sum of two, and payoffs that are not."""


@pytest.fixture
def plain():
    """The parts of the kernel, which Python runs as they are."""
    return choosing


class Spin:
    """Random payoffs of a spin's outcomes, and what choosing among `LISTS` brings a slot: of every
    list the best for them, as often as the list comes."""

    def __init__(self, plain, cap, before, first, configs):
        """before: configurations of T - 1; first: of those of T in which the slot up decides."""
        self.plain, self.cap, self.first, self.configs = plain, cap, first, configs
        self.rng = np.random.default_rng(1)
        weights = range(1, len(LISTS) + 1)
        self.lists = [(each, Fraction(n, 100)) for each, n in zip(LISTS, weights, strict=True)]
        outcomes = SimpleNamespace(others=self.lists)
        self.choosing = plain.make_choosing.__wrapped__(outcomes, cap)
        gain = np.maximum(np.arange(configs) - first, 0) + 1
        spend = before - configs + np.arange(configs)
        self.moves = SimpleNamespace(gain=gain, spend=spend)

    def payoffs(self, *shape):
        near = self.rng.choice([0.0, NEAR, APART], shape)
        return self.rng.integers(0, 3, shape) / 8 + near

    def expected(self, up, has, score, where):
        """where(score or None after a whammy, effect) -> the payoffs of A and B there."""
        total = np.zeros(2)
        for effects, chance in self.lists:
            best = None
            for effect in effects:
                if effect.kind == MAY_LOSE and not has:
                    continue
                after = {DOUBLES: 2 * score, WHAMMY: 0}.get(effect.kind, score + effect.units)
                both = where(min(after, self.cap), effect)
                own = -(both[0] + both[1]) if up == 2 else both[up]
                if best is None or own > best[0] + 1e-12:
                    best = own, both
            total += float(chance) * np.array(best[1])
        return float(total[0]), float(total[1])


@pytest.mark.parametrize(("up", "has"), list(product((0, 1), (False, True))))
def test_streams_of_states_choose_as_each_state_does(plain, up, has):
    """More states than a block has, in rows of A's or B's scores."""
    cap, configs, first, before, other = 6, 44, 22, 30, 1
    spin, n_c = Spin(plain, cap, before, first, configs), cap + 1
    rows = (2, n_c) if up == 0 else (n_c, 3)
    v, d = spin.payoffs(2, *rows, configs * n_c), spin.payoffs(2, *rows, before * n_c)
    less = [spin.payoffs(*d.shape) for _ in range(2)]
    start_b = 3
    faces = [spin.payoffs(2, 2, configs * n_c), spin.payoffs(2, 2, (configs - start_b) * n_c)]
    kept, whammies = v.copy(), [not has, not has, not has]
    whammies[up] = has
    choices, arrays = (less, whammies, spin.choosing), (v, d, *faces, None)
    last, scratch = configs - 1, np.zeros((2, spin.choosing.rows))
    for score in (0, 2, cap):
        v[:] = kept
        at = (other, score) if up == 0 else (score, other)
        spend, gain = spin.moves.spend[first], spin.moves.gain[first]
        plain.choose_streams(up, first, last, spend, gain, *at, arrays, start_b, choices)
        moved = v - kept
        assert (moved != 0).sum() == 2 * (last - first) * n_c
        v[:] = kept
        for c, s in product(range(first, last), range(n_c)):
            x = c * n_c + s
            lost = faces[up][:, other, x - start_b * n_c * up].tolist()

            def where(after, effect, c=c, s=s, lost=lost):
                b, a = (other, after) if up == 0 else (after, other)
                if effect.kind == WHAMMY:
                    return lost
                if effect.spins:
                    return kept[:, b, a, spin.moves.gain[c] * n_c + s].tolist()
                of = less[up] if effect.kind in (LOSES, MAY_LOSE) else d
                return of[:, b, a, spin.moves.spend[c] * n_c + s].tolist()

            right = spin.expected(up, has, score, where)
            assert moved[:, *at, x] == pytest.approx(right, abs=1e-13)
            single = plain.choose_at(up, (*at, s), c, lost, arrays, spin.moves, choices, scratch)
            assert single == pytest.approx(right, abs=1e-13)


@pytest.mark.parametrize("has", [False, True])
def test_a_row_of_more_scores_than_a_block_has_chooses_as_each_state_does(plain, has):
    """Of slot C, on a board of more than 128 steps."""
    spin = Spin(plain, 140, 3, 2, 4)
    n_c = spin.cap + 1
    v, d, less = (spin.payoffs(2, 1, 1, n * n_c) for n in (4, 3, 3))
    kept, c, lost = v.copy(), 3, tuple(spin.payoffs(2).tolist())
    choices = ((less[0, 0, 0], less[1, 0, 0]), has, spin.choosing)
    plain.choose_row(v[0, 0, 0], v[1, 0, 0], d[0, 0, 0], d[1, 0, 0], lost, c, spin.moves, choices)
    moved, scratch = (v - kept)[:, 0, 0], np.zeros((2, spin.choosing.rows))
    assert (moved != 0).any(axis=0).nonzero()[0].tolist() == [*range(c * n_c, (c + 1) * n_c)]
    every = ([None, None, less], [not has, not has, has], spin.choosing)
    for s in range(n_c):

        def where(after, effect):
            if effect.kind == WHAMMY:
                return lost
            if effect.spins:
                return kept[:, 0, 0, spin.moves.gain[c] * n_c + after].tolist()
            of = less if effect.kind in (LOSES, MAY_LOSE) else d
            return of[:, 0, 0, spin.moves.spend[c] * n_c + after].tolist()

        right = spin.expected(2, has, s, where)
        assert moved[:, c * n_c + s] == pytest.approx(right, abs=1e-13)
        single = plain.choose_at(
            2, (0, 0, s), c, lost, (kept, d, None, None, None), spin.moves, every, scratch
        )
        assert single == pytest.approx(right, abs=1e-13)


def test_a_spin_comes_back_at_no_score_where_one_doubles_and_brings_it(plain):
    pays, doubles = Effect(PAYS, 1, 1), Effect(DOUBLES)
    for effects, returns in (((pays, doubles), False), ((pays, doubles._replace(spins=1)), True)):
        outcomes = SimpleNamespace(others=((effects, Fraction(1)),))
        assert plain.make_choosing.__wrapped__(outcomes, 2).returns is returns
