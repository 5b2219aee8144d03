"""Board files: what they give, what the solver refuses, their canonical form and their hash."""

import hashlib
import json
import pickle
import shutil
from fractions import Fraction

import pytest

from luckbase.solver.board.file import board_from_canonical, changes, read_board, read_boards
from luckbase.solver.board.model import board_hash, canonical, rules_identity
from luckbase.solver.errors import BoardError, OptionError
from luckbase.solver.game.game import load_game
from luckbase.solver.games.press_your_luck.board import outcome_distribution
from luckbase.solver.games.press_your_luck.outcomes import (
    DOUBLES,
    MAY_LOSE,
    PAYS,
    Effect,
    round_half_up,
)
from tests.reference.press_your_luck import FEBRUARY_1985
from tests.solver.board.board_files import (
    ALL,
    BOARDS,
    FEBRUARY,
    JUNE,
    SMALL,
    TINY,
    board_text,
    edited,
    press_your_luck,
    read,
)

# The slides of February 1985, typed once more.
PAGE = """
1: 1400 · 1750 · 2250 — 2: 500 · 1250 · prize — 3: 500 · 2000 · whammy —
4: 3000+spin · 4000+spin · 5000+spin — 5: 750 · prize · whammy —
6: 700+spin · pick a corner · go back 2 — 7: 750 · prize · whammy —
8: 500+spin · 750+spin · 1000+spin — 9: 800 · whammy · move one — 10: prize · prize · prize —
11: 1500 · whammy · advance 2 — 12: 500 · whammy · big bucks — 13: 1500 · 2500 · prize —
14: 2000 · whammy · move one — 15: 1000+spin · 2000 · prize — 16: 750+spin · 1500+spin · whammy —
17: 600 · 700+spin · prize — 18: 750+spin · 1000+spin · whammy
"""

# What the boards give


def test_february_1985_is_the_list_that_was_typed_once_more():
    """Square by square, slide by slide."""
    board = press_your_luck(FEBRUARY)
    listed = [entry.split(":") for entry in " ".join(PAGE.split()).split(" — ")]
    assert [int(number) for number, _ in listed] == list(range(1, 19))
    for (_, slides), square in zip(listed, board.squares, strict=True):
        page = [slide.strip().replace("+spin", " + spin") for slide in slides.split("·")]
        assert [str(slide) for slide in square] == page


def spin_again(outcomes):
    """The chance of any money plus a spin."""
    return sum((chance for _, chance in outcomes.spin), Fraction(0))


@pytest.mark.parametrize(("unit", "distinct"), [("250", 16), ("500", 12), ("1000", 9)])
def test_february_1985_has_the_chances_and_counts_worked_out_by_hand(unit, distinct):
    """Page: "exactly, whammy 1/6, money plus a spin 71/243", 16, 12, 9 distinct outcomes."""
    outcomes = outcome_distribution(press_your_luck(FEBRUARY, score_unit=unit))
    assert outcomes.whammy == Fraction(1, 6)
    assert spin_again(outcomes) == Fraction(71, 243)
    assert outcomes.distinct == distinct
    if unit == "250":
        assert {kind: getattr(outcomes, kind) for kind in FEBRUARY_1985} == FEBRUARY_1985


def test_june_1984_has_the_chances_worked_out_by_hand():
    """Page: whammy .1687, plus a spin .2973.

    By hand, in slides of 54: whammies 9 and, by pick a corner (1 of 3) to square 1 (1 of 3), 1/9:
    82/9/54 = 41/243. Plus a spin 13, pick a corner to 15 (2 of 3) 2/9, go back 2 and big bucks to
    4 one each, move one from 9 to 8 1/2, from 14 to 15 1/3: 289/18/54 = 289/972.
    """
    outcomes = outcome_distribution(press_your_luck(JUNE))
    assert outcomes.whammy == Fraction(41, 243)
    assert spin_again(outcomes) == Fraction(289, 972)
    assert round(float(outcomes.whammy), 4) == 0.1687
    assert round(float(spin_again(outcomes)), 4) == 0.2973


def test_tiny_is_its_three_outcomes():
    """As the file lists them, in units of 500."""
    outcomes = outcome_distribution(press_your_luck(TINY))
    assert outcomes.whammy == Fraction(1, 6)
    assert outcomes.money == ((1, Fraction(1, 2)),)
    assert outcomes.spin == ((1, Fraction(1, 3)),)
    assert (outcomes.distinct, press_your_luck(TINY).cap_units) == (3, 6)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
