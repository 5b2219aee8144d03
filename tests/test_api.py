"""The API page: every name of it, and that Python and the command line give the same answer."""

import ast
import io
import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import luckbase
from luckbase.cluster import inputs
from luckbase.cluster.inputs import roots_of
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.solve.progress import Progress
from luckbase.solver.errors import OptionError
from tests.places import BOARDS
from tests.shared import python
from tests.solving import load_game

TINY, PIG = BOARDS / "press-your-luck/tiny.toml", BOARDS / "pig/tiny.toml"
JACKPOT, POINTS = BOARDS / "jackpot/tiny.toml", BOARDS / "goofspiel/points.toml"
STATE = {"scores": (0, 1000, 500), "earned": (0, 2, 0)}
WORDS = ["scores=0,1000,500", "earned=0,2,0"]


@pytest.fixture(scope="module")
def results(results_of):
    return results_of((TINY, {"frontier": 2}), (PIG, {}))


@pytest.fixture
def said(command):
    """What a command prints as JSON."""

    def call(*words, code=0):
        result, out, _ = command(*words, "--json")
        assert result == code
        return json.loads(out.splitlines()[-1])

    return call


@pytest.fixture(scope="module")
def table(results):
    return luckbase.open(TINY, results=results, frontier=2)


# --- the page ----------------------------------------------------------------------------------


def test_the_page_brings_little_and_nothing_heavy():
    script = (
        "import sys, luckbase; ours = [m for m in sys.modules if m.startswith('luckbase')]\n"
        "dir(luckbase), luckbase.__version__\n"
        "heavy = ('numba', 'numpy', 'ray', 'pyarrow', 'pydantic')\n"
        "print([m for m in heavy if m in sys.modules], len(ours) < 10)"
    )
    done = python("-c", script)
    assert done.stdout == "[] True\n"


