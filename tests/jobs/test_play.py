"""`luckbase play`: scripted persons, with a terminal and without one."""

import io
import re
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import luckbase
import tests.games.climb  # registers the game
from luckbase.cluster.answers.table import Table
from luckbase.cluster.inputs import search_below, table_for_play
from luckbase.cluster.play.agents import Seat, opponents
from luckbase.cluster.play.game import Play, Question, read_answer
from luckbase.jobs.app import run
from luckbase.solver.errors import MissingTableError
from luckbase.solver.game.capabilities import Agents, detailed, plain, simplify
from luckbase.solver.policies.evaluate import evaluate_profile
from luckbase.solver.search import bellman
from luckbase.solver.search.bellman import choose
from luckbase.solver.search.expand import expand
from tests import solving
from tests.places import BOARDS
from tests.reference import goofspiel, matrix_game

JACKPOT, PIG = str(BOARDS / "jackpot/tiny.toml"), str(BOARDS / "pig/tiny.toml")
SKUNK, ROUNDS = str(BOARDS / "skunk/tiny.toml"), str(BOARDS / "pig/rounds.toml")
TINY, BIG = (str(BOARDS / f"press-your-luck/{name}.toml") for name in ("tiny", "1985-02"))


@pytest.fixture
def played(command, monkeypatch, tmp_path):
    """Runs `play` with lines on stdin: exit code, stdout, stderr."""

    def call(*words, lines=()):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(line + "\n" for line in lines)))
        return command("play", *words, "--results", tmp_path / "results")

    return call


def worth_of(game, root):
    return table_for_play(game, root, Path("nowhere"), 1_000_000)


def seats_of(game, person, against=None):
    found = opponents(game, against)
    return [*found[:person], Seat("you"), *found[person:]]


def every_way(go):
    """(chance, result) of go(take) for every way that its calls of take(chances) -> index can fall;
    take(chances, False) counts for no chance."""
    path = []
    while True:
        step = 0

        def take(chances, by_chance=True):
            nonlocal step
            if step == len(path):
                path.append((int(np.flatnonzero(chances)[0]), chances, by_chance))
            step += 1
            return path[step - 1][0]

        result = go(take)
        yield float(np.prod([chances[i] for i, chances, luck in path if luck])), result
        while path and not path[-1][1][path[-1][0] + 1 :].any():
            path.pop()
        if not path:
            return
        at, chances, luck = path.pop()
        path.append((at + 1 + int(np.flatnonzero(chances[at + 1 :])[0]), chances, luck))


def every_play(start, answer):
    """Every way that the dice can fall, with its chance: the play, played to its end."""

    def go(take):
        play = start(take)
        play.through(answer)
        return play

    return every_way(go)


def the_first(play):
    return "1"


def the_last(play):
    return str(len(set(play.edges.actions.tolist())))


def the_best(play):
    q = play.table.action_values(play.edges)
    return str(1 + choose(q.values, play.person, play.table.tolerance))


# --- what decisions cost -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "person", "takes"),
    [
        ('game = "jackpot"\nrules = {tiles = 5, dice = 1, sides = 5, allowed = "sum"}', 0, "last"),
        ('game = "climb"\nrules = {summit = 8, rounds = 2, sides = 4}', 0, "first"),
        ('game = "climb"\nrules = {summit = 8, rounds = 2, sides = 4}', 1, "first"),
        ('game = "climb"\nrules = {summit = 8, rounds = 2, sides = 4}', 1, "best"),
    ],
)
def test_the_costs_of_all_plays_add_up_to_what_the_script_loses(tmp_path, text, person, takes):
    """Against optimal opponents: exact payoff of the best play minus that of the script."""
    file = tmp_path / "small.toml"
    file.write_text(text)
    game = solving.load_game(solving.load_board(file))
    root, answer = game.start(), {"last": the_last, "first": the_first, "best": the_best}[takes]
    values, seats = worth_of(game, root), seats_of(game, person)
    chance, cost, paid = 0.0, 0.0, np.zeros(game.players)
    for weight, play in every_play(
        lambda draw: Play(game, root, values, seats, person, draw), answer
    ):
        assert play.over
        chance += weight
        paid += weight * play.returns
        cost += weight * sum(decision.cost for decision in play.decisions)
    profile = ["optimal"] * game.players
    best = evaluate_profile(game, root, profile).value
    if takes != "best":
        profile[person] = lambda game, player, state, actions: (
            len(actions) - 1 if takes == "last" else 0
        )
    script = evaluate_profile(game, root, profile).value
    assert chance == pytest.approx(1, abs=1e-12)
    assert paid == pytest.approx(script, abs=1e-12)
    assert cost == pytest.approx(best[person] - script[person], abs=1e-12)
    assert cost == 0 if takes == "best" else cost > 1e-3


