"""What is asked of the stages below some roots, and what is found there, in boxes."""

import numpy as np

from luckbase.solver.search.keys import NO_KEYS, pack_all
from luckbase.solver.search.stages import CACHED, WHOLE, BoxSearch, Stage, Stages
from tests import solving
from tests.places import BOARDS


def find_boxes(stages, level, requested, *, most=CACHED):
    """What of a level lies below requested keys, in boxes, as shards are found: one with more than
    `most` states is cut, and its parts are found."""
    runs, boxes, todo = [stages.runs_of(keys) for keys in requested], list[Stage](), [WHOLE]
    while todo:
        box = todo.pop(0)
        inside = [some.only(stages.within(some, box)) for some in runs]
        search = BoxSearch(stages, level, [some for some in inside if len(some.keys)], box)
        if parts := search.run(max_states=most):
            todo = [*parts, *todo]
            continue
        boxes.append(search.stage())
        runs += [some for number, some in boxes[-1].requests if number >> 32 == level]
    return boxes


def tiny(start):
    """The stages of the tiny board, and the key of a state."""
    game = solving.load_game(solving.load_board(BOARDS / "press-your-luck/tiny.toml"))
    level = game.level
    return Stages(game, level), pack_all(game.strides, game.parse(start).reshape(1, -1))


def found_of(stages, root, down):
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
        for box in find_boxes(stages, level, list(asked.values())):
            numbers = stages.of(box.keys)
            for stage in np.unique(numbers).tolist():
                found[stage] = np.union1d(found.get(stage, NO_KEYS), box.keys[numbers == stage])
            for stage, runs in box.requests:
                wanted.setdefault(stage, []).append(runs.all_keys())
    return asked, found


def find_stage(stages, level, requested, stop=lambda: False):
    """The stage of a level at and below requested keys, lists of them, in one piece."""
    search = BoxSearch(stages, level, [stages.runs_of(keys) for keys in requested])
    search.run(stop)
    return search.stage()
