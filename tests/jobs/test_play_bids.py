"""`luckbase play` where both choose at once: scripted persons, costs from exact matrix games."""

import re
from contextlib import suppress

import numpy as np
import pytest

from luckbase.cluster.inputs import search_below, table_for_play
from luckbase.cluster.play.game import Play, Question, matrix_game_of
from luckbase.solver.game.capabilities import Agents, detailed, plain, simplify
from luckbase.solver.search import bellman
from tests import solving
from tests.jobs.test_play import every_way, seats_of, worth_of
from tests.places import BOARDS
from tests.reference import goofspiel, matrix_game

POINTS = str(BOARDS / "goofspiel/points.toml")
SMALL = [POINTS, "--set", "cards=5"]
STATE = ["mine=1,3,5", "theirs=2,3,4", "deck=1,4,5", "upcard=4"]


@pytest.fixture
def stored(table_of):
    return table_of(POINTS, cards=5)


def the_game(cards, objective="points"):
    board = solving.load_board(POINTS, cards=cards, objective=objective)
    return detailed(solving.load_game(board))


def every_talk(start):
    """Every way that cards, the other's bids and the person's own can fall; the first two's chance,
    and the play, played to its end."""

    def go(take):
        play, given = start(take), None
        talk = play.talk()
        with suppress(StopIteration):
            while True:
                said = talk.send(given)
                given = None
                if isinstance(said, Question):
                    names = said.prompt.removesuffix("? ").split(", ")
                    given = names[take(np.ones(len(names)), False)]
        return play

    return every_way(go)


# --- what bids cost ----------------------------------------------------------------------------


@pytest.mark.parametrize(("objective", "person"), [("points", 0), ("win", 1)])
def test_every_bid_of_three_cards_costs_what_the_exact_matrix_game_says(objective, person):
    """The games in fractions (`tests.reference.goofspiel`); the other's lottery is proved there to
    be optimal, and the cost is the value less the payoff of the pure bid against it."""
    game, win = the_game(3, objective), objective == "win"
    root = game.start()
    values, seats = worth_of(game, root), seats_of(game, person, "random")
    plays = list(every_talk(lambda draw: Play(game, root, values, seats, person, draw)))
    assert sum(len(play.decisions) for _, play in plays) > 100
    seen = 0
    for _, play in plays:
        assert play.over
        for decision in play.decisions:
            said = {name: str(held).strip("[]") for name, held in decision.state.items()}
            mine, theirs, deck = (decision.state[name] for name in ("mine", "theirs", "deck"))
            lead = decision.state.get("lead", 0)
            sets = frozenset(mine), frozenset(theirs), frozenset(deck)
            exact = goofspiel.game(*sets, decision.state["upcard"], win, lead)
            value, *_ = matrix_game.solve(exact)
            state = game.own(Agents).as_seen_by(person, game.parse(said))
            at = matrix_game_of(game, state, _edges(game, state), values)
            a, y = np.array(exact, float), at.lotteries[1 - person]
            against = a @ y
            assert against.max() == pytest.approx(float(value), abs=1e-9)  # y is optimal
            row = at.names[person].index(decision.action)
            lost = float(value) - against[row]
            assert decision.cost == pytest.approx(max(lost, 0.0), abs=1e-9)
            assert decision.cost == 0 or decision.cost > 1e-9
            seen += decision.cost > 0
    assert seen > 10


def _edges(game, state):
    return bellman.expand(game, state.reshape(1, -1))


def test_a_table_tiers_and_a_search_say_the_same(stored):
    game = the_game(5)
    for words in (
        {"mine": "1,3,5", "theirs": "2,3,4", "deck": "1,4,5", "upcard": "4"},
        {"mine": "1,2,3,4", "theirs": "1,2,3,5", "deck": "1,2,4,5", "upcard": "2"},
    ):
        root = game.parse(words)
        edges = _edges(game, root)
        with table_for_play(game, root, stored.parents[2], 1_000) as table:
            assert table.in_files
            found = [table.action_values(edges).values]
        bare = plain(game)
        simple = simplify(bare, root[None])[0]
        search = search_below(bare, simple, 1_000_000)
        found += [one.action_values(edges).values for one in (worth_of(game, root), search)]
        assert found[1] == pytest.approx(found[0], abs=1e-9)
        assert found[2] == pytest.approx(found[0], abs=1e-9)


# --- the talk ----------------------------------------------------------------------------------


def test_a_scripted_game_keeps_the_persons_own_cards(played):
    lines = ["?", "9", "bid 3", "1", "2", "5", "4"]
    code, out, err = played(*SMALL, "--seed", "3", lines=lines)
    assert (code, err) == (0, "")
    assert "you are player 1 against player 2 (optimal)\npayoffs are from all tiers" in out
    assert "\nwrite a name, or how it ends" in out
    assert "\n  upcard 1\nyou and player 2 (optimal) choose at once: mine=1,2,3,4,5 theirs=" in out
    assert re.search(r"\n    bid 4 +-1\.68  costs 1\.7 points +chance 0\.0%\n", out)
    assert "'9' is not one of these" in out
    assert "  you: bid 3, player 2 (optimal): bid 2; you get 1\n  upcard 4\n" in out
    assert "choose at once: mine=1,2,4,5 theirs=1,3,4,5 deck=2,3,4,5 upcard=4\n" in out
    assert "the game is over\npoints ahead: you -5, player 2 (optimal) 5\n" in out
    assert "mine=4,5 theirs=4,5 deck=2,5 upcard=2" in out and "they cost 3.0 points in all" in out
    assert played(*SMALL, "--seed", "3", lines=lines)[1] == out


def test_as_player_2_the_fields_and_the_lead_are_his_own(played):
    words = [*SMALL, "--set", "objective=win", "--as", "2", "--seed", "3", "--hints"]
    code, out, _ = played(*words, *STATE, "lead=-2", lines=["3", "1", "5"])
    assert code == 0
    assert "you and player 1 (optimal) choose at once: mine=1,3,5 theirs=2,3,4 deck=1,4,5 " in out
    assert "upcard=4 lead=-2\n  chance to finish ahead: 50.0% for optimal" in out  # without asking
    assert "\nbid 1, bid 3, bid 5? 3\n  you: bid 3, player 1 (optimal): bid " in out
    assert "you win" in out or "wins" in out or "a draw" in out
    assert "you get" not in out  # the lead says it


@pytest.mark.parametrize(
    ("agent", "bid"), [("match", "bid 4; you lose 4"), ("points-optimal", "bid "), ("TABLE", "bid")]
)
def test_named_agents_and_tables_bid_too(played, stored, agent, bid):
    """`match` looks at the cards of their hand, which a play keeps."""
    against = str(stored) if agent == "TABLE" else agent
    code, out, _ = played(*SMALL, *STATE, "--against", against, "--seed", "1", lines="111")
    assert code == 0 and f"you: bid 1, player 2 ({against}): {bid}" in out


def test_a_play_on_a_kept_board_is_that_of_the_board(played):
    """keep_cards changes what agents see, and a play shows the cards anyway."""
    words, lines = [*SMALL, *STATE, "--seed", "1"], ["3", "1", "5"]
    plain, kept = (
        played(*words, *more, lines=lines)[1].partition("\n")[2]  # but for the board's name
        for more in ((), ("--set", "keep_cards=true"))
    )
    assert plain == kept and "the game is over" in plain