def test_every_name_of_the_page_is_there_and_known_to_type_checkers():
    tree = ast.parse(Path(luckbase.__file__).read_text(encoding="utf-8"))
    known = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    (types,) = (
        node for node in tree.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )  # fmt: skip
    for node in types.body:
        if isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name for alias in node.names}
    assert set(luckbase.__all__) <= known
    for name in luckbase.__all__:
        result = getattr(luckbase, name)
        assert (getattr(result, "__doc__", "") or "").strip(), name
        assert name in dir(luckbase)
    assert luckbase.LuckbaseError is luckbase.errors.LuckbaseError
    project = tomllib.loads((BOARDS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert luckbase.__version__ == project["project"]["version"]
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        luckbase.sovle  # noqa: B018


def test_the_options_of_a_solve_are_the_same_as_keywords_and_as_an_object():
    keywords = get_type_hints(SolveOptions, None, {"Progress": Progress})
    assert keywords == {
        field.name: get_type_hints(Options, None, {"Progress": Progress})[field.name]
        for field in fields(Options)
    }
    with pytest.raises(OptionError, match="wrokers: is not an option of a solve; did you mean"):
        luckbase.solve(TINY, wrokers=2)


# --- a table and its command -------------------------------------------------------------------


def test_a_state_is_numbers_lists_arrays_or_text_also_above_the_table(table):
    right = table[STATE]
    for state in (
        {"scores": [0, 1000, 500], "earned": np.array([0, 2, 0])},
        {"scores": "0,1000,500", "earned": "0,2,0", "passed": None},
    ):  # fmt: skip
        assert table[state] == right
    assert table[{**STATE, "earned": (0, 2, 1)}].source == "search"


def test_an_answer_shows_itself_in_a_terminal_and_in_a_notebook(table):
    answer = table[STATE]
    lines = str(answer).splitlines()
    assert lines[0].startswith(f"Play: {100 * answer['play'][1]:.1f}%, pass to player 3 ")
    assert lines[1] == "Player 2 is up; better by 40 points"
    assert lines[4].split()[-1] == f"{100 * answer['play'][2]:.1f}%" and lines[4][:4] == "play"
    assert lines[-3].endswith("scores=0,1000,500 earned=0,2,0 passed=0,0,0 whammies=0,0,0")
    evil = replace(answer, state={"scores": "<script>alert(1)</script>"})
    assert "<script>" not in evil._repr_html_() and "&lt;script&gt;" in evil._repr_html_()


def test_values_of_every_kind_of_frame_are_those_of_single_questions(table):
    states = [STATE, {"scores": "0,500,0", "earned": [0, 1, 0]},
              {"scores": (500, 500, 500), "earned": (2, 0, 0)}]  # fmt: skip
    more = {"best": True, "margin": True, "toss_up": True, "solve_id": True}
    answers = [table[state] for state in states]
    right = [[*a.value, a.best, a.margin, a.toss_up, a.origin.solve_id] for a in answers]
    result = table.values([{**state, "note": (1, 2)} for state in states], **more)
    ours = ["payoff_1", "payoff_2", "payoff_3", "best", "margin", "toss_up", "solve_id"]
    assert [[row[name] for name in ours] for row in result] == right
    assert all(row["note"] == (1, 2) for row in result)
    columns = {"scores_1": ["0", "0", "500"], "scores_2": [1000, 500, 500],
               "scores_3": [500, 0, 500], "earned": ["0,2,0", "0,1,0", "2,0,0"]}  # fmt: skip
    frame = pandas.DataFrame({**columns, "note": "mine"}, index=[5, 7, 9])
    got = table.values(frame, **more)
    assert list(got.index) == [5, 7, 9] and list(got.columns) == [*columns, "note", *ours]
    assert got[ours].to_numpy().tolist() == right and list(frame.columns) == [*columns, "note"]
    in_polars = table.values(polars.DataFrame(columns), **more)
    assert [list(row) for row in in_polars[ours].rows()] == right
    arrow = table.values(pa.table(columns), **more)
    assert [list(row.values()) for row in arrow.select(ours).to_pylist()] == right
    assert table.values(pa.table(columns)).column_names == [*columns, *ours[:3]]


@pytest.mark.parametrize("name", ["payoff_2", "best", "solve_id"])
@pytest.mark.parametrize("kind", [pandas.DataFrame, polars.DataFrame, pa.table, list])
def test_a_persons_own_column_is_never_overwritten(table, kind, name):
    rows = {"scores": ["0,500,0"], "earned": ["0,1,0"], name: ["mine"]}
    frame = [{key: cells[0] for key, cells in rows.items()}] if kind is list else kind(rows)
    with pytest.raises(luckbase.errors.OptionError, match=f"column {name}: is a column of the ans"):
        table.values(frame, best=True, solve_id=True)
    if name == "best":  # not asked for, not in the way
        assert list(table.values(pandas.DataFrame(rows))["best"]) == ["mine"]


def test_what_arrow_can_not_hold_is_read_or_refused_as_anything_else(table):
    rest = {"scores_1": [0], "scores_2": [500], "scores_3": [0], "own": [object()]}
    wide = polars.DataFrame({**rest, "scores_2": polars.Series([500], dtype=polars.Int128)})
    mixed = [{"scores": "0,500,0"}, {"scores": [0, 500.0, 0]}, {"scores": b"0,500,0"}]
    for frame in (pandas.DataFrame(rest), wide, pandas.DataFrame(mixed), mixed):
        rows = pandas.DataFrame(table.values(frame)) if frame is mixed else table.values(frame)
        assert set(rows["payoff_2"].to_numpy()) == {table[{"scores": (0, 500, 0)}].value[1]}
    objects = polars.DataFrame({"scores": polars.Series([object()], dtype=polars.Object)})
    for frame, wrong in [
        (7, "unknown type int; expected"),
        ([STATE, {**STATE, "scores": (0, 7, 0)}], "row 2: scores: 7 is not a multiple"),
        (objects, "row 1: scores: '<object object"),
        (polars.LazyFrame({"scores": ["0,0,0"]}), "of a LazyFrame collect"),
        (pandas.DataFrame([[0, 0]], columns=["scores", "scores"]), "two columns are called 'sco"),
        (pa.table([[0], [0]], names=["scores", "scores"]), "two columns are called 'scores'"),
        (pa.table([pa.array([0])], names=[b"scores\xff"]), "name of a column is not text in UTF-8"),
    ]:  # fmt: skip
        with pytest.raises(luckbase.LuckbaseError, match=wrong):
            table.values(frame)
    assert table.values([]) == []


@pytest.mark.parametrize(
    ("start", "wrong"),
    [([], "start: has no state"), (np.array([[0.5, 0, 0, 1]]), "array of float64"),
     (np.array([[1, 2]]), "array of int64"), (np.array([[0, 0, 0, 9]]), "is too large"),
     (pandas.DataFrame({"mine": [1.5], "yours": [0]}), "'1.5' is not a whole number")],
)  # fmt: skip
def test_a_start_that_is_no_state_is_one_sentence(start, wrong):
    with pytest.raises(luckbase.LuckbaseError, match=wrong):
        luckbase.evaluate("boards/pig/tiny.toml", start=start)


# --- all rows ----------------------------------------------------------------------------------


def test_all_rows_stream_in_batches_and_an_expression_filters_them(table):
    reader = table.to_arrow()
    assert isinstance(reader, pa.RecordBatchReader)
    sizes = [len(batch) for batch in reader]
    assert sum(sizes) == table.rows and max(sizes) < table.rows / 3
    some = table.to_arrow(pc.field("payoff_1") > 0.9, columns=["payoff_1", "part"]).read_all()
    assert some.column_names == ["payoff_1", "part"] and 0 < some.num_rows < table.rows
    assert pc.min(some["payoff_1"]).as_py() > 0.9 and set(some["part"].to_pylist()) == {"tiers"}


def test_row_groups_that_can_not_match_are_not_read(table, monkeypatch):
    from luckbase.cluster.store.parquet import TableFile

    read, true = [], TableFile.read
    monkeypatch.setattr(
        TableFile, "read", lambda self, *given: read.append(self.entry.rows) or true(self, *given)
    )
    table.to_arrow("spins=1 whammies_1=3").read_all()
    first = sum(read)
    read.clear()
    table.to_arrow().read_all()
    assert 0 < first < sum(read) / 20


def test_all_parts_stream_and_say_which_they_are(tmp_path):
    board = luckbase.load_board(TINY, frontier=1)
    full = luckbase.solve(board, results=tmp_path)
    below = luckbase.solve(board, STATE, results=tmp_path, workers=1)
    assert (full.searched, below.searched, full.table) == (False, True, below.table)
    with luckbase.open(board, results=tmp_path) as table:
        rows = table.to_arrow().read_all()
        parts = pc.value_counts(rows["part"]).to_pylist()
        (part,) = {each["values"] for each in parts} - {"tiers"}
        assert part.startswith("search-")
        assert {p["values"]: p["counts"] for p in parts} == {
            "tiers": full.states, part: below.states
        }  # fmt: skip
        assert rows.schema.field("payoff_1").type == pa.float64()
        search = table.to_arrow(f"part={part}").read_all()
        assert search.num_rows == below.states and search["spins"].null_count == below.states


# --- the other commands ------------------------------------------------------------------------

CALLS = {
    "query press-your-luck/tiny scores=0,1000,500 earned=0,2,0 --results RESULTS":
        lambda results: luckbase.open("press-your-luck/tiny", results=results)[STATE],
    "solve --dry-run press-your-luck/tiny --set frontier=1 --workers 1 --results none":
        lambda _: luckbase.plan(luckbase.load_board(TINY, frontier=1), workers=1, results="none"),
    "verify pig/tiny --sample 500 --seed 3 --results RESULTS":
        lambda results: luckbase.open(PIG, results=results).verify(500, seed=3),
    "evaluate pig/tiny --agents hold-at-5,optimal --gain":
        lambda _: luckbase.evaluate(PIG, "hold-at-5,optimal", gain=True),
    "evaluate pig/tiny mine=0 yours=10 turn=4":
        lambda _: luckbase.evaluate(PIG, start={"mine": 0, "yours": 10, "turn": 4}),
    "evaluate pig/tiny --agents hold-at-5 --games 2000 --seed 4":
        lambda _: luckbase.evaluate(PIG, "hold-at-5", games=2000, seed=4),
    "evaluate pig/tiny --agents hold-at-5,optimal --matrix":
        lambda _: luckbase.matrix(PIG, "hold-at-5,optimal"),
    "info skunk/tiny": lambda _: luckbase.info("skunk/tiny"),
}  # fmt: skip
"""Words of a command, and the same in Python."""


@pytest.mark.parametrize("words", CALLS)
def test_a_call_gives_what_its_command_prints_as_json(words, said, results):
    printed = said(*words.replace("RESULTS", str(results)).split())
    found = json.loads(json.dumps(CALLS[words](results).as_json()))
    found.pop("seconds", 0)  # how long it took
    assert found.items() <= printed.get("plan", printed).items()


def test_solve_is_the_commands(said, results, tmp_path):
    query = said("solve", PIG, "--results", results)
    result = luckbase.solve(PIG, results=results)
    assert (str(result.table), result.kept, result.states) == (query["table"], query["kept"], 0)
    below = said("solve", JACKPOT, "--from", "open=1,2,3", "--results", tmp_path)
    again = luckbase.solve(JACKPOT, {"open": (1, 2, 3)}, results=tmp_path)
    assert again.searched and again.kept == below["solved_now"] > 0
    both = luckbase.solve(JACKPOT, [{"open": "1,2,3"}, {"open": (2, 3)}], results=tmp_path)
    assert both.kept == 0 and both.states == below["solved_now"] and both.manifest.complete


def test_status_is_the_commands(results, command):
    _, out, _ = command("status", "--results", results, "--json")
    found = luckbase.status(results=results)
    assert [item.as_json() for item in found] == [*map(json.loads, out.splitlines())]
    (item,) = luckbase.status(str(PIG), results=results)
    assert (item.state, item.why) == ("complete", ()) and len(found) == 2


def test_diff_is_the_commands(results, said, table_of):
    other = table_of(PIG, goal=40)
    with luckbase.open(PIG, results=results) as first, luckbase.open(other) as last:
        result = first.diff(last, worst=3)
        query = said("diff", first.where, other, "--worst", 3, code=1)
    assert result.differs and len(result.worst) == 3
    assert json.loads(json.dumps(result.as_json())).items() <= query.items()


def test_chart_is_the_commands(results, command):
    _, out, _ = command("chart", PIG, "mine=0", "yours=10,11", "--results", results)
    with luckbase.open(PIG, results=results) as pig:
        chart = pig.chart(fields={"mine": 0, "yours": (10, 11)})
    assert "".join(f"{line}\n" for line in chart.lines) == out


def test_a_chart_of_the_lead_to_pass_takes_numbers_as_fields(table):
    created = table.chart("leads", {"spins": (1, 2), "third": 500})
    assert created.columns == ("rival_score", "spins_1", "spins_2")


def test_functions_and_open_tables_play_as_agents(results):
    def hold(game, player, state, actions):
        return [game.action_name(a) for a in actions].index("hold")

    with luckbase.open(PIG, results=results) as pig:
        best = luckbase.evaluate(PIG, ["optimal", "optimal"]).value
        assert luckbase.evaluate(PIG, [pig, pig]).value == pytest.approx(best, abs=1e-12)
        assert luckbase.evaluate(PIG, [pig.agent(), hold]).value[0] > best[0]
        assert luckbase.evaluate(PIG, [pig, hold]).agents[1] == "hold"
        with pytest.raises(luckbase.errors.OptionError, match="not of this board"):
            luckbase.evaluate(BOARDS / "pig/piglet.toml", [pig])
    with pytest.raises(luckbase.errors.OptionError, match="7 is not an agent"):
        luckbase.evaluate(PIG, [7])


def test_play_is_the_commands(results, command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("roll\n" * 40))
    printed = command("play", PIG, "--seed", "3", "--results", results)[1].splitlines()
    with luckbase.play(PIG, seed=3, results=results) as play:
        lines = play.through(lambda play: "roll")
    assert lines[-1] in printed and play.over
    assert [line for line in lines if not line.endswith("? ")] == [
        line for line in printed[3 : 3 + len(lines)] if "? " not in line
    ]
    with luckbase.open(PIG, results=results) as pig:
        same = pig.play(seed=3)
        assert same.through(lambda play: "roll") == lines
        assert pig.play({"mine": 3, "yours": 9}, seat=2, hints=True).shown["mine"] == 3
        with pytest.raises(luckbase.errors.OptionError, match="there is no player 3"):
            pig.play(seat=3)


def test_graph_is_the_commands(command):
    picture = luckbase.graph(JACKPOT, labels="actions")
    assert str(picture) == command("graph", JACKPOT, "--labels", "actions")[1]
    assert len(picture.diagram.nodes) > 5


# --- opening -----------------------------------------------------------------------------------


def test_roots_are_one_state_or_several_of_the_games_width():
    game = load_game(luckbase.load_board(JACKPOT))
    root = game.needed_start()
    for right in (root, root[None], np.stack([root, root])):
        result = roots_of(game, right)
        assert result is not None and (result == root).all() and result.ndim == 2
    for wrong in (root[:-1], np.append(root, 0), root[:, None], root[:0], root.astype(float)):
        with pytest.raises(luckbase.errors.StateError, match="expected canonical states"):
            roots_of(game, wrong)


def test_a_table_of_exactly_the_limit_is_kept_in_memory(monkeypatch):
    with luckbase.open(PIG, in_memory=True) as table:
        rows = table.rows
    monkeypatch.setattr(inputs, "MAX_IN_MEMORY", rows)  # no option
    luckbase.open(PIG, in_memory=True).close()
    monkeypatch.setattr(inputs, "MAX_IN_MEMORY", rows - 1)
    with pytest.raises(luckbase.errors.MemoryLimitError, match="too many to keep in memory"):
        luckbase.open(PIG, in_memory=True)


def test_a_board_without_a_table_is_solved_in_memory_only_when_asked(tmp_path):
    board = luckbase.load_board(PIG)
    for what, wrong in (
        (PIG, "no table of this board"),
        (board, "solve it first, or give in_memory=True"),
    ):
        with pytest.raises(luckbase.errors.MissingTableError, match=wrong):
            luckbase.open(what, results=tmp_path)
    with luckbase.open(board, results=tmp_path, in_memory=True) as table:
        assert table[{"mine": 0, "yours": 10}].best == "roll"
    assert list(tmp_path.iterdir()) == []


def test_options_are_of_a_board_file_and_not_of_a_board():
    with pytest.raises(luckbase.errors.OptionError, match="the board is there already"):
        luckbase.open(luckbase.load_board(PIG), goal=30)
