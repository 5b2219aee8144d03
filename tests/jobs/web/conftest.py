"""What tests of the server share."""

import pytest

from tests.places import BOARDS

# --- of the page, for test files that import `browsing` ------------------------------------------


@pytest.fixture(scope="session")
def tables(web_results, table_of):
    """The table of each game's tiny board, and "other": one with another rule,
    "finer": one with other scores."""
    result = {path.parts[-3]: path for path in web_results.glob("*/tiny/*")}
    board = BOARDS / "press-your-luck/tiny.toml"
    result["other"] = table_of(board, frontier=2, third_place_spins=False)
    result["finer"] = table_of(board, frontier=1, score_unit=250, score_cap=1500)
    return result


@pytest.fixture(scope="session")
def site(tables):
    """The address of a server of these tables, which has them below /some/where too."""
    from tests.jobs.web import serving

    with serving.listening(*tables.values(), below="/some/where") as address:
        yield f"{address}/"


@pytest.fixture(scope="module")
def browser():
    """A browser; of a module, for its loop would be in the way of the tests of others."""
    from tests.jobs.web import browsing

    with browsing.chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def windows(browser):
    """windows(**settings) -> a new tab of a window with these settings; those of one kind are one
    window, for each takes a second, and no tab knows what another one keeps."""
    created = {}

    def tab(**settings):
        if repr(settings) not in created:
            window = created[repr(settings)] = browser.new_context(**settings)
            window.set_default_timeout(60_000)  # the first answer may wait for what is compiled
        return created[repr(settings)].new_page()

    yield tab
    for window in created.values():
        window.close()


@pytest.fixture
def visitor(windows, site, request):
    """A visitor whose console stays empty; `indirect` parameters are of the window."""
    from tests.jobs.web import browsing

    window = {"viewport": {"width": 1200, "height": 900}, **getattr(request, "param", {})}
    visiting = browsing.Visitor(windows(**window), site)
    yield visiting
    visiting.page.close()
    assert visiting.said == []


@pytest.fixture(scope="session")
def address(tables):
    """address(game, view, query) -> the address of a view."""
    from tests.jobs.web import browsing

    def of(game, view="state", query=None):
        question = browsing.STATES[game] if query is None else query
        return f"tables/{browsing.id_of(tables[game])}/{view}" + (
            f"?{question}" if question else ""
        )

    return of