def test_in_one_round_to_stick_at_once_costs_the_whole_game(played):
    """pig.md, n = 1: player 1 wins with .281521160783; with nothing on the board he never does."""
    words = [ROUNDS, "--set", "rounds=1", "--set", "cut=300", "--seed", "1"]
    code, out, _ = played(*words, lines=["s"])
    assert code == 0 and "player 2 (optimal) wins" in out
    assert "1 decision, 1 not the best; they cost 28 points in all" in out


def test_tiers_and_search_say_the_same():
    game = solving.load_game(solving.load_board(ROUNDS, rounds=2, cut=40))
    tiers, search = worth_of(game, game.start()), search_below(game, game.start(), 1_000_000)
    assert game.cut_error > 0.1  # which both make: numbers above 40 count as 40
    assert tiers.error > game.cut_error and search.error == game.cut_error + 1e-12
    for words in (
        {"mine": "0", "yours": "0"},
        {"mine": "0", "yours": "12", "turn": "9", "round": "2"},
    ):
        edges = expand(game, game.parse(words).reshape(1, -1))
        right = search.action_values(edges).values
        assert tiers.action_values(edges).values == pytest.approx(right, abs=1e-12)


def test_a_table_of_this_very_board_is_asked_and_no_other(tmp_path, monkeypatch):
    """Of these rules, however far the board file reaches; what does not do is closed."""
    assert run(["solve", TINY, "--set", "frontier=2", "--results", str(tmp_path)]) == 0
    found, closed = [], []
    monkeypatch.setattr(Table, "close", lambda self: closed.append(self.in_files))
    for options, spins in (
        ({"frontier": 2}, "0,1,1"), ({"frontier": 2}, "0,2,1"), ({"frontier": 1}, "0,1,0"),
        ({"frontier": 2, "tied_pass": "next"}, "0,1,1"),
    ):  # fmt: skip
        game = solving.load_game(solving.load_board(TINY, **options))
        root = game.parse({"scores": "0,1000,500", "earned": spins})
        with table_for_play(game, root, tmp_path, 1_000_000) as table:
            found.append(table.error > 1e-12)
            search = worth_of(game, root).action_values
            edges = expand(game, root.reshape(1, -1))
            right = search(edges).values
            assert table.action_values(edges).values == pytest.approx(right, abs=1e-7)
    assert found == [True, False, True, False]
    assert sum(closed) == 3  # the two that priced, and the one that does not hold the root


def test_a_table_of_what_lies_below_a_state_is_asked_there(tmp_path, capsys, played):
    words = ["scores=0,1000,500", "earned=0,2,1"]
    few = ["--max-states", "3", "--as", "2", "--seed", "1"]
    code, _, err = played(TINY, *words, *few)
    said = re.search(r"solve a table first: luckbase (solve .*)", err)
    assert code == 2 and said and err.count("\n") == 1
    assert run([*said[1].split(), "--results", str(tmp_path / "results")]) == 0
    capsys.readouterr()
    code, out, _ = played(TINY, *words, *few, lines=["1"] * 9)
    assert code == 0 and "the game is over" in out


def test_a_table_of_other_states_is_left_aside(tmp_path, capsys, played):
    """Of several starts one may be over, whose payoff any table knows; no play begins there."""
    lower = ["scores=0,1000,500", "earned=0,1,0"]
    assert run(["solve", TINY, "--from", *lower, "--results", str(tmp_path / "results")]) == 0
    capsys.readouterr()
    code, out, _ = played(TINY, "--seed", "1", lines=["q"])
    assert code == 0 and "payoffs are from a search of all that lies below" in out
    code, _, err = played(TINY, "--max-states", "3", "--seed", "1")
    assert code == 2 and f", or solve a table first: luckbase solve {TINY}\n" in err
    with luckbase.open(TINY, results=tmp_path / "results") as table:
        with pytest.raises(MissingTableError, match="is not below this table's roots; say where"):
            table.play()
        assert table.play({"scores": (0, 1000, 500), "earned": (0, 1, 0)}).names


