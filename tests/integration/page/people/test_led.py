"""Who has never sent a beacon is led to the first one from Now itself, in a real browser, while others send."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
import pytest
from playwright.sync_api import Browser, expect

from services.accounts.commands import make_tenant
from services.accounts.core.roles import Role
from services.collector.customers.table import MIGRATIONS_DIR
from services.rim.database.migrations import migrate
from tests.integration.dashboard.dashboard_parts import newest_bucket
from tests.integration.page.parts.installation import Looked, arrives, watch_now
from tests.integration.page.parts.looking import Seen, logged_in
from tests.integration.page.parts.page_views import NEWCOMER
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration

ORGANISATION: Final = "Stark"


def test_an_organisation_without_customers_makes_its_first_and_sees_its_first_beacon(
    browser: Browser, looked: Looked
) -> None:
    watch_now(looked.installation)
    # As python -m deploy.customers_table does.
    migrate(looked.installation.postgres.dsn, "collector", MIGRATIONS_DIR)
    with _member(browser, looked, "tony@stark.example", Role.OWNER) as seen:
        page = seen.page
        seen.open("settings?part=environments")
        expect(page.locator("main")).to_contain_text("Your organisation has no environment yet", timeout=SOON_MS)
        seen.open("integration")
        expect(page.locator("#no-customer")).to_be_visible(timeout=SOON_MS)
        expect(page.locator("#choose-customer")).to_have_count(0)
        seen.open("")
        expect(page.locator("#status-text")).to_have_text("No live data yet", timeout=SOON_MS)
        expect(page.locator("#no-customer")).to_contain_text("Your organisation has no customer yet", timeout=SOON_MS)
        expect(page.locator("#tiles, #unsuspected")).to_have_count(0)
        page.locator("#first-customer").get_by_label("Name").fill("Arc reactor")
        page.get_by_role("button", name="Make it").click()
        expect(page.locator("#verdict")).to_contain_text("No beacon in the last 10 minutes", timeout=SOON_MS)
        customer = page.locator("#customer").input_value()
        page.get_by_role("button", name="Make a key").click(timeout=SOON_MS)
        expect(page.locator("main")).to_contain_text("is made and stands in the lines", timeout=SOON_MS)
        arrives(looked.installation, customer, "first-view")
        expect(page.locator("#beacons")).to_contain_text("first-view", timeout=SOON_MS)
        # And as soon as its viewers are counted, they show.
        looked.installation.count(customer, newest_bucket(), 0, viewers_now=1)
        expect(page.locator("#tile-viewers .value")).to_have_text("1", timeout=SOON_MS)


def test_a_customer_with_finished_views_is_not_new_also_where_no_sum_names_it(browser: Browser, looked: Looked) -> None:
    """As over a warehouse whose sums are not there yet, at an hour when nobody watches."""
    watch_now(looked.installation)
    with _member(browser, looked, "thor@stark.example", Role.VIEWER, (NEWCOMER,)) as seen:
        page = seen.page
        page.route(re.compile(r"/v1/breakdown\?by=customer"), lambda route: route.fulfill(json={"groups": []}))
        with page.expect_response(re.compile(r"/v1/breakdown\?by=customer")):
            seen.open("")
        expect(page.locator("#finished b").first).to_have_text(re.compile(r"\d"), timeout=SOON_MS)
        expect(page.locator("#never-sent, #lead")).to_have_count(0)


def test_who_may_make_no_customer_learns_who_does(browser: Browser, looked: Looked) -> None:
    watch_now(looked.installation)
    with _member(browser, looked, "pepper@stark.example", Role.VIEWER) as seen:
        seen.open("")
        told = seen.page.locator("#no-customer")
        expect(told).to_contain_text("An admin or owner of your organisation makes one", timeout=SOON_MS)
        expect(told.locator("form")).to_have_count(0)


@contextmanager
def _member(
    browser: Browser, looked: Looked, email: str, role: Role, customers: tuple[str, ...] = ()
) -> Iterator[Seen]:
    dsn = looked.installation.postgres.dsn
    make_tenant(dsn, organisation=ORGANISATION, email=email, role=role, customers=customers)
    context = logged_in(browser, looked, email)
    try:
        yield Seen(context.new_page(), looked.url)
    finally:
        context.close()
        with psycopg.connect(dsn) as connection:
            connection.execute(
                "DELETE FROM accounts.customers USING accounts.organisations"
                " WHERE organisation_id = organisations.id AND organisations.name = %s",
                (ORGANISATION,),
            )
