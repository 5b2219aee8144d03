"""Searches that several test files compare with: in one piece, and by stages in small shards."""

import pytest

from tests.cluster.search.searches import WIDE, by, cut_small, search, tiny


@pytest.fixture
def small(monkeypatch):
    """Small shards."""
    cut_small(monkeypatch)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """What lies below WIDE in one piece."""
    return search(tmp_path_factory.mktemp("whole"), tiny().parse(WIDE)[None])


@pytest.fixture(scope="session")
def staged(tmp_path_factory):
    """The same search by stages, in small shards."""
    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch)
        return by(tmp_path_factory.mktemp("staged"), workers=1)
