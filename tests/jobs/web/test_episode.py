"""The page of a game that was written down: what is on it can be read by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import luckbase
from luckbase.jobs.web.report import episode_page as page
from tests.jobs.web.browsing import faults
from tests.places import BOARDS


def test_a_page_has_no_fault_at_any_width(browser: Any, tmp_path: Path) -> None:
    episode = luckbase.episode(BOARDS / "press-your-luck/episodes/tiny.txt", max_states=100)
    file = tmp_path / "page.html"
    file.write_text(page(episode), encoding="utf-8")
    window = browser.new_context(bypass_csp=True).new_page()
    window.goto(file.as_uri())
    assert faults(window) == []
    assert "no price" in window.inner_text("main")
    window.context.close()
