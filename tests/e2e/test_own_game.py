"""An own game in words: in it both choose at once, by the names that its rules list; a field has
names; and plays begin in one of two states."""

import pytest

import luckbase
from luckbase.cluster.play.game import play_on
from luckbase.game import (
    Board,
    Field,
    Names,
    Rules,
    check_game,
    joint,
    lead,
    over,
    register,
    simultaneous,
    transition,
)
from luckbase.jobs.app import run
from luckbase.solver.board import registry
from luckbase.solver.errors import OptionError

GUSTY = 0.25


@transition
def kick(board, state, edges):
    """One kicks to the left or to the right; the other guards the left or the middle. Half of what
    is kicked in a gust misses."""
    kicked, gust = state
    if kicked:
        goal = (kicked - 1) / (1 + gust)
        return over(edges, goal, 1 - goal)
    for mine in (0, 2):
        for yours in (0, 1):
            child = lead(edges, state, joint(mine, yours), 1.0)
            child[0] = 1 if mine == yours else 2
    return simultaneous(edges)


class Kick(Board):
    pass


@pytest.fixture
def file(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "entries", dict(registry.entries))
    register("kick", Kick, lambda board: Rules(
        fields=[Field("kicked", high=2), Field("wind", high=1, names=Names(["calm", "gusty"]))],
        players=2, transition=kick, numbers=(), max_edges=4, simultaneous=True,
        actions=("left", "middle", "right"),
        start=[(1 - GUSTY, {"wind": "calm"}), (GUSTY, {"wind": "gusty"})],
    ))  # fmt: skip
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kick.toml"
    path.write_text('game = "kick"\n')
    yield path


def test_choices_are_called_what_the_rules_call_them(file):
    luckbase.solve(file)
    with luckbase.open(file) as table:
        answer = table.ask({"wind": "calm"})
        assert answer.strategies is not None
        names = [[choice.name for choice in each] for each in answer.strategies]
        assert names == [["left", "right"], ["left", "middle"]]
        (row,) = table.to_arrow("kicked=0 wind=calm", actions=True).read_all().to_pylist()
        for player, each in enumerate(answer.strategies, 1):
            assert [row[f"{choice.name}_chance_{player}"] for choice in each] == [
                choice.chance for choice in each
            ]
        assert row["middle_chance_1"] is None is row["right_chance_2"]
        with pytest.raises(OptionError, match=r"wind: there is no 'lull'; expected one of: c"):
            table.to_arrow("wind!=lull")
        for seat, theirs in enumerate(names, 1):
            play = play_on(table, None, seat=seat, seed=1)
            lines = play.through(lambda at: at.names[1])
            assert any(f"you: {theirs[1]}, player" in line for line in lines)


def test_a_game_with_several_starts_is_solved_below_all_of_them(file, capsys):
    board = luckbase.load_board(file)
    assert (check_game(board), luckbase.plan(board).states) == (6, 2)  # those that are over too
    assert run(["solve", str(file)]) == 0
    assert "2 states below 2 states" in capsys.readouterr().err
    with luckbase.open(board) as table:
        values = [table[{"wind": wind}].value[0] for wind in ("calm", "gusty")]
    assert values == pytest.approx([1.0, 0.5])  # player 1 kicks to the right
    assert luckbase.evaluate(board, "optimal").value[0] == pytest.approx(1 - GUSTY / 2)
    assert luckbase.solve(board).states == 0
    assert run(["info", str(file)]) == 0
    info = capsys.readouterr().out
    assert "Values: calm, gusty. If left out: calm." in info and "--from" not in info
    file.unlink()
    assert [spare.state for spare in luckbase.clean()] == ["unneeded"]  # not from chosen states
