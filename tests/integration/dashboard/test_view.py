"""One view on the page: its life as a slot knows it, open and finished."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from services.rim.kafka.connection import client_config
from shared import codec
from shared.partitioning import partition_of, view_key
from shared.topics import BEACONS
from tests.integration.dashboard.dashboard_parts import LIFE, Installation, answers, slot_with_lookups
from tests.integration.parts.browsing import SOON_MS
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import wait_until
from tests.unit.processor.applications.video_views import captured

pytestmark = pytest.mark.integration

#: Views of a customer that are open.
OPEN: Final = 60


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
        # More of another customer than a page has.
        opened += [
            msgspec.structs.replace(one, customer_id="many", view_id=f"open-{number}")
            for number in range(OPEN)
            for one in beacons[: len(beacons) // 2]
        ]
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
        found.locator("#open-views tbody").get_by_role("link", name="still-open").click()
        expect(found.locator("#view-title")).to_contain_text("still open", timeout=SOON_MS)
        # What its end decides is not said before.
        expect(found.locator("#undecided")).to_be_visible()
        expect(found.locator("#view-dimensions")).to_contain_text("Client that reports")
        for decided in ("Why the view ended", "View dropped", "Complete view", "Good experience"):
            expect(found.locator("#view-dimensions")).not_to_contain_text(decided)
        found.go_back()
        found.get_by_label("Title has").fill("another")
        found.get_by_role("button", name="Search").click()
        expect(found.locator("main")).to_contain_text("No open view matches", timeout=SOON_MS)
        found.goto(f"{installation.url}views?customer=many&open=1")
        rows = found.locator("#open-views tbody th")
        expect(rows).to_have_count(50, timeout=SOON_MS)
        # Columns of what the end of a view decides are of finished views alone.
        for chosen in ("Why the view ended", "Exit before start", "Country"):
            found.locator("details.columns").evaluate("(one) => (one.open = true)")
            found.get_by_label(chosen, exact=True).set_checked(chosen != "Country")
        heads = found.locator("#open-views thead")
        expect(heads).not_to_contain_text("Country")
        expect(heads).to_contain_text("Viewer")
        for decided in ("Why the view ended", "Exit before start"):
            expect(heads).not_to_contain_text(decided)
        found.get_by_role("button", name="More open views").click()
        expect(rows).to_have_count(OPEN, timeout=SOON_MS)
        assert set(rows.all_inner_texts()) == {f"open-{number}" for number in range(OPEN)}
        expect(found.locator("#open-count")).to_contain_text(
            f"{OPEN} views had beacons in the last 10 min. Of the {OPEN} with the newest beacons, {OPEN} are open and match."
        )
        # Filters, and the range of a view's start, are the server's: what does not match is on no page.
        nobody = quote('{"dimension":"cdn","in":["nobody"]}')
        for narrowed in (f"filter={nobody}", "began=range&from=2020-01-01&to=2020-01-02"):
            found.goto(f"{installation.url}views?customer=many&open=1&{narrowed}")
            expect(found.locator("#open-count")).to_contain_text("0 are open and match", timeout=SOON_MS)
            expect(rows).to_have_count(0)
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
        expect(page.locator("#undecided")).to_have_count(0)
        for decided in ("Why the view ended", "View dropped", "Complete view", "Good experience"):
            expect(page.locator("#view-dimensions")).to_contain_text(decided)
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
