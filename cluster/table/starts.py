"""States that a person gives to start from, however he says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game


def roots_of(game: Game, start: Any) -> Ints | None:
    """Canonical states (m, fields): of a mapping, a list of them, a frame (`cluster.table.frames`),
    or an array of canonical states; None where nothing is given. Raises StateError, OptionError."""
    if start is None:
        return None
    if isinstance(start, Mapping):
        start = [start]
    if isinstance(start, np.ndarray):
        found = _of_array(game, start)
    elif isinstance(start, list | tuple):
        found = np.array([game.parse(one) for one in start]).reshape(-1, game.field_count)
    else:
        from luckbase.cluster.table.frames import states_of

        found = states_of(game, start)
    if not len(found):
        raise StateError(f"start: has no state; write one as {game.fields.example}")
    return found


def _of_array(game: Game, start: Ints) -> Ints:
    if start.dtype.kind not in "iu" or not start.size or start.shape[-1:] != (game.field_count,):
        raise StateError(
            f"start: an array of {start.dtype} {start.shape} is no array of canonical states, "
            f"int64 (n, {game.field_count})"
        )
    return game.canonical_states(game.fields.values(start))
