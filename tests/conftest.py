"""Settings of the test run: no deadlines, which only say how busy the machine is, and no word of
compiling."""

import pytest
from hypothesis import settings

settings.register_profile("luckbase", deadline=None)
settings.load_profile("luckbase")


@pytest.fixture(autouse=True)
def _no_word_of_compiling(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command says must not depend on which test is the first to compile something."""
    if request.module.__name__ != "tests.jobs.test_compiling":
        monkeypatch.setattr("luckbase.jobs.terminal.compiling.A_MOMENT", float("inf"))
