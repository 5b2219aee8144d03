"""States that a person gives to start from, however he says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from luckbase.cluster.words import typed
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game


def roots_of(game: Game, start: Any) -> Ints | None:
    """Canonical states (m, fields): of a mapping, a list of them, a frame (`cluster.table.frames`),
    or an array of canonical states; None where nothing is given. Raises StateError, OptionError."""
    if start is None:
        return None
    if isinstance(start, np.ndarray):
        return np.ascontiguousarray(start, np.int64).reshape(-1, game.field_count)
    if isinstance(start, Mapping):
        return game.parse(typed(start)).reshape(1, -1)
    if isinstance(start, list | tuple):
        return np.stack([game.parse(typed(one)) for one in start])
    from luckbase.cluster.table.frames import states_of

    return states_of(game, start)
