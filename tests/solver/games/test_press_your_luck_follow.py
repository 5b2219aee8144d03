"""Press Your Luck in words: every edge of the rules can be said and leads where the rules lead, and
what can not be is refused with what would be right."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from luckbase.solver.errors import StateError
from luckbase.solver.game.capabilities import Follow
from luckbase.solver.search.expand import expand
from tests.solver.board.board_files import FEBRUARY, press_your_luck, read
from tests.solver.games.test_press_your_luck_slides import UNIT, boards
from tests.solving import load_game

NAMES = ("Ed", "Big Peter", "Michael")
SLIDES = """
game = "press-your-luck"
[squares]
1 = [500, "double + spin", "2000 or lose a whammy"]
2 = ["lose a whammy", "1000 + 2 spins", "move one"]
3 = ["whammy", "750 + spin", 1000]
4 = ["whammy", "double", 500]
[rules]
choices = "best"
spin_cap = 4
[solve]
score_unit = 250
score_cap = 4000
"""


def told(of, line, *more):
    """Where a line that says who has what, and those after it, lead."""
    at = of.begin(line)
    for each in more:
        at = of.read(at, each)[1]
    return at


def february():
    return load_game(press_your_luck(FEBRUARY)).need(Follow)


SENTENCES = [
    # Ed's part; dollars, earned spins, passed spins, whammies
    ("Ed $5,000, 2 spins", (5000, 2, 0, 0)),
    ("Ed: 5000, 2 spins", (5000, 2, 0, 0)),
    ("Ed 2 spins 5000", (5000, 2, 0, 0)),
    ("Ed 5k, 2 spins", (5000, 2, 0, 0)),
    ("Ed 5.5K, 2 spins", (5500, 2, 0, 0)),
    ("Ed 5000, 2", (5000, 2, 0, 0)),
    ("Ed 5000, 2 earned spins", (5000, 2, 0, 0)),
    ("Ed 5000 and 2 spins", (5000, 2, 0, 0)),
    ("Ed 5000, 2 spins and 1 whammy", (5000, 2, 0, 1)),
    ("Ed 5000, 2 Spins, 1 Whammy", (5000, 2, 0, 1)),
    ("Ed 5000, 2 passed spins", (5000, 0, 2, 0)),
    ("Ed 5000, 1 spin, 2 passed spins, 3 whammies", (5000, 1, 2, 3)),
    ("Ed 3 whammies, 1 spin", (0, 1, 0, 3)),
    ("Ed 2 spins", (0, 2, 0, 0)),
    ("Ed out", (0, 0, 0, 4)),
    ("Ed", (0, 0, 0, 0)),
    ("Big Ed 5000, 2 spins", (5000, 2, 0, 0)),
    ("player 1 5000, 2 spins", (5000, 2, 0, 0)),
    ("R2 D2 500, 1 spin", (500, 1, 0, 0)),
    ("Ed 0, 4 spins,", (0, 4, 0, 0)),
    ("  Ed   250 ,1 spin ", (250, 1, 0, 0)),
    ("Ed 20,000, 10 spins", (20000, 10, 0, 0)),
]


@pytest.mark.parametrize(("part", "expected"), SENTENCES)
def test_a_sentence_is_understood_as_people_write_it(part, expected):
    at = february().begin(f"{part}; Peter 8000, 1 spin; Michael 3000")
    assert tuple(at.values.reshape(-1, 3)[:4, 0].tolist()) == expected
    assert at.names[1:] == ("Peter", "Michael") and ":" not in at.names[0]
    dollars = any(word in part for word in ("0", "5k", "5.5K"))
    assert at.assumed == (() if dollars else (f"{at.names[0]}'s dollars",))


def test_a_score_between_grid_states_has_weights_of_its_neighbors():
    words = february()
    at = words.begin("Ed 5100, 2 spins; Peter 8000; Michael 25000")
    unit = words.board.solve.score_unit
    low, share = 5100 // unit * unit, 5100 % unit / unit
    weights, states, between = words.neighbors(at)
    assert weights.tolist() == pytest.approx([1 - share, share])
    described = [words.game.describe(state)["scores"] for state in states]
    assert described == [[low, 8000, 20000], [low + unit, 8000, 20000]]
    assert between == f"Ed between ${low:,} and ${low + unit:,}"
    weights, _, between = words.neighbors(words.begin(f"Ed {unit}, 1; Peter 0; Michael 0"))
    assert weights.tolist() == [1] and not between


@settings(max_examples=60)
@given(made=boards())
def test_what_can_be_said_is_what_the_rules_lead_to(made):
    game, words = made.game, made.game.need(Follow)
    named = dict(zip(("scores", "earned", "passed", "whammies"), made.state, strict=True))
    named["scores"] = tuple(UNIT * score for score in named["scores"])

    def key(state):
        """Lists of slides that say the same are the same: what nobody can take is not said."""
        offered = state.size > 12 and state[12] > 0
        remaining = words.lines(words.place(NAMES, state)) if offered else ()
        return state[:12].tobytes(), *remaining

    def called(action):
        """A slide that takes a whammy and one that may are two actions of one name."""
        return game.action_name(int(action))

    todo = [game.parse(named)]
    for state in todo:
        edges = expand(game, state.reshape(1, -1))
        offers = [] if state.size < 13 else edges.children[edges.children[:, 12] > 0]
        if len(todo) == 1:
            todo += list(offers[:2])
        taken = [expand(game, each.reshape(1, -1)).children for each in offers]
        at, reached = words.place(NAMES, state), set[tuple[str, tuple[object, ...]]]()
        for line in words.lines(at):
            event, after = words.read(at, line)
            assert words.read(at, event.text)[1].state.tobytes() == after.state.tobytes()
            reached.add((called(event.action), key(after.state)))
        rows = zip(edges.actions, edges.children, edges.weights, strict=True)
        own = {(called(action), key(child)) for action, child, weight in rows if weight}
        assert own <= reached
        if at.up >= 0 and state[at.up] == game.board.solve.score_cap // UNIT:
            continue  # there the rules only pass, and a person may still play
        assert reached - own <= {(called(0), key(child)) for each in taken for child in each}


@given(
    st.lists(st.integers(0, 99_999), min_size=3, max_size=3),
    st.lists(st.integers(0, 5), min_size=6, max_size=6),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_who_has_what_reads_as_it_is_written(scores, spins, whammies):
    assume(any(spins))  # else the game is over, and a sentence asks who has spins
    words, values = february(), np.array([*scores, *spins, *whammies])
    parts = [
        f"{name} ${scores[i]:,}, {spins[i]} spins, {spins[i + 3]} passed, {whammies[i]} whammies"
        for i, name in enumerate(NAMES)
    ]
    at = told(words, "; ".join(parts))
    assert at.values.tolist() == values.tolist()
    again = told(words, words.say(at))
    assert (again.names, again.values.tolist()) == (at.names, at.values.tolist())


def test_dollars_are_kept_and_the_state_counts_in_units():
    words = february()
    at = told(words, "Ed 110, 2; Big Peter 0; Michael 0", "ed $1,400", "Ed prize 2636")
    assert words.say(at).startswith("Ed $4,146; ")
    assert at.state[0] == 17, "4,146 is 4,250 in units of 250"
    assert words.note(told(words, "Ed 19000, 1; Peter 0; Michael 0", "Ed 5000 and a spin"))


def test_whammies_are_kept_that_no_state_needs():
    words = february()
    at = told(words, "Ed 500, 1; Peter 0, 0, 2 whammies; Michael 0", "Ed hits a whammy.")
    assert words.say(at) == "Ed $0, 1 whammy; Peter $0, 2 whammies; Michael $0"
    assert at.state[9:].tolist() == [0, 0, 0]


def test_passed_spins_left_after_a_whammy_are_earned():
    at = told(february(), "Ed 500, 1; Peter 700; Michael 0, 2 passed", "Ed passes", "Pe 500 + spin",
              "peter passes 1 to ed", "Ed 750", "mich whammy")  # fmt: skip
    assert at.values[3:9].tolist() == [0, 0, 1, 0, 0, 0]


def test_slides_of_every_kind_are_said():
    words = load_game(read(SLIDES)).need(Follow)
    start = "Ed 1000, 2 spins, 2 whammies; Peter 0; Michael 0"
    at = told(words, start, "Ed double + spin")
    assert at.values[[0, 3]].tolist() == [2000, 2]
    assert told(words, start, "Ed loses a whammy").values[9] == 1
    assert told(words, start, "Ed 1000 + 2 spins").values[3] == 3
    assert told(words, start, "Ed double").values[0] == 2000
    chosen = told(words, start, "Ed may take 2000 or lose a whammy", "Ed takes lose a whammy")
    assert (chosen.values[9], chosen.values[0], chosen.up) == (1, 1000, 0)
    right = "Ed has no such choice; expected Ed takes 2000 or Ed takes lose a whammy$"
    for line in ("Ed takes 7", "Ed takes double", "Ed laughs", "Ed may take 2000 or lose a whammy"):
        with pytest.raises(StateError, match=right):
            told(words, start, "Ed may take 2000 or lose a whammy", line)


def test_a_prize_without_dollars_shows_what_it_is_assumed_to_pay():
    words = february()
    event, _ = words.read(words.begin("Ed 0, 4; Peter 0; Michael 0"), "Ed prize")
    assert event.text == f"Ed prize {words.board.prize_value}"


def test_a_line_of_one_player_does_not_say_who_has_what():
    assert february().begin("Ed 0, 4") is None
