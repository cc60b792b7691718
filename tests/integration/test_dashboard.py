"""The dashboard in a real browser, on a real broker and a real Postgres."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psycopg
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, BrowserContext, Page, expect

from services.collector.customers.table import MIGRATIONS_DIR
from services.finalizer.serving.migrate import migrate
from services.rim.database import migrations
from services.rim.kafka.connection import client_config
from shared import codec
from shared.partitioning import partition_of, view_key
from shared.schemas.live import BUCKET_MS
from shared.topics import BEACONS
from tests.integration.browsing import SOON_MS, chromium, undisturbed
from tests.integration.dashboard_parts import (
    LIFE,
    PARTITIONS,
    WATCHER,
    Installation,
    answers,
    at_work,
    beyond_its_limits,
    newest_bucket,
    slot_with_lookups,
    start_dashboard,
)
from tests.integration.slots import wait_until
from tests.unit.dashboard.records import slice_of
from tests.unit.processor.applications.video_views import captured

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with at_work(tmp_path_factory.mktemp("dashboard"), tmp_path_factory.mktemp("dashboard-postgres")) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
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


def test_the_page_shows_that_there_is_nothing_yet(installation: Installation, page: Page) -> None:
    expect(page.locator("#status-text")).to_have_text("No live data yet", timeout=SOON_MS)
    expect(page.locator("#live-notice")).to_contain_text("Nothing has been counted")


def test_the_page_shows_what_was_counted_and_goes_on_by_itself(installation: Installation, page: Page) -> None:
    # What is counted is of the present for 20 s only: the page has all its parts by then.
    expect(page.locator("#status-text")).to_be_visible()
    bucket_ms = newest_bucket()
    installation.count("acme", bucket_ms, 0, viewers_now=30, rebuffering_now=3, beacons=100, views_started=4)
    installation.count(
        "acme",
        bucket_ms,
        1,
        viewers_now=12,
        views_started=1,
        failures=2,
        exits_before_start=1,
        startups=2,
        startup_ms=900,
    )
    installation.count("globex", bucket_ms, 0, viewers_now=8, bitrate_bps_now=12_000_000, bitrate_viewers_now=4)

    viewers, rebuffering = page.locator("#tile-viewers .value"), page.locator("#tile-rebuffering")
    expect(page.locator("#status-text")).to_contain_text("Live ")
    expect(viewers).to_have_text("50", timeout=SOON_MS)
    expect(rebuffering).to_contain_text("6.00%")
    expect(rebuffering).to_contain_text("3 of 50 viewers")
    for tile, text in (
        ("starts", "5"),
        ("failures", "2"),
        ("exits", "1"),
        ("startup", "450 ms"),
        ("bitrate", "3.00 Mbps"),
    ):
        expect(page.locator(f"#tile-{tile} .value")).to_have_text(text)
    expect(page.locator("#customers-table tbody tr").nth(0)).to_contain_text("acme")
    expect(page.locator("#customers-table tbody tr").nth(1)).to_contain_text("3.00 Mbps")

    # New records, no reload: the page follows.
    installation.count("acme", bucket_ms + BUCKET_MS, 0, viewers_now=31)
    installation.count("acme", bucket_ms + BUCKET_MS, 1, viewers_now=16)
    installation.count("globex", bucket_ms + BUCKET_MS, 0, viewers_now=9)
    expect(viewers).to_have_text("56", timeout=SOON_MS)
    page.locator("#customer").select_option("globex")
    expect(viewers).to_have_text("9", timeout=SOON_MS)


def test_a_click_on_a_slice_narrows_the_page_to_it_and_back_undoes_it(installation: Installation, page: Page) -> None:
    bucket_ms = newest_bucket() + 2 * BUCKET_MS
    slow = slice_of(viewers_now=4, rebuffering_now=2, failures=3, bitrate_bps_now=8_000_000, bitrate_viewers_now=4)
    both = {"cdn=slow": slow, "country=DE": slice_of(viewers_now=5), "cdn,country=slow\x1fDE": slice_of(viewers_now=1)}
    installation.count("acme", bucket_ms, 0, viewers_now=10, slices={"cdn=fast": slice_of(viewers_now=6), **both})
    installation.count("acme", bucket_ms, 1, viewers_now=3, slices={"cdn=fast": slice_of(viewers_now=3)})
    installation.count("globex", bucket_ms, 0, viewers_now=1, slices={"cdn=fast": slice_of(viewers_now=1)})
    rows = page.locator("#slice-cdn tbody tr")
    expect(rows.nth(0).locator("td").nth(0)).to_have_text("10", timeout=SOON_MS)
    page.locator("#customer").select_option("acme", timeout=SOON_MS)
    expect(rows.nth(0).locator("td").nth(0)).to_have_text("9", timeout=SOON_MS)
    expect(rows.nth(1).locator("td")).to_have_text(["4", "50.0%", "2.00 Mbps", "3"])
    viewers = page.locator("#tile-viewers .value")
    rows.nth(1).get_by_role("link", name="slow").click()
    expect(viewers).to_have_text("4", timeout=SOON_MS)
    page.locator("#slice-country").get_by_role("link", name="DE").click()
    expect(viewers).to_have_text("1", timeout=SOON_MS)
    expect(page.locator(".chip")).to_have_count(2)
    page.go_back()
    page.go_back()
    expect(viewers).to_have_text("13", timeout=SOON_MS)
    expect(page.locator(".chip")).to_have_count(0)


def test_the_page_shows_viewers_whose_value_is_unknown_as_a_row_of_their_own(
    installation: Installation, page: Page
) -> None:
    slices = {"cdn=fast": slice_of(viewers_now=3), "cdn=(unknown)": slice_of(viewers_now=5, rebuffering_now=1)}
    # A customer of its own: the last figures of a partition go on counting for half a minute.
    installation.count("umbrella", newest_bucket() + 2 * BUCKET_MS, 0, viewers_now=8, slices=slices)
    page.locator("#customer").select_option("umbrella", timeout=SOON_MS)
    rows = page.locator("#slice-cdn tbody tr")
    unknown = rows.filter(has_text="(unknown)")
    expect(unknown.locator("td").nth(0)).to_have_text("5", timeout=SOON_MS)
    expect(unknown.locator("td").nth(1)).to_have_text("20.0%")
    # The rows add up to all viewers.
    expect(rows.locator("td:nth-of-type(1)")).to_have_text(["3", "5"])


def test_the_page_says_that_a_partition_is_behind_and_then_that_it_is_not(
    installation: Installation, page: Page
) -> None:
    # Ahead of all that was counted before.
    bucket_ms = newest_bucket() + 4 * BUCKET_MS
    installation.count("acme", bucket_ms, 0, viewers_now=5)
    expect(page.locator("#status-text")).to_contain_text("Incomplete", timeout=SOON_MS)
    expect(page.locator("#live-notice")).to_contain_text("1 of 2 partitions are behind")
    installation.count("acme", bucket_ms, 1, viewers_now=5)
    expect(page.locator("#status-text")).to_contain_text("Live", timeout=SOON_MS)


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
        ("Distinct values of a dimension", "1,000 an hour (default)", "1,234 views by cdn"),
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


def test_the_page_says_that_postgres_is_away_and_recovers(installation: Installation, page: Page) -> None:
    migrate(installation.postgres.dsn)
    expect(page.locator("#finished")).to_be_visible(timeout=SOON_MS)
    installation.postgres.stop()
    try:
        # The next picture needs to know who looks.
        installation.count("acme", newest_bucket() + 8 * BUCKET_MS, viewers_now=1)
        expect(page.locator("#status-text")).to_contain_text("Postgres out of reach", timeout=SOON_MS)
        # What was shown stays, marked with its age.
        expect(page.locator("main")).to_contain_text("Postgres does not answer", timeout=SOON_MS)
        expect(page.locator("main")).to_contain_text(re.compile(r"What is shown is \d+ s old"), timeout=SOON_MS)
        expect(page.locator("#finished")).to_be_visible()
    finally:
        installation.postgres.start()
    expect(page.locator("main")).not_to_contain_text("Postgres does not answer", timeout=2 * SOON_MS)


def test_the_page_says_that_kafka_is_away_and_goes_on_when_it_is_back(installation: Installation, page: Page) -> None:
    installation.count("acme", newest_bucket(), viewers_now=1)
    installation.broker.stop()
    try:
        expect(page.locator("#status-text")).to_contain_text("Kafka out of reach", timeout=2 * SOON_MS)
    finally:
        installation.broker.start()
    # Ahead of all that was counted before.
    bucket_ms = newest_bucket() + 9 * BUCKET_MS
    installation.count("acme", bucket_ms, 1, viewers_now=1)
    installation.count("initech", bucket_ms, viewers_now=77)
    page.locator("#customer").select_option("initech", timeout=2 * SOON_MS)
    expect(page.locator("#tile-viewers .value")).to_have_text("77", timeout=SOON_MS)
    expect(page.locator("#status-text")).to_contain_text("Live")


def test_the_page_draws_the_life_of_one_view(installation: Installation, page: Page, tmp_path: Path) -> None:
    beacons = captured.mux_with_ads()
    page.goto(f"{installation.url}view")
    page.locator("#view-customer").fill(beacons[0].customer_id)
    page.locator("#view-id").fill(beacons[0].view_id)
    page.locator("#view-form button").click()
    expect(page.locator("main .notice")).to_contain_text("no answer from processor", timeout=SOON_MS)
    slot = slot_with_lookups(installation, tmp_path)
    try:
        slot.start()
        producer = Producer(client_config(installation.settings, "test") | {"acks": "all"})
        # Of a view that goes on, the first half.
        opened = [msgspec.structs.replace(one, view_id="still-open") for one in beacons[: len(beacons) // 2]]
        for beacon in (*beacons, *opened):
            key = view_key(beacon.customer_id, beacon.view_id)
            producer.produce(BEACONS.name, codec.BEACON.encode(beacon), key, partition_of(key, PARTITIONS))
        assert producer.flush(30) == 0
        wait_until(slot.is_ready, "the slot is ready")
        wait_until(
            lambda: answers(f"{installation.url}v1/views/{beacons[0].view_id}?customer=cust123", installation.token),
            "the view is known",
        )
        expect(page.locator("#view-title")).to_contain_text("A film", timeout=SOON_MS)
        operators = page.context.new_page()
        operators.goto(f"{installation.url}partitions")
        expect(operators.locator("#source")).to_contain_text("video_views, as", timeout=SOON_MS)
        expect(operators.locator("#partitions tbody tr")).to_have_count(PARTITIONS)
        expect(operators.locator("#partitions tbody tr").first).to_contain_text("working", timeout=SOON_MS)
        expect(operators.locator("#slots tbody tr")).to_have_count(1)
        operators.close()
        found = page.context.new_page()
        found.goto(f"{installation.url}views?customer=cust123&title=film")
        found.locator("#show-open").click(timeout=SOON_MS)
        expect(found.locator("#open-views tbody th")).to_have_text(["still-open"], timeout=SOON_MS)
        expect(found.locator("#open-views tbody")).to_contain_text("A film")
        found.get_by_label("Title has").fill("another")
        found.get_by_role("button", name="Search").click()
        expect(found.locator("main")).to_contain_text("No open view matches", timeout=SOON_MS)
        found.close()
        # An open view is asked for again until it has finished.
        expect(page.locator("#view-title")).to_contain_text("ended by the viewer", timeout=SOON_MS)
        expect(page.locator("#view-facts")).to_contain_text("478 ms")
        expect(page.locator("#view-facts")).to_contain_text("1 × · 2.56 s (13.5%)")
        life = page.locator("#view-life svg")
        expect(life.nth(0)).to_have_attribute("aria-label", LIFE)
        expect(life.nth(0).locator("rect")).to_have_count(8)
        expect(life.nth(1)).to_have_attribute(
            "aria-label", re.compile(r"^ad 2\.00 s, ad 1\.00 s, ad \d+ ms, ad \d+ ms$")
        )
        expect(life.nth(2)).to_have_attribute("aria-label", re.compile("^Bitrate: 1.50 Mbps.*4.00 Mbps$"))
        page.get_by_text("Every event (31)").click()
        # Each value of a dimension leads to all views that share it.
        expect(page.locator("#view-dimensions")).to_contain_text("client that reports".capitalize())
        events = page.locator("#view-events tr")
        expect(events).to_have_count(31)
        expect(events.nth(11)).to_have_text(re.compile("7.38 s.*rebufferstart.*4.40 s.*4.00 Mbps"))
        # Its address names it.
        page.reload()
        expect(page.locator("#view-title")).to_contain_text("ended by the viewer", timeout=SOON_MS)
        page.locator("#view-id").fill("no-such-view")
        page.locator("#view-form button").click()
        expect(page.locator("main .notice")).to_contain_text("There is no such view", timeout=SOON_MS)
        expect(page.locator("#view-card")).to_be_hidden()
        assert slot.terminate() == 0, slot.log_tail()
    finally:
        slot.end()


def test_a_dashboard_that_is_stopped_is_named_as_the_cause(installation: Installation, page: Page) -> None:
    installation.count("acme", newest_bucket() + 3 * BUCKET_MS, viewers_now=1)
    expect(page.locator("#status-text")).to_contain_text("old", timeout=SOON_MS)
    pid = installation.dashboard.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        expect(page.locator("#status-text")).to_contain_text("Dashboard does not answer", timeout=SOON_MS)
        expect(page.locator("#live-notice")).to_contain_text("has sent nothing for")
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(page.locator("#status-text")).not_to_contain_text("Dashboard", timeout=SOON_MS)


def test_sigterm_ends_the_streams_and_leaves_cleanly(installation: Installation, page: Page) -> None:
    # Last in this module: it ends the dashboard, and starts a new one that the page finds by itself.
    expect(page.locator("#status-text")).to_contain_text("old", timeout=SOON_MS)
    assert installation.dashboard.stop(90) == 0
    expect(page.locator("#status-text")).to_contain_text("Dashboard out of reach", timeout=SOON_MS)
    installation.dashboard = start_dashboard(
        installation.folder,
        installation.broker,
        installation.postgres.dsn,
        installation.port,
        installation.lookup_port,
    )
    expect(page.locator("#status-text")).not_to_contain_text("out of reach", timeout=SOON_MS)
