"""The kernel against an independent solver and against the rules, on boards drawn at random."""

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.solver import dense
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.errors import OptionError
from luckbase.solver.game.capabilities import DecisionLayout
from luckbase.solver.games.press_your_luck import full_table as press_your_luck_layout
from tests import solving
from tests.places import BOARDS
from tests.solver.games.press_your_luck import InMemory, reference_of

TINY, FEBRUARY = BOARDS / "press-your-luck/tiny.toml", BOARDS / "press-your-luck/1985-02.toml"
OPTIONS = list(product((True, False), ("passer", "next"), (1, 2, 3, 4)))
"""third_place_spins, tied_pass, max_whammies."""


def planes_of(outcomes, cap, frontier, options):
    third, tied, most = options
    form = {
        "game": "press-your-luck",
        "outcomes": outcomes,
        "rules": {"third_place_spins": third, "tied_pass": tied, "max_whammies": most},
        "solve": {"score_unit": 1, "score_cap": cap, "frontier": frontier},
    }
    return solving.load_layout(board_from_canonical("drawn", form))


@st.composite
def boards(draw):
    """Up to six outcomes with whole weights, some of them beyond the cap; all rule options."""
    cap = draw(st.integers(2, 5))
    units = st.integers(1, cap + 1)
    name = units.map(str) | units.map("{} + spin".format)
    names = draw(st.lists(name, min_size=1, max_size=5, unique=True))
    if all("spin" in name for name in names):
        names.append("1")
    names.append("whammy")
    weights = draw(st.lists(st.integers(1, 5), min_size=len(names), max_size=len(names)))
    chances = {n: str(Fraction(w, sum(weights))) for n, w in zip(names, weights, strict=True)}
    return planes_of(chances, cap, draw(st.integers(1, 2)), draw(st.sampled_from(OPTIONS)))


def compare(planes, table, states):
    reference = reference_of(planes.game)
    parts = states.reshape(-1, 4, 3).tolist()
    exact = np.array([reference.value(*map(tuple, state)) for state in parts])
    off = np.abs(table.look_up(states) - exact).max(axis=1)
    assert off.max() <= 1e-9, planes.game.describe(states[off.argmax()])


@settings(max_examples=25, deadline=None)
@given(boards(), st.integers(0, 2**32 - 1))
def test_kernel_and_reference_agree_on_random_states_of_random_boards(planes, seed):
    table = InMemory(planes)
    rng = np.random.default_rng(seed)
    tiers = planes.tiers()
    drawn = []
    for tier in (tiers[i] for i in rng.integers(0, len(tiers), 12)):
        drawn.append(planes.states_at(tier, rng.integers(0, planes.rows(tier), 3)))
    capped = np.concatenate(drawn).copy()
    inside = capped[:, 9:12] < planes.most
    raised = rng.random(inside.shape) < 0.6  # two and three at the cap: where the loops are
    capped[:, :3] = np.where(inside & raised, planes.cap, capped[:, :3])
    compare(planes, table, np.concatenate([*drawn, capped]))


@pytest.mark.parametrize("options", OPTIONS)
def test_kernel_and_reference_agree_on_every_state_of_a_small_board(options):
    chances = {"whammy": "1/5", "1": "1/4", "2 + spin": "3/10", "1 + spin": "1/4"}
    planes = planes_of(chances, 2, 2, options)
    table, last = InMemory(planes), planes.most - 1
    for tier in planes.tiers():
        if tier.spins == 1 or tier.whammies in ((0, 0, 0), (last, 0, last)) or planes.most < 3:
            compare(planes, table, planes.states_at(tier, np.arange(planes.rows(tier))))


@pytest.mark.parametrize("tied_pass", ["passer", "next"])
def test_three_at_the_cap_pass_one_spin_round_for_ever(tied_pass):
    """docs/numbers.md#numbers-of-this-project: .36528138, .28711239, .34760623; they depend on the
    chances of a whammy and of plus a spin alone."""
    chances = {"whammy": "1/6", "1": str(1 - Fraction(1, 6) - Fraction(71, 243)),
               "1 + spin": "71/243"}  # fmt: skip
    planes = planes_of(chances, 2, 1, (True, tied_pass, 4))
    state = planes.game.parse({"scores": "2,2,2", "earned": "1,0,0"})[None]
    assert InMemory(planes).look_up(state)[0] == pytest.approx(
        [0.36528138, 0.28711239, 0.34760623], abs=5e-9
    )