# --- the talk ----------------------------------------------------------------------------------


def test_a_scripted_game_of_pig(played):
    lines = ["what", "?", "r", *["hold"] * 30]
    code, out, err = played(PIG, "--against", "hold-at-5", "--seed", "3", lines=lines)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == (
        "Pig, one die, first to 20, seed 3: you are player 1 against player 2 (hold-at-5)"
    )
    assert "'what' is not one of these; write a name" in out
    assert re.search(r"^    hold  \d+\.\d%  costs [\d.]+ points$", out, re.MULTILINE)
    assert re.search(r"^    roll  \d+\.\d%  best$", out, re.MULTILINE)
    assert "player 2 (hold-at-5) is up: mine=0 yours=" in out
    assert re.search(r"^  hold: mine \d+ -> \d+, turn \d+ -> 0$", out, re.MULTILINE)
    counts = r"\d+ decisions, \d+ not the best; they cost [\d.]+ points in all"
    assert re.search(counts, lines[-1])


def test_mixed_agents_look_at_the_rolls_of_the_turn(played):
    """The blog's computer of Pig sticks by chance."""
    words = [PIG, "--set", "count_rolls=true", "--against", "computer", "--hints"]
    answers = ["r", "r", "h"] * 30
    code, out, _ = played(*words, "--seed", "2", lines=answers)
    assert code == 0 and "player 2 (computer) is up" in out and "rolls 0 -> 1" in out
    assert "chance to win, at mine=0" in out  # without asking


def test_three_players_and_where_the_person_sits(played):
    words = [TINY, "scores=0,1000,500", "earned=2,1,1", "--as", "2", "--seed", "3"]
    code, out, _ = played(*words, "--against", "never-pass,random", lines=["p", "play"] * 9)
    assert code == 0
    assert "you are player 2 against player 1 (never-pass) and player 3 (random)" in out
    assert "you are up: scores=" in out and "player 1 (never-pass) is up: scores=0,1000" in out
    assert "'p' is not one of these; write a name, the beginning of just one" in out  # play, pass
    assert re.search(r"^  play: (whammy!|\$\d+.*) \(player \d: scores \d+ -> ", out, re.MULTILINE)
    assert "you win" in out or "wins" in out or "chance to win: " in out


def test_one_player_plays_alone_and_is_told_the_seed_that_was_taken(played):
    code, out, _ = played(JACKPOT, lines=["1"] * 9)
    seed = re.search(r"seed (\d+): you play alone", out)
    assert code == 0 and "you are up: open=1,2,3,4\n  roll 1 die: a " in out
    assert ("you win" in out) != ("you lose" in out)
    assert played(JACKPOT, "--seed", seed[1], lines=["1"] * 9)[1] == out


def test_leaving_and_the_end_of_input_end_the_game_in_a_sentence(played):
    for lines in ([], ["q"], [" QUIT "]):
        code, out, err = played(SKUNK, "yours=10", "mine=3", "turn=8", lines=lines)
        assert (code, err) == (0, "") and out.endswith("\nyou left; the game is not over\n")
    code, out, _ = played(SKUNK, "yours=0", "mine=0", "turn=3", "--seed", "1", lines=["hold"])
    assert code == 0 and "you left" in out and "1 decision, 1 not the best" in out


TILES, TOWNS = ["flip 1", "flip 1+3", "flip 4", "pass to 2"], ["go to Cork", "go to Bath"]
BIDS, PLACES = ["bid 1", "bid 3", "bid 13"], ["to Bath", "to Cork"]


@pytest.mark.parametrize(
    ("names", "at_once", "answers"),
    [
        (TILES, False, {"flip 1": 0, "FLIP  1+3": 1, "2": 1, "flip 4": 2, "flip 1+": 1, "pass": 3,
                        "p": 3, "flip": None, "0": None, "5": None, "": None, "-1": None,
                        "9" * 5000: None, "²": None}),
        (TOWNS, False, {"go to Cork": 0, "GO to c": 0, "go to cork": 0, "go": None}),
        ([*TOWNS, "Go"], False, {"Go": 2, "GO": 2}),
        (BIDS, True, {"3": 1, "bid 3": 1, "BID  13": 2, "1": 0, "2": None, "bid": None, "": None}),
        (PLACES, True, {"Cork": 1, "cork": 1, "To cork": 1}),
    ],
)  # fmt: skip
def test_an_answer_is_a_name_in_any_letters_its_beginning_or_its_number(names, at_once, answers):
    """A bid is also answered by its card."""
    found = {answer: read_answer(names, answer, at_once=at_once) for answer in answers}
    assert found == answers


