"""The part of a view's timeline that its row does not keep, drawn from its beacons by a click, in a real browser."""

from collections.abc import Sequence

import pytest
from playwright.sync_api import expect

from shared.schemas.view import TimelineEvent, View
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import Seen, on_a_phone, unfit
from tests.integration.page.parts.page_requests import (
    NOT_KEPT,
    STALLS,
    STORMY,
    STORMY_KEPT,
    STORMY_PART,
    STORMY_TORN,
    stormy,
)
from tests.integration.parts.browsing import SOON_MS
from tests.unit.processor.applications.video_views.test_whole_timeline import refolded

pytestmark = pytest.mark.integration

KEPT = "The timeline has the first 200 events of this view"


def row_of(looked: Looked, view_id: str) -> View:
    (row,) = (view for view in looked.views if view.view_id == view_id)
    return row


def events_of(beacons: int | None = None) -> Sequence[TimelineEvent]:
    (found,) = refolded(stormy()[:beacons], are_all=beacons is None)
    return [told.event for told in found.events]


def read(seen: Seen, view_id: str) -> None:
    seen.open(f"view?customer=acme&view={view_id}")
    button = seen.page.get_by_role("button", name="Draw the rest from its beacons")
    expect(button).to_be_visible(timeout=SOON_MS)
    expect(seen.page.locator("#timeline-read")).to_contain_text(KEPT)
    # Each look at beacons is noted: nothing is read before it is asked for.
    assert not any(path.endswith("/timeline") for path in seen.asked)
    button.click()
    expect(seen.page.locator("#timeline-read")).not_to_contain_text(KEPT, timeout=SOON_MS)


def test_the_rest_of_a_long_timeline_is_drawn_from_its_beacons(seen: Seen, looked: Looked) -> None:
    row = row_of(looked, STORMY)
    read(seen, STORMY)
    page, events = seen.page, events_of()
    said = page.locator("#timeline-read")
    expect(said).to_have_text(
        f"The timeline has all {len(events)} events of this view, from its {row.beacon_count} beacons."
    )
    # The button is gone: who goes on by the keyboard is at what it was for.
    expect(said).to_be_focused()
    expect(page.locator("#read-timeline")).to_have_count(0)
    lanes = page.locator("#view-life .lane")
    expect(lanes.locator(".unkept")).to_have_count(0)
    stalls = lanes.filter(has_text="State").locator("rect.rebuffering")
    expect(stalls).to_have_count(STALLS)
    # A stall's place is that of its beacon, up to the end.
    span_ms = row.view_end_ms - row.view_start_ms
    last_ms = [one.at_ms for one in events if one.event == "rebufferstart"][-1]
    assert float(stalls.last.get_attribute("x") or 0) == pytest.approx(1_000 * last_ms / span_ms, abs=2)
    rates = [one.bitrate_bps for one in events if one.bitrate_bps]
    assert lanes.filter(has_text="Bitrate").locator("rect.hit").count() == len(rates)
    errors = lanes.filter(has_text="Errors").locator("title").all_text_contents()
    assert [text.split(", at ")[0] for text in errors] == ["error storm-1: no segment", "error storm-2"]
    # All codes are known: none is offered to be read.
    expect(page.locator("#read-errors")).to_have_count(0)
    page.locator("#events summary").click()
    expect(page.locator("#events summary")).to_have_text(f"Every event ({len(events)})")
    listed = page.locator("#view-events tr")
    expect(listed).to_have_count(500)
    page.get_by_role("button", name="More events").click()
    expect(listed).to_have_count(len(events))
    names = page.locator("#view-events td:nth-child(3)").evaluate_all("(all) => all.map((one) => one.firstChild.data)")
    assert names == [one.event for one in events]


def test_it_ends_where_the_beacons_end_that_are_left(seen: Seen, looked: Looked) -> None:
    row = row_of(looked, STORMY_PART)
    read(seen, STORMY_PART)
    page, events = seen.page, events_of(STORMY_KEPT)
    missing = row.beacon_count - STORMY_KEPT
    expect(page.locator("#timeline-read")).to_have_text(
        f"The timeline has the events of the first {STORMY_KEPT} beacons of this view, up to 3.3 min."
        f" The other {missing} are no longer kept."
    )
    expect(page.locator("#events summary")).to_have_text(f"The first {len(events)} events")
    rest = page.locator("#view-life .unkept").first
    expect(rest).to_have_text("not read")
    known_ms = (stormy()[STORMY_KEPT - 1]).client_time_ms - stormy()[0].client_time_ms
    drawn = page.locator("#view-life .lane").filter(has_text="State").locator("svg rect")
    ends = drawn.evaluate_all("(all) => all.map((one) => one.x.baseVal.value + one.width.baseVal.value)")
    assert max(ends) == pytest.approx(1_000 * known_ms / (row.view_end_ms - row.view_start_ms), abs=2)
    expect(page.get_by_role("button", name="Read them again")).to_be_visible()


def test_nothing_is_drawn_from_beacons_that_lead_to_other_events(seen: Seen) -> None:
    read(seen, STORMY_TORN)
    expect(seen.page.locator("#timeline-read")).to_contain_text("So nothing is drawn from them.")
    expect(seen.page.locator("#view-life .unkept").first).to_have_text("not kept")
    expect(seen.page.locator("#events summary")).to_have_text("The first 200 events")


def test_a_view_that_has_all_its_events_offers_nothing(seen: Seen) -> None:
    seen.open(f"view?customer=acme&view={NOT_KEPT}")
    expect(seen.page.locator("#view-life")).to_be_visible(timeout=SOON_MS)
    expect(seen.page.locator("#read-timeline")).to_have_count(0)


def test_what_is_wrong_is_said_in_full(seen: Seen) -> None:
    problem = '{"title": "Too many questions at a time", "detail": "Ask again.", "status": 429}'
    seen.page.route(
        "**/timeline?*", lambda route: route.fulfill(status=429, body=problem, content_type="application/problem+json")
    )
    seen.open(f"view?customer=acme&view={STORMY}")
    seen.page.locator("#read-timeline").click(timeout=SOON_MS)
    expect(seen.page.locator("#timeline-problem")).to_have_text(
        "Too many questions at a time. Ask again.", timeout=SOON_MS
    )
    expect(seen.page.locator("#read-timeline")).to_be_enabled()


def test_it_can_be_read_by_everybody_and_fits_a_phone(seen: Seen) -> None:
    on_a_phone(seen.page)
    read(seen, STORMY)
    assert unfit(seen.page) == []
