"""Searches that several test files compare with: in one piece, and by stages in small shards."""

from __future__ import annotations

from typing import Any

import pytest

from luckbase.cluster.run.progress import Solved
from luckbase.cluster.run.worker import Task
from luckbase.cluster.search import boundary
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.table.storage import Folder
from tests.cluster.search.searches import WIDE, by, cut_small, search, tiny


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shards."""
    cut_small(monkeypatch)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Solved:
    """What lies below WIDE in one piece."""
    return search(tmp_path_factory.mktemp("whole"), tiny().parse(WIDE)[None])


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Solved:
    """The same search by stages, in small shards."""
    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch)
        return by(tmp_path_factory.mktemp("staged"), workers=1)


@pytest.fixture
def finds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks to find a shard that are handed out, as they are."""
    found: list[Task] = []
    make = StageSearch._task_to_find

    def task(run: StageSearch, *given: Any) -> Task:
        found.append(make(run, *given))
        return found[-1]

    monkeypatch.setattr(StageSearch, "_task_to_find", task)
    return found


@pytest.fixture
def asks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """What shards ask is not deleted when all is solved: their tasks can be done again."""
    delete = Folder.delete

    def kept(folder: Folder, name: str) -> None:
        if not name.endswith(".asks"):
            delete(folder, name)

    monkeypatch.setattr(Folder, "delete", kept)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits with which what is known was looked for before a search."""
    found: list[int] = []
    known = boundary.known_payoffs

    def limited(*given: Any) -> Any:
        found.append(given[-1])
        return known(*given)

    monkeypatch.setattr(boundary, "known_payoffs", limited)
    return found
