"""One dashboard over a month of views, and one browser, for all tests of the page."""

from collections.abc import Iterator

import psycopg
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from services.accounts.commands import make_tenant
from shared.schemas.alerts.event import AlertEvent
from shared.topics import LIVE
from tests.integration.dashboard.dashboard_parts import WATCHER
from tests.integration.page.parts import page_alerts
from tests.integration.page.parts.installation import OWNER, Looked, looked_at
from tests.integration.page.parts.looking import LOOKS, Seen, logged_in
from tests.integration.parts.brokers import OF_COLLECTOR, broker_with_topics
from tests.integration.parts.browsing import chromium, undisturbed


@pytest.fixture(scope="package")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    folder = tmp_path_factory.mktemp("page")
    with broker_with_topics(folder / "broker", [LIVE, *OF_COLLECTOR]) as broker, looked_at(folder, broker) as made:
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


@pytest.fixture
def timed(browser: Browser, context: BrowserContext, looked: Looked) -> Iterator[Seen]:
    """The same by a clock that a test sets. It would be that of all pages of a context."""
    own = browser.new_context(**LOOKS, storage_state=context.storage_state())
    with undisturbed(own, looked.url) as page:
        page.clock.install()
        yield Seen(page, looked.url)
    own.close()


@pytest.fixture(scope="package")
def incident(looked: Looked) -> AlertEvent:
    """An incident of this hour."""
    return page_alerts.landed(looked.installation.postgres.dsn, looked.now_ms)


@pytest.fixture
def owner(browser: Browser, looked: Looked) -> Iterator[Page]:
    """A browser of the owner of an organisation that has nothing yet."""
    dsn = looked.installation.postgres.dsn
    make_tenant(dsn, organisation="Wayne", email=OWNER, customers=())
    context = logged_in(browser, looked, OWNER)
    yield context.new_page()
    context.close()
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "DELETE FROM accounts.customers USING accounts.organisations"
            " WHERE organisation_id = organisations.id AND organisations.name = 'Wayne'"
        )