@pytest.mark.parametrize("count", ["all", "3"])
def test_outcomes_are_ascending_and_sum_to_one(path, count):
    """Of every board that is here and solved."""
    if path.stem.endswith("-double") and count == "3":
        with pytest.raises(OptionError, match="3 cannot be mixed with 'double"):
            press_your_luck(path, outcomes=count)
        return
    outcomes = outcome_distribution(press_your_luck(path, outcomes=count))
    total = outcomes.whammy + sum(chance for _, chance in outcomes.money + outcomes.others)
    assert total + spin_again(outcomes) == 1
    for part in (outcomes.money, outcomes.spin):
        units = [unit for unit, _ in part]
        assert units == sorted(set(units))
        assert all(chance > 0 for _, chance in part)


@pytest.mark.parametrize(
    ("dollars", "unit", "units"),
    [(124, 250, 0), (125, 250, 1), (750, 500, 2), (1250, 500, 3), (500, 1000, 1), (2500, 1000, 3)],
)
def test_amounts_round_half_up(dollars, unit, units):
    """Not half to even: 1250 is 3 units of 500, and 2500 is 3 of 1000."""
    assert round_half_up(dollars, unit) == units
    assert round_half_up(Fraction(dollars), unit) == units


def test_an_amount_above_the_cap_counts_as_the_cap():
    """Scores saturate there, so the outcomes are one."""
    text = SMALL.replace("10000", "1000").replace('"1000" =', '"9000" =')
    outcomes = outcome_distribution(read(text))
    assert outcomes.money == ((1, Fraction(1, 4)), (2, Fraction(1, 4)))


def test_slides_lead_on_over_several_squares_and_round_the_board():
    """17: advance 2 -> 1 (past 18), 1: go back 1 -> 18. Whammies then are 17/54, by hand.

    All other slides are whammies or 1000. Square 18 is visited with 1/18 * (1 + 1/3 + 1/9), and
    has the only three 1000 slides, so money is 13/9/18 = 13/162.
    """
    rows = {n: ["whammy"] * 3 for n in range(1, 18)}
    rows[18] = [1000, 1000, 1000]
    rows[17][0], rows[1][2] = "advance 2", "go back 1"
    outcomes = outcome_distribution(read(board_text(rows)))
    assert outcomes.money == ((4, Fraction(13, 162)),)
    assert outcomes.whammy == Fraction(149, 162)


def test_a_corner_is_never_offered_to_itself():
    """From square 6 one of the corners 1, 10, 15 (page), from 2 one of all four: by hand.

    Money only on 6: visited with 1/18 * (1 + 1/3 * 1/4), two thirds of it money: 13/12/18 * 2/3.
    """
    rows = {n: ["whammy"] * 3 for n in range(1, 19)}
    rows[6] = [1000, 1000, "pick a corner"]
    places = "[places]\ncorners = [1, 6, 10, 15]"
    outcomes = outcome_distribution(read(board_text(rows, places)))
    assert outcomes.money == ((4, Fraction(2, 54)),)
    rows[2][0], rows[6] = "pick a corner", [1000, 1000, "whammy"]
    outcomes = outcome_distribution(read(board_text(rows, places)))
    assert outcomes.money == ((4, Fraction(13, 12 * 18) * Fraction(2, 3)),)


def test_across_leads_to_its_place():
    """17 to 8, as on the show from mid-1985: 8 holds all the money, visited with 1/18 * 4/3."""
    rows = {n: ["whammy"] * 3 for n in range(1, 19)}
    rows[17][1], rows[8] = "across", [250, 250, 250]
    outcomes = outcome_distribution(read(board_text(rows, "[places]\nacross = 8")))
    assert outcomes.money == ((1, Fraction(4, 54)),)


def test_spaces_and_capitals_in_a_slide_do_not_matter():
    """One slide, one canonical form."""
    loose = edited(FEBRUARY, '8 = ["500 + spin",', '8 = [" 500+SPIN",')
    assert board_hash(read(loose)) == board_hash(read_board(FEBRUARY))


# What the format holds and the solver refuses


