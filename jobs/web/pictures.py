"""States as pictures: the game's scene as SVG, which a page puts in as it is."""

from __future__ import annotations

from collections.abc import Mapping

from luckbase.jobs.web.scene_svg import svg
from luckbase.solver.game.game import Game
from luckbase.solver.game.scenes import scene_of


def drawing(game: Game, words: Mapping[str, object]) -> str:
    """The state in a person's words, drawn as the game looks. Raises StateError."""
    return svg(scene_of(game, words))
