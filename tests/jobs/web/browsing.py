"""A person's browser on the page, for the tests of its views, and what must hold of every view.

A test file of views imports this; where there is no Chromium or no playwright, which drives it,
its tests are skipped.
"""

import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed; pip install playwright drives it"
)
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python judges views"
)
pytest.importorskip("uvicorn", reason="uvicorn is not installed; pip install '.[web]'")
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")  # the first takes half as much
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
if CHROMIUM is None:
    pytest.skip("no Chromium is installed; apt-get install chromium", allow_module_level=True)
expect = playwright.expect
expect.set_options(timeout=60_000)  # the first answer may wait for what is compiled

STATES = {
    "press-your-luck": "scores=500,1000,500&earned=0,2,0",
    "goofspiel": "mine=1,3,4&theirs=1,2,4&deck=1,2,4&upcard=2",
    "jackpot": "open=1,2,3,4&dice=4",
    "pig": "mine=3&yours=8&turn=4",
    "skunk": "mine=3&yours=8&turn=4",
}
"""A state of each in which somebody has a choice."""


@contextmanager
def chromium():
    """A browser without a window."""
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM,
            args=["--headless", "--no-sandbox", "--renderer-process-limit=1"],  # each takes .2 s
        )
        yield browser
        browser.close()


class Visitor:
    """One person's browser window, and what its console said."""

    def __init__(self, page, site):
        self.page, self.site = page, site
        self.said = []
        self.asked = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))

    def go(self, address):
        """Open an address of the server."""
        self.page.goto(self.site + address)
        return self.page

    def drawn(self):
        """Wait until the answer to a changed form is there."""
        expect(self.page.locator("main:not([aria-busy])")).to_be_visible()

    def fields(self):
        """The state in the address."""
        return dict(parse_qsl(urlsplit(self.page.url).query))


def follow(page, link):
    """Click a link or send a form, and wait for the next page with its styles."""
    with page.expect_navigation():
        link.click()


def id_of(table):
    return "~".join(table.parts[-3:])


def numbers(part):
    """The payoffs that a part of the page shows, as they were sent."""
    return [float(each.get_attribute("value")) for each in part.locator("data").all()]


def only_refusals(visitor):
    """Chromium itself writes a line for a 400 that was meant; there is no other."""
    assert all("400 (Bad Request)" in line or "404 (Not Found)" in line for line in visitor.said)
    visitor.said.clear()


# --- what must hold of every view -----------------------------------------------------------------

WINDOWS = [
    (width, high, scheme)
    for width, high in ((390, 844), (320, 640), (1440, 900))
    for scheme in ("light", "dark")
]
LOOK = (Path(__file__).parent / "look.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OF_WIDTHS = ["target-size", "scrollable-region-focusable"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe-core that depend on the width, or on the theme; all others are asked once.
Those of colours, which take longer than all others, are asked once a theme, in the dark at the
widest; `look.js`, which measures contrast too, is asked at all."""


def faults(page):
    """What is wrong with the view that a page shows, in sentences: in the eyes of axe-core and of
    `look.js`, with all unfolded, in both themes at 320, 390 and 1440 wide. The window is left at
    the last."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate(axe.Axe().axe_script)
    result, grounds = [], set()
    for width, high, scheme in WINDOWS:
        page.set_viewport_size({"width": width, "height": high})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        query = {WINDOWS[0]: TAGS, WINDOWS[-1]: OF_COLOURS}.get(
            (width, high, scheme), OF_WIDTHS if scheme == "light" else []
        )
        seen = page.evaluate(LOOK)
        seen["moves where motion is unwelcome"] = page.evaluate(RUNNING)
        grounds.add(seen.pop("ground"))
        at = f"at {width}, {scheme}"
        result += [f"{at}: {name}: {what}" for name, what in seen.items() if what]
        for each in page.evaluate(AXE, query) if query else ():
            where = "; ".join(node["html"][:90] for node in each["nodes"][:3])
            result.append(f"{at}: {each['id']}: {each['help']}: {where}")
    if len(grounds) != 2:
        result.append(f"light and dark have one ground: {grounds}")
    return result


RUNNING = "document.getAnimations().filter(one => one.playState === 'running').length"
AXE = """asked => axe.run(document, {resultTypes: ["violations"], runOnly: asked})
  .then(said => said.violations)"""
