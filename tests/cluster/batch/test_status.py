"""What `status` says of boards is what a dry run of them says."""

import luckbase
from tests.cluster.batch.boards import pig, press, put


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
