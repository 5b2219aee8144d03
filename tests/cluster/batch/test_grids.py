"""Tables of one board on several grids: solved together, asked together, and compared."""

import json
import re
import shlex

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers import moves
from luckbase.cluster.answers.grids import grid_errors, measure_grids, with_choice
from luckbase.cluster.batch.requests import is_many
from luckbase.solver.errors import ClosedTableError, StateError
from tests.cluster.batch.boards import GRIDS, grid_text, put
from tests.jobs.web.serving import asking, state_of

FINE, COARSE = "score_unit=500", "score_unit=1000"


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The folder of a board with two grids, solved."""
    folder = tmp_path_factory.mktemp("grids")
    file = put(folder / "a.toml", grid_text())
    outcomes = luckbase.solve_all(file, results=folder / "results")
    assert [each.state for each in outcomes] == ["solved", "solved"]
    return folder


def test_a_solve_of_a_board_solves_all_of_its_grids_and_a_state_only_the_finest(solved, tmp_path):
    file, results = str(solved / "a.toml"), tmp_path / "results"
    planned = luckbase.plan_all(file, results=results)
    assert [due.request.settings for due in planned] == [
        {"score_unit": "500"}, {"score_unit": "1000"}
    ]  # fmt: skip
    assert planned[0].table != planned[1].table
    assert is_many([file]) and not is_many([file], {"score_unit": "500"})
    start = {"scores": (0, 1000, 0), "earned": (0, 1, 0)}
    (due,) = luckbase.plan_all(file, start=start, results=results)
    assert due.request.settings == {"score_unit": "500"} and not is_many([file], {}, start)
    statuses = luckbase.status(file, results=solved / "results")
    assert [each.state for each in statuses] == ["complete", "complete"]
    again = luckbase.plan_all(file, results=solved / "results")
    assert [due.state for due in again] == ["complete", "complete"]


def test_an_open_board_answers_each_state_from_the_finest_table_that_holds_it(solved):
    with luckbase.open(solved / "a.toml", results=solved / "results") as table:
        for state, unit in (
            ("scores=0,1500,0 earned=0,1,0", 500),
            ("scores=0,1000,0 earned=0,3,0", 1000),
            ("Ed 1500, 3 spins; Peter 0; Michael 0", 1000),
        ):
            answer = table.ask(state)
            assert answer.origin.options["score_unit"] == unit
            if "=" in state:
                assert table.moves(state).answer == answer and table.why(state)
        assert table.simulate("scores=0,1500,0 earned=0,2,0", 50).source == "games"
        with pytest.raises(StateError, match="beyond this table's frontier"):
            table.ask("scores=0,1000,0 earned=0,4,0")
        with pytest.raises(StateError, match="1250 is not a multiple of 500"):
            table.ask("scores=0,1250,0 earned=0,1,0")
        coarser = table.for_state("scores=0,1000,0 earned=0,3,0")
    with pytest.raises(ClosedTableError):
        coarser.ask("scores=0,1000,0 earned=0,3,0")


def test_a_page_answers_each_state_from_the_finest_table_that_holds_it(solved):
    with asking(solved / "results") as client:
        fine = next(each["id"] for each in client.get("/tables").json()["tables"]
                    if each["options"]["score_unit"] == 500)  # fmt: skip
        for asked, unit, source in (
            ({"scores": "0,1500,0", "earned": "0,1,0"}, 500, True),
            ({"scores": "0,1500,0", "earned": "0,2,0"}, 500, False),
            ({"scores": "0,1000,0", "earned": "0,3,0"}, 1000, True),
            ({"sentence": "Ed 1400, 3 spins; Peter 0; Michael 0"}, 1000, True),
        ):
            said = state_of(client, fine, **asked)
            assert said["options"]["score_unit"] == unit and said["best"]
            assert bool(said["value"]) == source
            assert f"of the board as rounded, score_unit={unit}" in said["grid"]
            page = client.get(
                f"/tables/{fine}/state", params=asked, headers={"accept": "text/html"}
            )
            assert page.status_code == 200 and f"score_unit={unit}, solve" in page.text


def test_advise_follows_a_game_over_all_grids_from_the_first_spin_to_the_last(solved):
    lines = """Ed 1500, 2 spins; Peter 0, 1 spin; Michael 500
        Ed 1000 + spin
        Ed passes 2 to Michael
        Peter 1000
        Michael 1000
        Michael whammy"""
    units = []
    with luckbase.advise(solved / "a.toml", results=solved / "results", max_states=1) as game:
        for line in lines.splitlines():
            said = game.say(line.strip())
            assert said.unpriced is None
            if said.up is not None:
                assert said.advice.best is not None
                units.append(bool(said.advice.value))
    assert said.up is None and units == [True, True, True, False, True]


def test_a_question_with_a_unit_is_answered_on_that_grid(solved, command):
    where = ["--results", solved / "results", "--set", COARSE]
    code, out, _ = command("query", solved / "a.toml", "scores=0,1000,0", "earned=0,1,0", *where)
    assert code == 0 and f"{COARSE}, solve" in out
    state = ["scores=0,1500,0", "earned=0,1,0"]
    assert command("query", solved / "a.toml", *state, *where)[0] == 2  # not on that grid


def test_the_grid_of_a_table_is_compared_with_the_finer_one(solved, command):
    """Every amount is on both grids, so at shared states nothing differs."""
    fine, coarse = luckbase.status(solved / "a.toml", results=solved / "results")
    fine, coarse = (fine, coarse) if fine.options[FINE[:10]] == 500 else (coarse, fine)
    assert fine.grid == (f"{FINE}: grid error not measured",)
    assert [line.split(" (")[0] for line in coarse.grid] == [
        f"{COARSE} against {FINE}: it changes 0.0% of decisions with 1 spin left",
        f"{COARSE} against {FINE}: it changes 0.0% of decisions with 2 spins left",
    ]
    table = luckbase.open(coarse.table)
    one, two = grid_errors(table.where, table.identity)
    assert (one.level, one.finer, two.level) == (1, 500, 2)
    assert one.decisions > 100 and not one.payoffs.followed and two.payoffs.followed
    assert max(one.payoffs.largest, two.payoffs.largest) < 1e-6
    assert one.payoffs.states > 100 and two.payoffs.states > 100
    assert grid_errors(table.where, "another") == []
    where = ["--results", solved / "results", "--set", COARSE]
    _, out, _ = command("query", solved / "a.toml", "scores=0,1000,0", "earned=0,1,0", *where)
    assert "against score_unit=500 this grid changes 0.0% of decisions with 1 spin" in out
    _, out, _ = command("query", solved / "a.toml", "scores=0,1000,0", "earned=0,3,0", *where)
    assert f"of the board as rounded, {COARSE}; grid error not measured" in out
    stored = table.where / "grid.json"
    before = stored.read_bytes()
    luckbase.solve_all(solved / "a.toml", results=solved / "results")
    assert stored.read_bytes() == before
    stored.write_text(json.dumps({"tables": []}))
    assert grid_errors(table.where, table.identity) == []
    luckbase.solve_all(solved / "a.toml", results=solved / "results")
    assert stored.read_bytes() == before


def test_decisions_are_compared_where_too_many_states_follow_to_compare_payoffs(
    solved, monkeypatch
):
    where = {"results": solved / "results"}
    with (
        luckbase.open(solved / "a.toml", score_unit=500, **where) as fine,
        luckbase.open(solved / "a.toml", score_unit=1000, **where) as coarse,
    ):
        before = (coarse.where / "grid.json").read_bytes()
        (coarse.where / "grid.json").unlink()
        notes = list[str]()
        monkeypatch.setattr(moves, "free_memory", lambda: 0)  # no option
        measure_grids([fine, coarse], notes.append)
        one, two = grid_errors(coarse.where, coarse.identity)
        (coarse.where / "grid.json").write_bytes(before)
    assert two.decisions > 100 and two.payoffs is None and one.payoffs.states > 100
    assert notes == ["comparing the table of score_unit=1000 with those of finer grids"]


def test_payoffs_beyond_the_finer_frontier_are_compared_by_following_decisions(tmp_path):
    """Against the payoffs of tables that store them, on grids of $250, $500 and $1,000."""
    grids = GRIDS.replace("frontier = 3", "frontier = 2").replace("500", "250")
    grids += "[[grid]]\nscore_unit = 500\nfrontier = 2\n"
    text = grid_text(grids).replace('"1000 + spin"', '"1500 + spin"').replace('"1000"', '"750"')
    text = text.replace("score_cap = 4000", "score_cap = 3000")
    file = put(tmp_path / "a.toml", text)
    luckbase.solve_all(file, results=tmp_path / "results")
    _, middle, coarse = (
        luckbase.open(file, results=tmp_path / "results", score_unit=unit)
        for unit in (250, 500, 1000)
    )
    with middle, coarse, luckbase.open(file, in_memory=True, score_unit=250, frontier=2) as right:
        for table, finer, level in (
            (middle, right, grid_errors(middle.where, middle.identity)[1]),
            (coarse, middle, grid_errors(coarse.where, coarse.identity)[1]),
        ):
            states = np.concatenate([*table.draw(table.rows, 0)])
            states = with_choice(table, states[states[:, 3:9].sum(axis=1) == 2])
            others, shared = finer.game.known_states(table.game.fields.values(states))
            apart = np.abs(table.probe(states[shared]) - finer.probe(others)).max(axis=1)
            found = level.payoffs
            assert (level.level, level.finer, found.followed) == (2, 250, finer is right)
            assert found.finer == (250 if finer is right else 500)
            assert 0.0001 < found.stderr < found.mean < found.largest <= apart.max() + 1e-6
            assert found.mean == pytest.approx(apart.mean(), abs=4 * found.stderr)
        (_, line) = luckbase.status(coarse.where)[0].grid
    assert re.search(
        r"score_unit=1000 against score_unit=250: it changes [\d.]+% of decisions with 2 spins "
        r"left \(of [\d,]+\), payoffs against score_unit=500 by 0.\d+ \(± 0.\d+\) on average and "
        r"0.\d+ at most \(as stored\)", line
    )  # fmt: skip
    (_, line) = luckbase.status(middle.where)[0].grid
    assert line.endswith("at most (by following decisions from 1,000 states)")


def test_the_command_for_a_state_above_the_table_makes_a_table_with_it(tmp_path, command):
    """Of a board whose file names no table that is deep enough."""
    file, results = put(tmp_path / "a.toml", grid_text()), tmp_path / "results"
    luckbase.solve_all(file, results=results)
    ask = ["query", file, "Ed 1500, 4 spins; Peter 0; Michael 0", "--results", results]
    code, _, err = command(*ask, "--max-states", "5")
    assert code == 2
    found = re.search(r"in about [\d.]+ s this makes a table with it: luckbase (solve .*)", err)
    words = shlex.split(found[1])
    assert words[2:6] == ["--set", "score_unit=1000", "--set", "decisions=4"]
    assert command(*words)[0] == 0
    code, out, _ = command(*ask, "--max-states", "5")
    assert code == 0 and "score_unit=1000, solve" in out


def test_tables_of_grids_that_a_board_no_longer_names_are_not_needed(tmp_path):
    file, results = tmp_path / "a.toml", tmp_path / "results"
    put(file, grid_text())
    luckbase.solve_all(file, results=results)
    assert luckbase.clean(results=results) == []
    put(file, grid_text(GRIDS.replace("score_unit = 1000", "score_unit = 2000")))
    assert luckbase.clean(results=results) == []  # --set score_unit=1000 still means it
    put(file, grid_text().replace("max_whammies = 2", "max_whammies = 1"))
    spares = luckbase.clean(results=results, yes=True)
    assert [each.state for each in spares] == ["removed", "removed"]
    assert not list(results.rglob("*.*"))


def test_a_grid_reaches_as_deep_as_the_memory_allows_and_then_stays(tmp_path):
    file, results, notes = tmp_path / "a.toml", tmp_path / "results", []
    put(file, grid_text(GRIDS.replace("decisions = 2", "decisions = 6")))
    needs = {
        depth: luckbase.plan(
            luckbase.load_board(file, score_unit=500, decisions=depth), results=results
        ).plan.shard_memory
        for depth in (4, 5)
    }
    little = (needs[4] + needs[5]) // 2
    planned = luckbase.plan_all(file, results=results, memory=little, on_note=notes.append)
    outcomes = luckbase.solve_all(file, results=results, memory=little)
    fine, coarse = (each.solved.manifest.furthest for each in outcomes)
    assert (fine.reach["decisions"], fine.settings["decisions"]) == (4, "4")
    assert coarse.settings == {"score_unit": "1000"}
    assert "a: decisions = 6 need " in notes[0] and notes[0].endswith("this table reaches 4")
    assert planned[0].states == outcomes[0].solved.rows
    for memory in (None, little):  # with more memory too
        again = luckbase.solve_all(file, results=results, memory=memory)
        assert [each.state for each in again] == ["complete", "complete"]
    assert {each.state for each in luckbase.status(file, results=results)} == {"complete"}
    more = luckbase.load_board(file, score_unit=500, decisions=6)
    assert luckbase.solve(more, results=results).manifest.reach["decisions"] == 6


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"tables": 7}', b"[" * 20_000, b'{"tables": [["ID"]], "levels": [{"level": 1}]}',
     b'{"tables": [["ID"]], "levels": [{"level": 1, "finer": 500, "decisions": 1, "differ": "x",'
     b' "payoffs": null}]}'],
)  # fmt: skip
def test_a_changed_comparison_counts_as_not_measured(tmp_path, content):
    (tmp_path / "grid.json").write_bytes(content)
    assert grid_errors(tmp_path, "ID") == []
