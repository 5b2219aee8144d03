"""What is asked of each stage below a root of the tiny board, and what is found there."""

from __future__ import annotations

import numpy as np

from luckbase import solver
from luckbase.solver.game.capabilities import SearchHints
from luckbase.solver.search.find_stages import expand_level
from luckbase.solver.search.keys import NO_KEYS, Keys, pack_all
from luckbase.solver.search.stages import Stages
from tests.places import BOARDS


def tiny(start: dict[str, str]) -> tuple[Stages, Keys]:
    """The stages of the tiny board, and the key of a state."""
    game = solver.load_game(solver.load_board(BOARDS / "press-your-luck/tiny.toml"))
    level = game.own(SearchHints).level
    assert level is not None
    return Stages(game, level), pack_all(game.strides, game.parse(start).reshape(1, -1))


def found_of(stages: Stages, root: Keys, down: int) -> tuple[dict[int, Keys], dict[int, Keys]]:
    """What is asked of each stage of the level so far below a root, and what is found there."""
    wanted, found = {int(stages.of(root)[0]): [root]}, {}
    for _ in range(down + 1):
        level = max(stage >> 32 for stage in wanted)
        asked = {
            stage: np.unique(np.concatenate(wanted.pop(stage)))
            for stage in list(wanted)
            if stage >> 32 == level
        }
        found = {}
        for box in expand_level(stages, level, list(asked.values())):
            numbers = stages.of(box.keys)
            for stage in np.unique(numbers).tolist():
                found[stage] = np.union1d(found.get(stage, NO_KEYS), box.keys[numbers == stage])
            for stage, runs, _ in box.requests:
                wanted.setdefault(stage, []).append(runs.all_keys())
    return asked, found
