"""One dashboard over a month of views, and one browser, for all tests of the page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from shared.schemas.alerts.event import AlertEvent
from shared.topics import BEACONS, LIVE, REJECTED
from tests.integration import page_alerts
from tests.integration.brokers import broker_with_topics
from tests.integration.dashboard_parts import WATCHER
from tests.integration.page.looking import Seen, logged_in
from tests.integration.page_parts import (
    CHROMIUM_ARGS,
    Looked,
    looked_at,
)


@pytest.fixture(scope="package")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    folder = tmp_path_factory.mktemp("page")
    with broker_with_topics(folder / "broker", [LIVE, BEACONS, REJECTED]) as broker, looked_at(folder, broker) as made:
        yield made


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_ARGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def context(browser: Browser, looked: Looked) -> Iterator[BrowserContext]:
    made = logged_in(browser, looked, WATCHER)
    yield made
    made.close()


@pytest.fixture
def seen(context: BrowserContext, looked: Looked) -> Iterator[Seen]:
    """A page; a test fails when it logs an error or asks anybody else for anything."""
    page = context.new_page()
    errors: list[str] = []
    strangers: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: strangers.append(request.url) if looked.url not in request.url else None)
    yield Seen(page, looked.url)
    page.close()
    assert errors == []
    assert strangers == []


@pytest.fixture(scope="package")
def incident(looked: Looked) -> AlertEvent:
    """An incident of this hour."""
    return page_alerts.landed(looked.installation.postgres.dsn, looked.now_ms)
