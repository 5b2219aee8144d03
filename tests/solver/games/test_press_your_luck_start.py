"""How a round of Press Your Luck begins: the spins that questions give, and in which order players
stand."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.solver.board.model import canonical, rules_identity
from luckbase.solver.errors import GameError, MissingTableError, OptionError, SearchLimitError
from luckbase.solver.games.press_your_luck.outcomes import Start
from tests.reference.quiz import courses
from tests.solver.board.board_files import FEBRUARY, SMALL, TINY, press_your_luck, read
from tests.solver.games.press_your_luck import reference_of
from tests.solving import load_board, load_game

chances = st.fractions(0, 1, max_denominator=5)


@st.composite
def quizzes(draw):
    players = draw(st.integers(2, 3))
    parts = draw(st.lists(st.integers(0, 3), min_size=players + 1, max_size=players + 1))
    buzzes = [f"{part}/{sum(parts)}" for part in parts[:-1]] if sum(parts) else None
    answer = st.integers(0, 5)
    return Start(
        scores=[100 * player for player in range(players)],
        questions=draw(st.integers(0, 2)),
        buzz_spins=draw(answer),
        choice_spins=draw(answer),
        **({"buzzes": buzzes} if buzzes else {}),
        buzz_right=str(draw(chances)),
        choice_right=str(draw(chances)),
    )


@given(quizzes())
@settings(max_examples=25, deadline=None)
def test_what_questions_give_is_what_all_their_courses_give(quiz):
    players = len(quiz.scores)
    likely = quiz.buzzes or [Fraction(1, players)] * players
    right = courses(
        quiz.questions, likely, quiz.buzz_right, quiz.choice_right, quiz.buzz_spins,
        quiz.choice_spins,
    )  # fmt: skip
    assert quiz.earned() == right
    assert sum(right.values()) == 1


def test_the_shows_four_questions():
    earned = press_your_luck(FEBRUARY).start.earned()
    assert len(earned) == 1042 and sum(earned.values()) == 1
    assert sum(sum(spins) * chance for spins, chance in earned.items()) == Fraction(68, 5)
    all_right = Fraction(3, 5) * Fraction(4, 5) ** 2
    assert sum(c for spins, c in earned.items() if sum(spins) == 20) == all_right**4
    assert max(max(spins) for spins in earned) == 12
    assert earned[12, 0, 0] == (Fraction(1, 3) * Fraction(3, 5) / 25) ** 4
    assert earned[3, 5, 5] == earned[5, 3, 5] == earned[5, 5, 3]


def test_of_equal_scores_the_one_with_fewer_spins_plays_first_then_the_left_one():
    start = Start(scores=(500, 500, 900), spins=(3, 1, 2), whammies=(1, 2, 0))
    assert list(start.states()) == [
        (1, {"scores": (500, 500, 900), "earned": (1, 3, 2), "whammies": (2, 1, 0)})
    ]
    level = Start(scores=(500, 500, 900), spins=(1, 1, 0), whammies=(1, 2, 0))
    assert next(level.states())[1]["whammies"] == (1, 2, 0)
    quiz = Start(scores=(0, 0, 0), questions=1)
    for chance, state in quiz.states():
        assert all(a <= b for a, b in pairwise(state["earned"])) and chance > 0


def test_starts_are_canonical_on_the_grid_and_each_once():
    game = load_game(press_your_luck(FEBRUARY, score_unit="1000", score_cap="3000"))
    text = [game.describe(state) for _, state in game.starts()]
    assert {tuple(words["scores"]) for words in text} == {(2000, 3000, 3000)}
    assert len({str(words) for words in text}) == len(text) == 1042
    result = [chance for chance, _ in game.starts()]
    assert sum(result) == pytest.approx(1, abs=1e-14) and result == sorted(result, reverse=True)
    assert game.start() is None
    late = "[start]\nscores = [0, 0, 0]\nspins = [1, 0, 0]\nwhammies = [2, 0, 0]\n[solve]"
    game = load_game(read(SMALL.replace("[solve]", late)))
    ((chance, only),) = game.starts()
    assert chance == 1 and game.start().tolist() == only.tolist()
    assert game.describe(only)["whammies"] == [0, 0, 0]  # two more can put nobody out


def test_how_a_round_begins_is_no_part_of_the_rules():
    board = load_board(TINY)
    bare = board.model_copy(update={"start": None})
    assert rules_identity(load_game(board)) == rules_identity(load_game(bare)) == "73147780c9f1"
    assert canonical(board) == canonical(bare)
    assert load_game(bare).starts() == []


def test_a_start_of_another_number_of_players_is_left_out_and_who_plays_hears_why():
    two = load_board(TINY, players=2)
    assert two.start == load_board(TINY).start and load_game(two).starts() == []
    text = r"board tiny: \[start\] has scores of 3 players, and players is 2; say where to start"
    for begin in (luckbase.play, luckbase.evaluate):
        with pytest.raises(OptionError, match=text):
            begin(two)
    assert luckbase.play(two, {"scores": (0, 500), "earned": (1, 0)}).names


def test_chances_of_starts_that_are_none_are_refused():
    from dataclasses import replace

    game = load_game(load_board(TINY))
    state = {"scores": (0, 0, 0), "earned": (1, 0, 0)}
    for starts in ([(0.5, state)], [], [(1.5, state), (-0.5, {**state, "earned": (2, 0, 0)})]):
        other = type(game)(game.board, replace(game.rules, start=starts))
        with pytest.raises(GameError, match=r"chances in Rules.start=…. add up to .*; expected 1"):
            other.starts()


# --- plays that begin there ----------------------------------------------------------------------


def test_the_payoff_from_the_start_is_the_references_expected_over_all_courses():
    board = press_your_luck(TINY)
    reference, right = reference_of(load_game(board)), np.zeros(3)
    for spins, chance in courses(1, [Fraction(1, 3)] * 3, *[Fraction(3, 4)] * 2, 1, 1).items():
        value = reference.value((0, 1, 2), spins, (0, 0, 0), (0, 0, 0))
        right += float(chance) * np.array([float(x) for x in value])
    assert luckbase.evaluate(board).value == pytest.approx(right.tolist(), abs=1e-12)


def test_simulated_games_begin_as_often_in_each_start_as_they_should():
    played = luckbase.evaluate(TINY, "random", games=60_000, seed=7)
    right = luckbase.evaluate(TINY, "random").value
    for mean, error, exact in zip(played.value, played.stderr, right, strict=True):
        assert abs(mean - exact) < 5 * error < 0.02


def test_a_play_draws_its_start_and_who_plays_has_something_to_decide():
    drawn = set()
    for seed in range(12):
        with luckbase.play(TINY, seed=seed) as play, luckbase.play(TINY, seed=seed) as again:
            assert play.state.tolist() == again.state.tolist()
            text = play.game.describe(play.state)
            assert text["scores"] == [0, 500, 1000] and sum(text["earned"]) > 0
            drawn.add(str(text["earned"]))
            assert text["earned"][play.person] == 1
    assert len(drawn) > 3


def test_a_search_of_all_starts_stops_at_its_limit_in_one_sentence(tmp_path):
    for ask in (luckbase.evaluate, luckbase.play):
        with pytest.raises(SearchLimitError, match=r"has found .* the limit is 1,000") as raised:
            ask(FEBRUARY, max_states=1000)
        assert "\n" not in str(raised.value)
    board = load_board(TINY, frontier=1)
    luckbase.solve(board, results=tmp_path)
    with luckbase.open(board, results=tmp_path) as table:
        assert len(table.game.starts()) == 8  # as its board file says
        with pytest.raises(MissingTableError, match="the table covers 1; solve with frontier="):
            luckbase.evaluate(board, table)
        assert 0 < luckbase.evaluate(board, table, games=100).starts < 1  # of what it reaches
        for seed in range(6):  # of those that the table prices
            assert sum(table.play(seed=seed).shown["earned"]) == 1
    with luckbase.play(board, results=tmp_path, seed=0) as play:
        assert sum(play.shown["earned"]) == 1 and play.table.source.startswith("the table of tiny")
