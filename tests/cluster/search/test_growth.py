"""A large table grows by another root: what it has of each stage is read as the stage is met."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luckbase import cluster
from luckbase.cluster.run.progress import Solved
from luckbase.cluster.run.worker import NotSeenError, TableLocation
from luckbase.cluster.search import solve as searching
from luckbase.cluster.search.boundary import read_rows
from luckbase.cluster.search.stages import STORED_BYTES, StageSearch
from luckbase.cluster.table.entries import read_ledger
from luckbase.cluster.table.keyed import KeyPart
from luckbase.cluster.table.ledger import SEARCH
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.verify import check_files, check_residuals
from luckbase.solver.errors import SearchLimitError, WorkerError
from luckbase.solver.game.capabilities import SearchHints
from luckbase.solver.search.find_stages import RisingError
from luckbase.solver.search.keys import unpack_all
from luckbase.solver.search.stages import WHOLE, Box, Stages
from tests.cluster.search.searches import WIDE, files_of, rows_of, search, tiny

pytestmark = pytest.mark.usefixtures("small")

MORE = {"scores": "0,1000,500", "earned": "1,2,2", "whammies": "3,3,2"}
"""Below it lies much of what is below the other root, and more."""


def grown(results: Path, words: dict[str, object], **how: Any) -> Solved:
    return search(results, tiny().parse(words)[None], **{"one_piece": 0, **how})


def test_nothing_is_gone_through_before_and_no_process_has_all_that_is_there(
    finds: list[Any], limits: list[int], tmp_path: Path
) -> None:
    first = grown(tmp_path / "grown", WIDE)
    assert not any(task.job.stored for task in finds)
    finds.clear()
    limits.clear()
    second = grown(tmp_path / "grown", MORE)
    assert limits == [1], "a look whether it is small, no more"
    there = {entry.name for entry in first.ledger.files.values()}
    held = [{entry.name for entry in task.job.stored} for task in finds]
    assert any(held) and all(one < there for one in held) and not all(held)
    assert not any(len(task.job.known[0]) for task in finds)
    both = np.array([tiny().parse(words) for words in (WIDE, MORE)])
    whole = search(tmp_path / "whole", both)
    assert first.states + second.states == whole.states > 1.1 * first.states
    assert rows_of(second.table) == rows_of(whole.table)
    with cluster.open_table(second.table) as table:
        assert check_files(table) == [] and check_residuals(table, None).faults == 0


def test_of_a_stage_that_is_there_only_what_may_be_met_is_read(
    finds: list[Any], tmp_path: Path
) -> None:
    """No function rises inside a stage, so what lies above all that is asked can not be met; the
    rows of the files that are read count as memory."""
    grown(tmp_path, WIDE)
    finds.clear()
    solved = grown(tmp_path, {**WIDE, "scores": "0,500,500"})
    read = [task for task in finds if task.job.stored]
    assert all(task.memory > STORED_BYTES * task.job.stored[0].rows for task in read)
    every = KeyPart(Folder(solved.table), solved.table, solved.ledger, SEARCH, tiny()).entries
    assert min(len(task.job.stored) for task in read) < sum(
        bool(set(entry.stages) & set(read[0].job.shard.stages)) for entry in every
    )


def test_a_limit_is_said_before_anything_is_touched(tmp_path: Path) -> None:
    table = grown(tmp_path, WIDE).table
    before = files_of(table), read_ledger(Folder(table), table).lines()
    with pytest.raises(SearchLimitError):
        grown(tmp_path, MORE, one_piece=10**6, max_states=20)
    assert files_of(table) == before[0]
    assert read_ledger(Folder(table), table).lines() == before[1]


def test_a_task_that_does_not_see_its_files_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of workers that can not be handed them: threads."""
    grown(tmp_path, WIDE)

    def not_seen(location: TableLocation, names: list[str], sent: object) -> None:
        raise NotSeenError(tuple(names))

    monkeypatch.setattr(TableLocation, "source", not_seen)
    with pytest.raises(WorkerError, match="are not to be seen"):
        grown(tmp_path, MORE)


def test_workers_do_not_change_its_bytes(tmp_path: Path) -> None:
    for name, workers in (("one", 1), ("two", 2)):
        grown(tmp_path / name, WIDE, workers=workers)
        grown(tmp_path / name, MORE, workers=workers)
    one, two = (files_of(next((tmp_path / name).glob("*/*/*"))) for name in ("one", "two"))
    assert one == two


