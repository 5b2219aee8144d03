"""What a dry run says is what the solve then does, and it writes nothing; `status` says it too."""

import random
from pathlib import Path

import pytest

import luckbase
from tests.cluster.batch.boards import JACKPOT, everything, pig, press, put
from tests.e2e.stopped import stopped_after


def states(result):
    return [each.state for each in result]


def test_a_dry_run_says_what_the_solve_then_does_and_writes_nothing(tmp_path):
    results, boards = tmp_path / "results", tmp_path / "boards"
    put(boards / "a.toml", press())
    put(boards / "b.toml", pig())
    put(boards / "c.toml", JACKPOT)  # no tiers: a search
    put(boards / "d.toml", "game = 'chess'")
    before = everything(tmp_path)
    result = luckbase.plan_all(boards, results=results)
    assert everything(tmp_path) == before and not results.exists()
    assert states(result) == ["missing", "missing", "missing", "refused"]
    done = luckbase.solve_all(boards, results=results)
    assert [each.state for each in done] == ["solved", "solved", "solved", "failed"]
    for planned, each in zip(result[:2], done[:2], strict=True):
        assert each.solved is not None
        assert (planned.table, planned.states) == (each.solved.table, each.solved.states)
    before = everything(tmp_path)
    assert states(luckbase.plan_all(boards, results=results)) == ["complete"] * 3 + ["refused"]
    again = luckbase.solve_all(boards, results=results)
    assert [each.state for each in again] == ["complete"] * 3 + ["failed"]
    assert everything(tmp_path) == before


def test_what_changed_is_said_by_the_table_of_the_same_options_and_file(tmp_path):
    """Of variants each has its own last table; a board of the same name elsewhere has none here."""
    results = tmp_path / "results"
    file = put(tmp_path / "a.toml", pig().replace("[rules]", "[rules]\ndice = 1"))
    job = put(
        tmp_path / "job.toml", "[[board]]\nfile = 'a.toml'\nvariants = [{goal = 8}, {goal = 9}]"
    )
    luckbase.solve_all(job, results=results)
    put(Path(file), pig().replace("[rules]", "[rules]\ndice = 2"))
    result = luckbase.plan_all(job, file, put(tmp_path / "b/a.toml", pig(7)), results=results)
    assert states(result) == ["stale", "stale", "missing", "missing"]
    assert {each.why for each in result[:2]} == {("dice: was 1, now 2",)}


def test_a_table_that_was_begun_and_one_that_lost_files_go_on(tmp_path):
    file, results = put(tmp_path / "a.toml", press()), tmp_path / "results"
    with stopped_after(4), pytest.raises(KeyboardInterrupt):
        luckbase.solve_all(file, results=results, workers=1)
    (only,) = luckbase.plan_all(file, results=results)
    assert only.state == "partial" and "3 of 20 files are there" in only.why[0]
    (done,) = luckbase.solve_all(file, results=results)
    assert done.solved is not None and only.states == done.solved.states
    lost = sorted(done.solved.table.glob("tiers/*"))[5]
    lost.unlink()
    (only,) = luckbase.plan_all(file, results=results)
    assert only.state == "damaged" and only.why == (f"{lost}: is missing",)
    (again,) = luckbase.solve_all(file, results=results)
    assert again.solved is not None and only.states == again.solved.states > 0


def test_boards_that_come_to_one_table_are_planned_one_after_another(tmp_path):
    """Of one name and content in two folders; and of two reaches: they grow together."""
    results = tmp_path / "results"
    each, other = put(tmp_path / "x/a.toml", press()), put(tmp_path / "y/a.toml", press())
    far = put(tmp_path / "z/a.toml", press(frontier=2))
    result = luckbase.plan_all(each, other, far, each, results=results)
    done = luckbase.solve_all(each, other, far, each, results=results)
    assert states(result) == ["missing", "complete", "missing"]
    assert result[1].why == ("as another board of this night",)
    assert len({each.table for each in result}) == 1
    assert [each.solved and each.solved.states for each in done] == [each.states for each in result]


def test_two_boards_of_one_name_and_other_content_have_their_own_tables(tmp_path):
    results = tmp_path / "results"
    put(tmp_path / "x/a.toml", press())
    put(tmp_path / "y/a.toml", press(cap=1500))
    put(tmp_path / "z/a.toml", pig())
    done = luckbase.solve_all(*(tmp_path / name for name in "xyz"), results=results)
    tables = [each.solved.table for each in done if each.solved is not None]
    assert len({*tables}) == 3 and len({table.parent for table in tables}) == 2
    for name, table in zip("xyz", tables, strict=True):
        with luckbase.open(tmp_path / name / "a.toml", results=results) as opened:
            assert opened.where == table


