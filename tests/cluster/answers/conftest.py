"""Tables in memory that several modules look at."""

from contextlib import ExitStack
from functools import cache

import pytest

import luckbase
from tests.places import BOARDS

SMALL = {"press-your-luck/tiny": {"frontier": 2}, "goofspiel/win": {"cards": 4}}


@pytest.fixture(scope="session")
def in_memory():
    """in_memory(board) -> an open table of it, solved once; of some boards a smaller one."""
    with ExitStack() as stack:

        def opened(board):
            options = SMALL.get(board, {})
            table = luckbase.open(BOARDS / f"{board}.toml", in_memory=True, **options)
            return stack.enter_context(table)

        yield cache(opened)