def test_a_machine_that_does_not_see_the_files_asks_for_them_and_finds_the_same(
    finds: list[Any], asks_stay: None, tmp_path: Path
) -> None:
    grown(tmp_path, WIDE)
    finds.clear()
    table = grown(tmp_path, MORE).table
    (table / "here").touch()
    some = [task for task in finds if task.job.stored]
    assert some
    for task in some:
        here = replace(task.job, location=TableLocation(table, "here"))
        *_, (seen, _) = here.run((), {}, None, lambda: False)
        away = replace(task.job, location=TableLocation(table, "away"))
        with pytest.raises(NotSeenError) as not_seen:
            list(away.run((), {}, None, lambda: False))
        sent = {name: (table / name).read_bytes() for name in not_seen.value.names}
        *_, (found, content) = away.run((), sent, None, lambda: False)
        assert content is None and found.stage_file == seen.stage_file  # on its own disk
        assert replace(found.entry, seconds=0.0) == replace(seen.entry, seconds=0.0)


def test_one_that_was_stopped_goes_on(
    finds: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(tmp_path, WIDE)
    with monkeypatch.context() as patched:
        patched.setattr(StageSearch, "_up", lambda run: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            grown(tmp_path, MORE)
    finds.clear()
    solved = grown(tmp_path, MORE)
    assert not finds and solved.states


def test_what_was_solved_in_one_piece_is_known_too(finds: list[Any], tmp_path: Path) -> None:
    first = grown(tmp_path / "grown", WIDE, one_piece=10**6)
    second = grown(tmp_path / "grown", MORE)
    assert not any(task.job.stored for task in finds) and any(
        len(task.job.known[0]) for task in finds
    )
    whole = search(tmp_path / "whole", np.array([tiny().parse(w) for w in (WIDE, MORE)]))
    assert first.states + second.states == whole.states
    assert rows_of(second.table) == rows_of(whole.table)


def test_a_level_that_does_not_hold_leaves_no_key_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search goes on in one piece, and looks for what is known as such a one does."""
    grown(tmp_path / "grown", WIDE)

    def rises(run: StageSearch) -> Solved:
        raise RisingError("an edge rises")

    level, goes_by = searching._Search._level_of_stages, KeyPart.goes_by
    declared = tiny().own(SearchHints).level
    assert declared is not None
    with monkeypatch.context() as patched:
        patched.setattr(StageSearch, "run", rises)
        patched.setattr(
            searching._Search, "_level_of_stages",
            lambda run: replace(level(run), found=True),  # type: ignore[type-var]
        )  # fmt: skip
        patched.setattr(searching._Search, "_forget_stages", lambda run: None)
        patched.setattr(KeyPart, "goes_by", lambda part, _: goes_by(part, declared))
        second = grown(tmp_path / "grown", MORE)
    whole = search(tmp_path / "whole", np.array([tiny().parse(w) for w in (WIDE, MORE)]))
    assert rows_of(second.table) == rows_of(whole.table)


@pytest.fixture
def opened(tmp_path: Path) -> tuple[KeyPart, Stages]:
    solved = grown(tmp_path / "held", WIDE)
    part = KeyPart(Folder(solved.table), solved.table, solved.ledger, SEARCH, tiny())
    stages = Stages(tiny(), tiny().own(SearchHints).level)  # type: ignore[arg-type]
    assert part.goes_by(stages.level)
    return part, stages


def test_each_stage_has_its_files_and_those_of_a_box_the_rows_that_lie_there(
    opened: tuple[KeyPart, Stages],
) -> None:
    part, stages = opened
    folder = part.groups.storage
    keys, payoffs = read_rows(folder, part.where, part.entries, stages.game)
    of, places = stages.of(keys), stages.inside.values(stages.inside.of(keys))
    assert len(keys) == sum(entry.rows for entry in part.entries)
    assert {bool(entry.boxes) for entry in part.entries} == {True, False}, "none: all of a stage"
    assert not any([WHOLE.low, WHOLE.high] in entry.boxes for entry in part.entries)
    fewer = 0
    for number in np.unique(of).tolist():
        mine = of == np.uint64(number)
        middle = np.median(places[mine], axis=0).astype(np.int64)
        low = Box(stages.inside.word(places.min(axis=0)), stages.inside.word(middle))
        every = part.files_in([number], WHOLE)
        for box in (WHOLE, low):
            here = mine if box.whole else mine & (places <= middle).all(axis=1)
            some = part.files_in([number], box)
            found, values = read_rows(folder, part.where, some, stages.game)
            at = np.searchsorted(found, keys[here])
            assert np.array_equal(found[at], keys[here])
            assert np.array_equal(values[at], payoffs[here])
            fewer += len(some) < len(every)
    assert fewer
    with cluster.open_table(part.where) as table:
        assert np.array_equal(table.lookup(unpack_all(stages.game.strides, keys))[0], payoffs)


def test_stages_of_another_level_are_not_taken_for_these(
    opened: tuple[KeyPart, Stages],
) -> None:
    part, stages = opened
    other = replace(stages.level, inside=())
    assert not part.goes_by(other)
    none = KeyPart(part.groups.storage, part.where, part.ledger, SEARCH, tiny())
    none.entries = []
    assert none.goes_by(other)
