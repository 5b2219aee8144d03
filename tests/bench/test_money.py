"""What playing for money changes: the published lines are those that the program prints."""

from __future__ import annotations

from pathlib import Path

from tests.bench.money import OBJECTIVES, passes, spans

PAGE = Path(__file__).parents[2] / "results" / "published" / "press-your-luck-money.md"


def test_the_published_leads_are_what_is_printed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ("win", "money"):
        found = spans(passes(1, 6000, **OBJECTIVES[name]))
        assert f"    1   6,000  {name:28} {found}\n" in text
    assert found == "7,000 to 13,000"
