"""One dashboard that has nothing at first, and one browser, for all tests of this folder, in the order of their files' names."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.integration.dashboard.dashboard_parts import WATCHER, Installation, at_work
from tests.integration.parts.browsing import SOON_MS, chromium, undisturbed


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with at_work(tmp_path_factory.mktemp("dashboard"), tmp_path_factory.mktemp("dashboard-postgres")) as made:
        yield made


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="package")
def logged_in(browser: Browser, installation: Installation) -> Iterator[BrowserContext]:
    """A browser of somebody who has logged in."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    opened = context.new_page()
    opened.goto(installation.login_url())
    expect(opened.locator("#account")).to_contain_text(WATCHER, timeout=SOON_MS)
    opened.close()
    yield context
    context.close()


@pytest.fixture
def page(logged_in: BrowserContext, installation: Installation) -> Iterator[Page]:
    """The dashboard's page; a test fails when it logs an error or asks anybody else for anything."""
    with undisturbed(logged_in, installation.url) as opened:
        opened.goto(installation.url)
        yield opened
