"""Hold points, bids midway, tiles: tested against answers and reference solvers."""

import numpy as np
import pytest

import luckbase
from luckbase.solver.charts import Heatmap, Listing
from tests.places import BOARDS
from tests.reference import goofspiel
from tests.reference.jackpot import Reference as Tiles
from tests.reference.skunk import Reference as Race


@pytest.fixture(scope="module")
def pig():
    """Two sides: there is much to hold for."""
    with luckbase.open(BOARDS / "pig/tiny.toml", in_memory=True, goal=12, sides=2) as table:
        yield table


@pytest.fixture(scope="module")
def win():
    with luckbase.open(BOARDS / "goofspiel/win.toml", in_memory=True, cards=4) as table:
        yield table


@pytest.fixture(scope="module")
def points():
    with luckbase.open(BOARDS / "goofspiel/points.toml", in_memory=True, cards=4) as table:
        yield table


# --- Pig and Skunk -------------------------------------------------------------------------------


def test_hold_points_are_those_of_the_list_and_the_reference(pig):
    exact = Race(12, dice=1, sides=2, all_ones="turn")
    created, full = pig.chart("hold"), pig.chart("chart")
    assert isinstance(created, Heatmap) and isinstance(full, Listing)
    for mine, yours, _, toggles, _ in full.rows:
        hold = int(str(toggles).split()[0])
        assert created.values[int(mine), int(yours)] == hold
        for turn in range(1, hold):
            state = int(mine), int(yours), turn
            assert exact.roll(state) > exact.hold(state)
        if hold < 12 - int(mine):
            state = int(mine), int(yours), hold
            assert exact.roll(state) <= exact.hold(state)


def test_how_to_read_a_picture_is_true_of_it(pig, points):
    """Blank cells: the sentence says what they mean."""
    for table, name, word in ((pig, "hold", "Beyond the line"), (points, "upcard", "out colour")):
        created, (kind,) = table.chart(name), [each for each in table.charts if each.name == name]
        assert isinstance(created, Heatmap) and created.blank is not None
        assert word in kind.reading and "darker" not in kind.reading


# --- Goofspiel -----------------------------------------------------------------------------------

MIDWAY = {"mine": "1,2,4", "theirs": "2,3,4", "deck": "1,3,4"}


def cards(text):
    return frozenset(map(int, text.split(",")))


@pytest.mark.parametrize("lead", [None, 0, -2])
def test_bids_midway_are_optimal_in_the_references_games(win, points, lead):
    """Every upcard's lottery earns the game's value against each bid of the other."""
    table, more = (points, {}) if lead is None else (win, {"lead": str(lead)})
    created = table.chart("bids", MIDWAY | more)
    hands = [cards(MIDWAY[name]) for name in ("mine", "theirs", "deck")]
    for upcard in sorted(hands[2]):
        chances = np.array([row[2] for row in created.rows if row[0] == upcard], float)
        bids = [row[1] for row in created.rows if row[0] == upcard]
        assert bids == [1, 2, 4] and chances.sum() == pytest.approx(1, abs=1e-8)
        game = goofspiel.game(*hands, upcard, lead is not None, lead or 0)
        value = float(goofspiel.matrix_game.solve(game)[0])
        earned = chances @ np.array(game, dtype=float)
        assert earned.min() == pytest.approx(value, abs=1e-7)


def test_a_picture_midway_has_numbers_where_there_are_cards_and_nowhere_else(points):
    created = points.chart("upcard", MIDWAY)
    there = ~np.isnan(created.values)
    assert [tuple(x + 1) for x in np.argwhere(there)] == [
        (upcard, bid) for upcard in (1, 3, 4) for bid in (1, 2, 4)
    ]
    assert "first" not in created.title and "deck=1,3,4" in created.about


# --- Jackpot and Shut the Box --------------------------------------------------------------------

RULES = [
    {"tiles": 6, "sides": 4},
    {"tiles": 6, "sides": 4, "allowed": "sum", "one_die": "may"},
    {"tiles": 6, "sides": 4, "allowed": "sum", "objective": "sum"},
]


@pytest.fixture(scope="module", params=RULES, ids=["jackpot", "may", "sum"])
def tiles(request):
    given = request.param
    name = "shut-the-box" if given.get("allowed") else "seed"
    with luckbase.open(BOARDS / f"jackpot/{name}.toml", in_memory=True, **given) as table:
        yield table, Tiles(**given)


def test_what_to_flip_is_what_the_answers_and_the_reference_say(tiles):
    table, reference = tiles
    value = reference.value
    for opened in ("", "1,2,3,5"):
        created = table.chart("flip", {"open": opened} if opened else {})
        open_tiles = cards(opened) if opened else frozenset(range(1, reference.tiles + 1))
        total = 0.0
        for row in created.rows:
            text, dice, chance, best, worth, other, cost = row
            assert cards(str(text).replace(" ", ",")) == open_tiles
            total += float(chance)
            faces = a_roll(str(dice), reference)
            assert worth == pytest.approx(
                float(reference.after(value, open_tiles, faces)), abs=1e-9
            )
            choices = set(reference.choices(open_tiles, faces))
            assert (best == "-") == (not choices) and (other == "-") == (len(choices) < 2)
            if choices:
                flipped = cards(str(best).replace("+", ","))
                assert value[open_tiles - flipped] == max(value[open_tiles - x] for x in choices)
                answer = table.ask({"open": tuple(open_tiles), "dice": faces})
                assert answer.value[0] == pytest.approx(worth, abs=1e-9)
            if other != "-":
                level = sorted((value[open_tiles - x] for x in choices), reverse=True)
                assert cost == pytest.approx(float(level[0] - level[1]), abs=1e-9)
        assert total == pytest.approx(len(reference.dice_rolled(open_tiles)), abs=1e-8)


def a_roll(text, reference):
    """Faces that a line of the list stands for."""
    if "," in text:
        return tuple(map(int, text.split(",")))
    total, dice = int(text.split()[0]), 1 if "1 die" in text else reference.dice
    return next(roll for roll in reference.rolls(dice) if sum(roll) == total)
