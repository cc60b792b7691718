"""One dashboard over a month of views, and one browser, for all tests of the page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from shared.schemas.alerts.event import AlertEvent
from shared.topics import BEACONS, LIVE, REJECTED
from tests.integration.dashboard.dashboard_parts import WATCHER
from tests.integration.page import page_alerts
from tests.integration.page.looking import Seen, logged_in
from tests.integration.page.page_parts import Looked, looked_at
from tests.integration.parts.brokers import broker_with_topics
from tests.integration.parts.browsing import chromium, undisturbed


@pytest.fixture(scope="package")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    folder = tmp_path_factory.mktemp("page")
    with broker_with_topics(folder / "broker", [LIVE, BEACONS, REJECTED]) as broker, looked_at(folder, broker) as made:
        yield made


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="package")
def context(browser: Browser, looked: Looked) -> Iterator[BrowserContext]:
    made = logged_in(browser, looked, WATCHER)
    yield made
    made.close()


@pytest.fixture
def seen(context: BrowserContext, looked: Looked) -> Iterator[Seen]:
    """A page; a test fails when it logs an error or asks anybody else for anything."""
    with undisturbed(context, looked.url) as page:
        yield Seen(page, looked.url)


@pytest.fixture(scope="package")
def incident(looked: Looked) -> AlertEvent:
    """An incident of this hour."""
    return page_alerts.landed(looked.installation.postgres.dsn, looked.now_ms)
