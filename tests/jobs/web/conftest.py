"""What tests of the server share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.jobs.web import serving


@pytest.fixture(scope="session")
def web_results(run_folder: Path) -> Path:
    """A results folder with every game's tiny table; to be looked at only."""
    return serving.solved(run_folder)


@pytest.fixture(scope="module")
def client(web_results: Path) -> Iterator[TestClient]:
    """A client of a server of all of them."""
    with serving.asking(web_results, open_tables=len(serving.GAMES)) as found:
        yield found