def test_a_board_that_begins_too_high_names_some_states_to_copy(played):
    code, _, err = played(BIG, "--max-states", "1000")
    said = re.findall(r"(scores=\S+ earned=\S+) \(", err)
    assert code == 2 and len(said) == 2
    assert f"as --from {said[0]} (ahead, one spin left); or " in err
    assert re.search(rf", or solve a table first: luckbase solve {BIG} --from scores=\S+ earn", err)
    for words in said:
        code, out, _ = played(BIG, *words.split(), "--max-states", "100000", lines=["q"])
        assert code == 0 and out.endswith("you left; the game is not over\n")


def test_payoffs_are_said_where_more_than_one_player_gets_all(
    tmp_path, command, own_games, monkeypatch
):
    rules = Path(tests.games.climb.__file__).read_text().replace("first, 1 - first", "1, 1")
    (tmp_path / "together.py").write_text(rules)
    (tmp_path / "hill.toml").write_text('game = "climb"\n[rules]\nrounds = 1\n')
    monkeypatch.setattr(sys, "stdin", io.StringIO("rest\n"))
    board, file = tmp_path / "hill.toml", tmp_path / "together.py"
    code, out, _ = command("play", board, "--game", file, "--results", tmp_path)
    assert code == 0 and "chance to win: you 1, player 2 (optimal) 1" in out


def test_an_optimal_opponent_takes_what_the_table_stores_not_what_its_error_leaves_open(
    tmp_path, command, monkeypatch
):
    words = (ROUNDS, "--set", "rounds=2", "--set", "cut=60", "--results", str(tmp_path))
    assert command("solve", *words)[0] == 0  # payoffs within .16: rolling is best by .15
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    _, out, _ = command("play", *words, "--seed", "3", "--as", "2")
    assert "round=1 player=1\n  roll: " in out


# --- where both choose at once: costs from exact matrix games ------------------------------------

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
    assert all(play.over for _, play in plays)
    decisions = {(str(made.state), made.action, made.cost): made for _, play in plays
                 for made in play.decisions}  # fmt: skip
    for decision in decisions.values():
        said, held = decision.state, ("mine", "theirs", "deck")
        sets = (frozenset(said[name]) for name in held)
        exact = goofspiel.game(*sets, said["upcard"], win, said.get("lead", 0))
        value = float(matrix_game.solve(exact)[0])
        words = {name: str(each).strip("[]") for name, each in said.items()}
        state = game.own(Agents).as_seen_by(person, game.parse(words))
        at = Play(game, state, values, seats, person, lambda chances: 0)
        against = np.array(exact, float) @ at.priced.mixed[at.priced.choosers == 1 - person, 0]
        assert against.max() == pytest.approx(value, abs=1e-9)  # the other's lottery is optimal
        lost = value - against[at.names.index(decision.action)]
        assert decision.cost == pytest.approx(max(lost, 0.0), abs=1e-9)
        assert decision.cost == 0 or decision.cost > 1e-9
    assert sum(decision.cost > 0 for decision in decisions.values()) > 10


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
            right = table.action_values(edges).values
        search = search_below(plain(game), simplify(plain(game), root[None])[0], 1_000_000)
        for values in (worth_of(game, root), search):
            assert values.action_values(edges).values == pytest.approx(right, abs=1e-9)


# --- the talk ----------------------------------------------------------------------------------


def test_a_scripted_game_keeps_the_persons_own_cards(played):
    lines = ["?", "9", "bid 3", "1", "2", "5", "4"]
    code, out, err = played(*SMALL, "--seed", "3", lines=lines)
    assert (code, err) == (0, "")
    assert "you are player 1 against player 2 (optimal)\npayoffs are from all tiers" in out
    assert "\nwrite a name, or its last word" in out
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
