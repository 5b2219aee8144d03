"""Why a table is stale, as sentences: what it was solved from against what stands there now."""

from __future__ import annotations

from pathlib import Path

from cluster.manifest import Manifest, solve_id
from solver import load_game
from solver.board import canonical, differences, read_board
from solver.errors import LuckbaseError


def why_stale(manifest: Manifest) -> list[str]:
    """What has changed since the table was solved; empty where solving again changes nothing.

    The board is read again from the file that it came from, with the options of that solve.
    """
    path = Path(manifest.board_file)
    try:
        game = load_game(read_board(path, manifest.settings))
    except LuckbaseError as error:
        return [f"its board can not be read any more: {error}"]
    return what_changed(manifest, canonical(game.board), game.rules_version) or (
        []
        if solve_id(game, manifest.roots) == manifest.solve_id
        else ["the format of tables has changed"]
    )


def what_changed(manifest: Manifest, board: dict[str, object], rules_version: int) -> list[str]:
    """The differences between the table's board and rules and the given ones, a sentence each."""
    changed = differences(manifest.canonical, board)
    if rules_version != manifest.rules_version:
        changed.append(f"the rules are version {rules_version}, were {manifest.rules_version}")
    return changed