@pytest.mark.parametrize("threads", [3, 16])
@pytest.mark.parametrize("edge_rows", [1, 300])
def test_any_number_of_threads_fills_a_tier_with_the_same_bits(threads, edge_rows, monkeypatch):
    """In blocks of a row and of some; the decisions too."""
    monkeypatch.setattr(press_your_luck_layout, "BLOCK_ROWS", edge_rows)  # no option
    board = solving.load_board(TINY, frontier=3)
    layout = solving.load_layout(board)
    alone = {}
    for tier in layout.tiers():
        found = []
        for count in (1, threads):
            monkeypatch.setattr(press_your_luck_layout, "BIG_ROWS", 1)  # no option
            layout.threads = count
            out = np.full(layout.shape(tier), np.nan)
            best = np.full(layout.rows(tier), -1, np.int8)
            layout.solve_tier(tier, out, alone.__getitem__, lambda: False, 0, best)
            found.append((out.tobytes(), best.tobytes()))
        assert found[0] == found[1]
        alone[tier] = out


# --- solved for its decisions alone ------------------------------------------------------------

COARSE = {"score_unit": 1000, "score_cap": 5000, "frontier": 4}


def decisions_of(path, **options):
    """A board's layout of decisions."""
    return solving.load_game(solving.load_board(path, **options)).need(DecisionLayout)


@pytest.mark.parametrize(
    ("path", "options"),
    [(TINY, {}), (FEBRUARY, COARSE),
     pytest.param(FEBRUARY, {**COARSE, "choices": "best"}, marks=pytest.mark.slow)],
)  # fmt: skip
def test_every_payoff_and_decision_has_the_same_bits_as_in_the_full_table(
    path, options, monkeypatch
):
    """New arrays are NaN, so that nothing is read that was not written."""
    of = decisions_of(path, **options)
    full = dense.InMemory(solving.load_layout(solving.load_board(path, **options)), best=True)
    unwritten = SimpleNamespace(empty=lambda shape: np.full(shape, np.nan))
    monkeypatch.setattr(dense, "np", unwritten)  # no option
    found = list(dense.decisions_in_order(of))
    assert {tier for tier, _, _ in found} == full.payoffs.keys()
    for tier, payoffs, decided in found:
        assert payoffs.tobytes() == full.payoffs[tier].tobytes()
        assert decided.tobytes() == full.best[tier].tobytes()


def test_decisions_beyond_the_frontier_begin_where_payoffs_end():
    of = decisions_of(FEBRUARY, **COARSE | {"frontier": 2, "decisions": 4})
    assert of.tiers() == decisions_of(FEBRUARY, **COARSE).tiers()
    assert {tier.spins for tier in of.tiers() if of.is_decided(tier)} == {3, 4}
    none = decisions_of(FEBRUARY, **COARSE | {"decisions": 3})  # fewer than the frontier
    assert not any(map(none.is_decided, none.tiers()))


def test_a_board_whose_slides_take_whammies_away_is_refused():
    board = BOARDS / "press-your-luck" / "1985-02-double.toml"
    with pytest.raises(OptionError, match="slides that take whammies away"):
        decisions_of(board)


# --- what a finished solve proposes to ask --------------------------------------------------------

SHOWS = {
    "ahead, one spin left": lambda has, spins: has[1] == max(has) and spins == [0, 1, 0],
    "far ahead, one spin left":
        lambda has, spins: has[1] > 2 * max(has[0], has[2]) and spins == [0, 1, 0],
    "the same with two spins": lambda has, spins: spins == [0, 2, 0],
    "the first to go, well behind": lambda has, spins: has[0] < min(has[1:]) and spins == [2, 0, 0],
    "both have a spin, second ahead":
        lambda has, spins: has[1] > has[2] > has[0] and spins == [1, 1, 0],
    "three spins, far ahead":
        lambda has, spins: has[1] > 2 * max(has[0], has[2]) and spins == [0, 3, 0],
}  # fmt: skip


@pytest.mark.parametrize("frontier", [1, 3])
def test_what_is_proposed_to_ask_is_what_its_title_says(frontier):
    """Only those that the table reaches; "the same" has the scores of the one before."""
    layout = solving.load_layout(solving.load_board(FEBRUARY, score_unit=250, frontier=frontier))
    query = dict(layout.opening_questions())
    assert len(query) == {1: 2, 3: len(SHOWS)}[frontier]
    for title, state in query.items():
        has = state["scores"]
        spins = list(state["earned"])
        assert SHOWS[title](has, spins), title
    scores = [query[title]["scores"] for title in query if title.startswith(("far", "the same"))]
    assert all(each == scores[0] for each in scores)


def test_where_scores_are_few_no_state_is_proposed_twice():
    few = {"score_unit": 1000, "score_cap": 4000, "frontier": 1}
    layout = solving.load_layout(solving.load_board(FEBRUARY, **few))
    (query,) = layout.opening_questions()
    assert query == ("ahead, one spin left", {"scores": [0, 2000, 1000], "earned": (0, 1, 0)})
