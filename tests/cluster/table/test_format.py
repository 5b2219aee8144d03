"""What a file of a table says of itself (docs/reference/table-format.md)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import luckbase
from tests.places import BOARDS


@pytest.mark.parametrize(
    ("board", "settings"),
    [("press-your-luck/tiny", {"frontier": 1}), ("pig/tiny", {}), ("jackpot/tiny", {})],
)
def test_a_footer_says_format_game_tier_and_error(
    board: str, settings: dict[str, int], tmp_path: Path
) -> None:
    read = luckbase.load_board(BOARDS / f"{board}.toml", **settings)
    solved = luckbase.solve(read, results=tmp_path)
    for name, entry in solved.ledger.files.items():
        about = pq.read_metadata(solved.table / name).metadata
        tier = Path(name).stem
        assert about[b"luckbase.format"] == b"3"
        assert about[b"luckbase.game"].decode() == board.partition("/")[0]
        assert about[b"luckbase.tier"].decode() == (tier if "spins" in tier else "")
        assert float(about[b"luckbase.payoff_error"]) == entry.error
