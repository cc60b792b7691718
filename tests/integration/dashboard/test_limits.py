"""A customer sees on its own page which limits it is beyond."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from playwright.sync_api import Page, expect

from services.collector.customers.table import MIGRATIONS_DIR
from services.finalizer.serving.migrate import migrate
from services.rim.database import migrations
from shared.schemas.live import BUCKET_MS
from tests.integration.dashboard.dashboard_parts import Installation, beyond_its_limits, newest_bucket
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


def test_a_customer_beyond_a_limit_sees_it_on_its_own_page(installation: Installation, page: Page) -> None:
    dsn, customer = installation.postgres.dsn, "limited"
    page.goto(f"{installation.url}limits?customer={customer}")
    expect(page.locator("#notice")).to_contain_text("there is no table of customers", timeout=SOON_MS)
    migrate(dsn)
    migrations.migrate(dsn, "collector", MIGRATIONS_DIR)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO collector.customers (customer_id, beacons_per_second, bytes_per_day)"
            " VALUES ('limited', 2, 2e6), ('other', NULL, NULL)"
        )
        connection.execute("INSERT INTO limits.defaults VALUES ('members_max', 1000)")
        # On a thread of its own: this one's event loop is the browser's.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, beyond_its_limits(dsn, customer)).result()
        installation.publish_others(customer, "cdn", 1_234)
    bucket_ms = newest_bucket() + 6 * BUCKET_MS
    for partition in (0, 1):
        installation.count(customer, bucket_ms, partition, viewers_now=1)
    # The page lists customers where there are several.
    installation.count("other", bucket_ms, viewers_now=1)
    page.goto(installation.url)
    row = page.locator("#customers-table tbody tr", has_text=customer)
    row.get_by_role("link", name="limits").click(timeout=SOON_MS)
    expect(page.locator("#beyond")).to_have_text("Beyond its limit in the last minutes: beacons.", timeout=SOON_MS)
    rows = {row.locator("th").inner_text(): row for row in page.locator("#limits tbody tr").all()}
    for name, *texts in (
        ("Beacons", "2 a second", "3 requests with 90 beacons", "ago"),
        ("Stored bytes", "2 MB a day, 1.2"),
        ("Distinct values of a dimension", "1,000 an hour (default)", "1,234 views by CDN"),
        ("Spans", "no limit known", "nothing"),
    ):
        for text in texts:
            expect(rows[name]).to_contain_text(text)
    # It is this customer's page: another one has nothing refused.
    page.goto(f"{installation.url}limits?customer=other")
    expect(page.locator("#limits tbody tr").first).to_contain_text("10,000 a second (default)", timeout=SOON_MS)
    expect(page.locator("#limits tbody")).to_contain_text("500 GB a day (default), 0 bytes of them taken")
    expect(page.locator("#limits tbody td.is-warm")).to_have_count(0)
    expect(page.locator("#beyond")).to_be_hidden()
    page.goto(f"{installation.url}limits?customer=nobody")
    expect(page.locator("#notice")).to_contain_text("there is no such customer", timeout=SOON_MS)