def test_every_slide_of_the_show_is_held():
    """Written in any order, they come back as they were written."""
    written = [
        "prize", "prize + spin", "whammy", "move one", "pick a corner", "big bucks", "across",
        "go back 1", "advance 17", "double", "double + spin", "2000 or lose a whammy", "0",
        "to 2, 5", "lose a whammy", "1000 + 2 spins", "double + 3 spins",
    ]  # fmt: skip
    for slide in written:
        rows = {n: [1000] * 3 for n in range(1, 19)}
        rows[7][1] = slide
        places = "[places]\nbig_bucks = 4\ncorners = [1, 6, 10, 15]\nacross = 8"
        rules = "[rules]\nspin_cap = 9\n"
        board = read("prize_value = 2500\n" + board_text(rows, rules + places))
        assert str(board.squares[6][1]) == slide


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("1984-06-double", {(Effect(DOUBLES, 0, 1),): Fraction(1, 54)}),
        ("1985-02-double", {(Effect(DOUBLES, 0, 1),): Fraction(1, 54),
                            (Effect(PAYS, 8), Effect(MAY_LOSE)): Fraction(23, 972)}),
    ],
)  # fmt: skip
def test_slides_that_are_no_money_stand_apart_with_their_chances(name, others):
    """By hand: square 15 is lit, or one of three of pick a corner (a ninth of square 6), or one of
    two of move one (a sixth of square 14)..."""
    board = press_your_luck(BOARDS / f"{name}.toml")
    assert dict(outcome_distribution(board).others) == others


def test_money_or_a_whammy_less_may_always_be_the_money():
    path = BOARDS / "1985-02-double.toml"
    cash = outcome_distribution(press_your_luck(path, or_lose_whammy="cash"))
    assert [effects for effects, _ in cash.others] == [(Effect(DOUBLES, 0, 1),)]


def test_best_choices_are_lists_of_what_is_offered_clockwise():
    """By hand. Move one on square 9: 10 shows a prize and 8 one of three with a spin; so it offers
    two things whatever they show, as pick a corner does. On 14 its neighbours show the same in two
    cases of nine: 15 a prize, and 13 a prize or 2500."""
    others = dict(outcome_distribution(press_your_luck(FEBRUARY, choices="best")).others)
    assert sum(others.values()) == Fraction(1, 54) * (1 + 1 + Fraction(7, 9))
    prize = Effect(PAYS, 10)
    for units in (2, 3, 4):
        assert others[prize, Effect(PAYS, units, 1)] == Fraction(1, 18 * 3 * 3)


# Canonical form, hash and differences


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_boards_canonical_form_reads_back_through_json(path):
    """As it does through a table's head; the title is lost, and how a round begins."""
    board = read_board(path)
    assert board.title
    form = json.loads(json.dumps(canonical(board)))
    again = board_from_canonical(board.name, form)
    assert again == board.model_copy(update={"title": "", "start": None})
    assert canonical(again) == canonical(board)
    assert board_hash(again) == board_hash(board)


def test_a_head_edited_by_hand_is_one_sentence():
    """It goes through the same checks."""
    form = canonical(read_board(FEBRUARY))
    form["squares"]["4"][1] = None
    with pytest.raises(BoardError, match="board 1985-02: squares 4, slide 2: nothing is not a sli"):
        board_from_canonical("1985-02", form)


def test_the_hash_ignores_comments_title_name_and_order(tmp_path):
    """And defaults left out, and fractions not in lowest terms."""
    path = tmp_path / "other name.toml"
    path.write_text(
        """
[solve]
frontier = 3
score_cap = 3_000
score_unit = 500
[outcomes]
500 = "2/4"    # a comment
"500+spin" = "3/9"
whammy = "1/6"
""".replace("[solve]", 'title = "Other"\ngame = "press-your-luck"\n[solve]'),
        encoding="utf-8",
    )
    assert board_hash(read_board(path)) == board_hash(read_board(TINY))


