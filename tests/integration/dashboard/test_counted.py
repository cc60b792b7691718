"""What is counted of viewers shows on the page, in a real browser. First of its folder: nothing has been counted yet."""

import re

import pytest
from playwright.sync_api import Page, expect

from shared.schemas.live import BUCKET_MS
from tests.integration.dashboard.dashboard_parts import Installation, newest_bucket
from tests.integration.parts.browsing import SOON_MS
from tests.unit.dashboard.records import slice_of

pytestmark = pytest.mark.integration


def test_the_page_shows_that_there_is_nothing_yet(installation: Installation, page: Page) -> None:
    expect(page.locator("#status-text")).to_have_text("No live data yet", timeout=SOON_MS)
    # From Now itself one is led to the first beacon.
    expect(page.locator("#never-sent")).to_contain_text("No beacon of yours was counted", timeout=SOON_MS)
    expect(page.locator("#choose-customer")).to_be_visible(timeout=SOON_MS)


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
    # Views and a bit rate that is known have their own n; of rebuffering it is the viewers.
    expect(rows.nth(1).locator("td")).to_have_text(
        ["4", "50.0% n 4", re.compile(r"^2.00 Mbps\s*n 4$"), re.compile(r"^3\b")]
    )
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
    expect(unknown.locator("td").nth(1)).to_have_text("20.0% n 5")
    # The rows add up to all viewers.
    expect(rows.locator("td:nth-of-type(1)")).to_have_text(["3", "5"])


def test_the_page_says_that_a_partition_is_behind_and_then_that_it_is_not(
    installation: Installation, page: Page
) -> None:
    # Ahead of all that was counted before.
    bucket_ms = newest_bucket() + 4 * BUCKET_MS
    installation.count("acme", bucket_ms, 0, viewers_now=5)
    expect(page.locator("#status-text")).to_contain_text("Incomplete", timeout=SOON_MS)
    expect(page.locator("#live-notice")).to_contain_text("1 of 2 parts of the viewers are counted late")
    installation.count("acme", bucket_ms, 1, viewers_now=5)
    expect(page.locator("#status-text")).to_contain_text("Live", timeout=SOON_MS)


def test_a_customer_of_whom_nothing_was_counted_is_led_to_its_player(installation: Installation, page: Page) -> None:
    installation.count("acme", newest_bucket() + 5 * BUCKET_MS, viewers_now=5)
    page.goto(f"{installation.url}?customer=nobody-yet")
    expect(page.locator("#never-sent")).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#tiles, #suspected, #finished")).to_have_count(0)
    expect(page.locator("#snippet")).to_contain_text("nobody-yet", timeout=SOON_MS)
    expect(page.locator("#verdict")).to_contain_text("No beacon in the last 10 minutes", timeout=SOON_MS)
