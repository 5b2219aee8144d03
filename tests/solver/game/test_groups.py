"""Groups of decisions: every game's own, and by columns."""

import numpy as np
import pytest

import luckbase
from luckbase.solver.game.groups import Groups, by_columns, groups_of
from luckbase.solver.game.rules import DECISION, SIMULTANEOUS
from luckbase.solver.search.expand import classify, expand
from tests.places import BOARDS
from tests.solving import load_board, load_game

SMALL = {
    "press-your-luck/tiny": {"frontier": 2, "score_cap": 1500},
    **{
        f"press-your-luck/tiny {option}": {"frontier": 2, "score_cap": 1500, option: value}
        for option, value in (("third_place_spins", False), ("max_whammies", 2),
                              ("tied_pass", "next"))
    },
    "skunk/tiny": {}, "pig/tiny": {}, "pig/rounds": {"rounds": 2, "cut": 20},
    "jackpot/tiny": {}, "jackpot/seed": {"tiles": 6}, "goofspiel/tiny": {"cards": 3},
}  # fmt: skip


def game_and_states(name):
    board = load_board(BOARDS / f"{name.split()[0]}.toml", **SMALL[name])
    with luckbase.open(board, in_memory=True) as table:
        return load_game(board), np.concatenate(list(table.draw(table.rows, 0)))


@pytest.mark.parametrize("name", SMALL)
def test_every_decision_has_a_group_and_states_of_a_line_differ_in_its_number_alone(name):
    game, states = game_and_states(name)
    text, result = groups_of(game), classify(game, states)
    kinds = expand(game, states).kinds
    assert ((result.groups >= 0) == np.isin(kinds, (DECISION, SIMULTANEOUS))).all()
    assert game.has(Groups) and result.groups.max(initial=-1) < text.count
    decided = result.groups >= 0
    for axis, cells in zip(text.axes, (result.x, result.y), strict=True):
        assert ((cells[decided] >= 0) & (cells[decided] < axis.cells)).all()
    assert result.thresholds.max(initial=-1) < len(text.thresholds)
    for code in np.unique(result.groups[decided]).tolist():
        assert len(text.labels(code)) == len(text.columns)
    on = result.thresholds >= 0
    lines = [each[on].tolist() for each in (result.thresholds, result.lines, result.at)]
    assert len({*zip(*lines, strict=True)}) == on.sum()
    assert on.any() == bool(text.thresholds)


def test_groups_of_press_your_luck_are_spins_place_and_lead():
    game, states = game_and_states("press-your-luck/tiny")
    text, result = groups_of(game), classify(game, states)
    for x in np.flatnonzero(result.groups >= 0)[::37].tolist():
        state = game.describe(states[x])
        up = next(i for i in range(3) if state["earned"][i] + state["passed"][i])
        others = [s for i, s in enumerate(state["scores"]) if i != up and state["whammies"][i] < 4]
        lead = state["scores"][up] - max(others)
        spins, place, step = text.labels(int(result.groups[x]))
        assert spins == str(sum(state["earned"]) + sum(state["passed"]))
        above = sum(s > state["scores"][up] for s in others)
        assert place == ("leader", "second", "third")[above]
        side = "level" if lead == 0 else "ahead" if lead > 0 else "behind"
        assert step.split()[0] == side
        if "$" in step and "above" not in step:
            ends = [int(w.strip("$").replace(",", "")) for w in step.split() if "$" in w]
            assert ends[0] <= abs(lead) <= ends[-1]


def test_a_game_that_says_nothing_is_grouped_by_its_first_columns():
    game, states = game_and_states("jackpot/tiny")
    text = by_columns(game)
    result = classify(game, states, text)
    kinds = expand(game, states).kinds
    assert ((result.groups >= 0) == (kinds == DECISION)).all()
    for x in np.flatnonzero(result.groups >= 0).tolist():
        state = game.describe(states[x])
        assert text.labels(int(result.groups[x])) == (
            f"{len(state['open'])} of them", str(state["dice"][0]),
        )  # fmt: skip


def test_leads_are_named_by_their_ends_and_a_lone_amount_by_itself():
    for name, cap, leads in (
        ("tiny", 4000, ["$500", "$1,000", "$1,500", "above $1,500"]),
        ("1985-02", 8000,
         ["$500 to $1,000", "$1,500 to $2,000", "$2,500 to $3,000", "above $3,000"]),
    ):  # fmt: skip
        path = BOARDS / f"press-your-luck/{name}.toml"
        game = load_game(load_board(path, score_unit=500, score_cap=cap))
        expected = [f"behind {lead}" for lead in reversed(leads)] + ["level"]
        expected += [f"ahead {lead}" for lead in leads]
        assert list(groups_of(game).columns[2].labels) == expected


@pytest.mark.parametrize(
    ("path", "columns", "axes"),
    [
        (
            "jackpot/tiny",
            ["tiles open", "to choose"],
            ["tiles open", "sum of the roll, 0 before it"],
        ),
        ("goofspiel/tiny", ["cards left", "upcard"], ["cards left", "points of the deck"]),
    ],
)
def test_groups_and_axes_have_the_words_of_the_game(path, columns, axes):
    text = groups_of(game_and_states(path)[0])
    assert [each.head for each in text.columns] == columns
    assert [each.label for each in text.axes] == axes