def test_the_hash_changes_with_every_value():
    """Each line of February 1985 edited in turn, and no two give one hash."""
    edits = [(f"{n} = [", f"{n} = [999, 1000, 1001] #") for n in range(1, 19)]
    edits += [
        ("prize_value =", "prize_value = 2400 #"),
        ("big_bucks =", "big_bucks = 8 #"),
        ("corners =", "corners = [1, 10, 15] #"),
        ("corners =", "across = 8\ncorners ="),
        ("third_place_spins =", "third_place_spins = false #"),
        ("tied_pass =", "tied_pass = 'next' #"),
        ("choices =", "choices = 'best' #"),
        ("max_whammies =", "max_whammies = 3 #"),
        ("score_unit =", "score_unit = 200 #"),
        ("score_cap =", "score_cap = 30000 #"),
        ("frontier =", "frontier = 3 #"),
        ("outcomes =", "outcomes = 3 #"),
    ]
    hashes = {board_hash(read(edited(FEBRUARY, old, new))) for old, new in edits}
    assert len(hashes | {board_hash(read_board(FEBRUARY))}) == len(edits) + 1


def test_the_form_and_the_hash_of_tiny_stay_what_tables_on_disk_have():
    """Every default written out, no title, no name, sorted; SHA-256 of this form. A change here
    makes every table stale: it must be meant."""
    form = (
        '{"game":"press-your-luck","outcomes":{"500":"1/2","500 + spin":"1/3","whammy":"1/6"},'
        '"rules":{"choices":"random","max_whammies":4,"third_place_spins":true,'
        '"tied_pass":"passer"},"solve":{"frontier":3,"outcomes":"all","score_cap":3000,'
        '"score_unit":500}}'
    )
    board = read_board(TINY)
    assert json.dumps(canonical(board), separators=(",", ":")) == form
    assert hashlib.sha256(form.encode()).hexdigest() == HASH_OF_TINY == board_hash(board)


# printf '%s' '{"game":…}' | sha256sum, of the text above
HASH_OF_TINY = "704a3c5bdd07946b5e0472c3c7f29d1523171fb012d7c5aa1d9e3decf48e635a"


def test_differences_are_sentences_in_the_order_of_the_board():
    """Every kind of change at once."""
    text = edited(FEBRUARY, '4 = ["3000 + spin"', '4 = ["3500 + spin"')
    text = text.replace("10 = [", "10 = [100, 'prize', 'prize'] #").replace(
        "2 = [500,", "2 = [510,"
    )
    text = text.replace("big_bucks =", "across = 8\nbig_bucks =").replace(
        "[1, 6, 10, 15]", "[1, 6]"
    )
    board = read(text, score_unit="500")
    assert [*map(str, changes(canonical(read_board(FEBRUARY)), canonical(board)))] == [
        "across: was missing, now 8",
        "corners: was [1, 6, 10, 15], now [1, 6]",
        "decisions: was 4, now 8",
        "frontier: was 1, now 2",
        "score_unit: was 250, now 500",
        "squares 2, slide 1: was 500, now 510",
        "squares 4, slide 1: was '3000 + spin', now '3500 + spin'",
        "squares 10, slide 1: was 'prize', now 100",
        "squares 12, slide 1: was 500, now 510",
    ]


def test_a_section_that_came_or_went_is_one_sentence():
    """From squares to outcomes, and outcomes that came, went or changed."""
    february, tiny = canonical(read_board(FEBRUARY)), canonical(read_board(TINY))
    assert changes(february, february) == []
    text = [*map(str, changes(february, tiny))]
    assert "squares: is no longer in the board" in text
    assert "outcomes: is new in the board" in text
    other = json.loads(json.dumps(tiny))
    other["outcomes"] = {"500": "1/3", "1000": "1/3", "whammy": "1/3"}
    assert [*map(str, changes(tiny, other))] == [
        "outcomes, '500': was '1/2', now '1/3'",
        "outcomes, '1000': was missing, now '1/3'",
        "outcomes, '500 + spin': was '1/3', now missing",
        "outcomes, 'whammy': was '1/6', now '1/3'",
    ]


def test_a_board_is_a_value(tmp_path):
    """Frozen, hashable, picklable, named after its file, and the same wherever that was."""
    board = read_board(FEBRUARY)
    assert (board.name, board.game) == ("1985-02", "press-your-luck")
    assert pickle.loads(pickle.dumps(board)) == board
    shutil.copy(FEBRUARY, tmp_path)
    copy = read_board(tmp_path / FEBRUARY.name)
    assert {board: 1}[copy] == 1 and copy.source != board.source
    with pytest.raises(ValueError, match="frozen"):
        board.name = "other"


# --- several grids --------------------------------------------------------------------------------


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