def test_what_has_no_room_is_refused_before_and_while_and_stops_nothing(tmp_path):
    big = press(frontier=3, cap=20000).replace("score_unit = 500", "score_unit = 250")
    files = put(tmp_path / "a.toml", big), put(tmp_path / "b.toml", pig())
    result = luckbase.plan_all(*files, results=tmp_path / "results", memory=20_000_000)
    done = luckbase.solve_all(*files, results=tmp_path / "results", memory=20_000_000)
    assert states(result) == ["refused", "missing"]
    assert [each.state for each in done] == ["failed", "solved"]
    assert str(result[0].error)[:30] == str(done[0].error)[:30] == "memory: the largest tier needs"
    assert done[0].error.exit_code == 2


def test_an_order_by_time_begins_with_what_is_soon_done(tmp_path):
    rng = random.Random(4)
    caps = rng.sample(range(1000, 6000, 500), 5)
    for i, cap in enumerate(caps):
        put(tmp_path / f"{i}.toml", press(cap=cap))
    files = ", ".join(f'"{i}.toml"' for i in range(5))
    job = put(tmp_path / "night/n.toml", f'order = "shortest"\n[[board]]\nfile = [{files}]\n')
    job = put(tmp_path / "n.toml", Path(job).read_text())
    result = luckbase.plan_all(job, results=tmp_path / "results")
    order = [Path(each.request.file).stem for each in result]
    assert order == [str(caps.index(cap)) for cap in sorted(caps)]
    listed = [each.request.name for each in luckbase.solve_all(job, results=tmp_path / "results")]
    assert listed == [each.request.name for each in result]


def test_all_of_it_again_is_planned_so(tmp_path):
    file, results = put(tmp_path / "a.toml", press()), tmp_path / "results"
    luckbase.solve_all(file, results=results)
    (only,) = luckbase.plan_all(file, results=results, force=True)
    (done,) = luckbase.solve_all(file, results=results, force=True)
    assert only.state == "again" and done.solved and only.states == done.solved.states > 0


def test_what_a_board_raises_that_nobody_thought_of_stops_no_other(tmp_path, monkeypatch):
    from luckbase.cluster.batch import run

    files = put(tmp_path / "a.toml", pig(10)), put(tmp_path / "b.toml", pig(12))
    true = run.solve_board

    def fails(board, *given):
        if board.name == "a":
            raise ZeroDivisionError("of a game of one's own")
        return true(board, *given)

    monkeypatch.setattr(run, "solve_board", fails)
    seen = []
    done = luckbase.solve_all(
        *files, results=tmp_path / "results", on_solved=lambda each: seen.append(each.state)
    )
    assert seen == [each.state for each in done] == ["failed", "solved"]
    assert str(done[0].error).startswith("ZeroDivisionError: of a game of one's own; ")


def test_a_board_that_reaches_further_now_is_partial_in_the_words_of_a_dry_run(tmp_path):
    file, results = put(tmp_path / "b/a.toml", press(frontier=1)), tmp_path / "results"
    table = luckbase.solve(file, results=results).table
    put(tmp_path / "b/c.toml", pig())
    luckbase.solve_all(tmp_path / "b", results=results)
    ways = ((file,), (str(tmp_path / "b"),), (str(table),), (str(results),), ())
    for names in ways:
        assert {item.state for item in luckbase.status(*names, results=results)} == {"complete"}
    put(tmp_path / "b/a.toml", press(frontier=2))
    (planned,) = luckbase.plan_all(file, results=results)
    assert planned.state == "partial" and "20 of 74 files are there" in planned.why[0]
    for names in ways:
        item = next(o for o in luckbase.status(*names, results=results) if o.table == str(table))
        assert (item.state, item.why[:1]) == ("partial", planned.why), names
    put(tmp_path / "b/a.toml", press(frontier=1))
    for names in ways:
        result = luckbase.status(*names, results=results)
        assert {item.state for item in result} == {"complete"}
    (item,) = luckbase.status(file, results=results, settings={"frontier": "2"})
    assert (item.state, item.why[:1]) == ("partial", planned.why)


def test_what_was_solved_below_some_states_is_complete_where_it_is_named(tmp_path):
    """In a folder of boards its full table is asked for, as a dry run has it."""
    file, results = put(tmp_path / "b/a.toml", pig()), tmp_path / "results"
    luckbase.solve(file, {"mine": 9, "yours": 9}, results=results)
    (only,) = luckbase.status(file, results=results)
    assert only.state == "complete"
    (planned,) = luckbase.plan_all(tmp_path / "b", results=results)
    (only,) = luckbase.status(str(tmp_path / "b"), results=results)
    assert (only.state, only.why) == (planned.state, planned.why) == ("partial", planned.why)
