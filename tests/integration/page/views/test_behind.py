"""Figures lead to the views that they count, in a real browser: each link beside the truth of the views."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from services.query.core import filters
from services.query.core.resources.titles.title import PARTS
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.view import View
from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import Seen, number, within
from tests.integration.page.parts.page_alerts import CUSTOMER
from tests.integration.page.parts.page_views import LENGTH_MS, MINUTE_MS, NEWCOMER
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import DAY_MS, FIGURES, HOUR_MS, holds

pytestmark = pytest.mark.integration


def led_to(link: Locator, looked: Looked) -> list[View]:
    """The views of the list that a link leads to."""
    address = urlsplit(link.get_attribute("href") or "")
    asked = parse_qs(address.query)
    assert address.path == "/views"
    bounds = int(asked["from"][0]), int(asked["to"][0])
    parsed = [filters.parsed(text) for text in asked.get("filter", [])]
    found = within(looked, bounds, customer_id=asked["customer"][0])
    return [view for view in found if all(holds(view, one) for one in parsed)]


def expect_figure(cell: Locator, looked: Looked, metric: str, views: list[View]) -> None:
    """Both links of a cell lead to these views, of which the figure and the n are."""
    value, n = cell.get_by_role("link").all()
    assert led_to(value, looked) == led_to(n, looked) == views
    assert number(value.inner_text()) == pytest.approx(FIGURES[metric](views), rel=0.006, abs=6e-5)
    assert number(n.inner_text()) == len(views)


def day_of(looked: Looked) -> tuple[int, int]:
    """A day up to now in whole minutes, which no minute moves."""
    to_ms = looked.now_ms // MINUTE_MS * MINUTE_MS
    return to_ms - DAY_MS, to_ms


def test_each_figure_of_a_title_leads_to_its_views_of_now_and_of_before(seen: Seen, looked: Looked) -> None:
    from_ms, to_ms = day_of(looked)
    seen.open(f"titles?customer=acme&from={from_ms}&to={to_ms}&compare=previous")
    rows = seen.page.locator("#titles tbody tr")
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    for row in rows.all():
        title = row.locator("th a").inner_text()
        views = within(looked, (from_ms, to_ms), customer_id="acme", video_title=title)
        cells = row.locator("td").all()
        for cell in cells[:4]:
            assert led_to(cell.get_by_role("link").first, looked) == views
        assert all(one in views for one in led_to(cells[4].get_by_role("link").first, looked))
        started = [one for one in views if one.startup_ms is not None]
        if len(started) < len(views):
            assert led_to(cells[4].get_by_role("link").last, looked) == started
        before = within(looked, (2 * from_ms - to_ms, from_ms), customer_id="acme", video_title=title)
        if before:
            expect_figure(cells[5], looked, "rebuffer_fraction", before)


def test_each_figure_of_an_error_leads_to_the_views_with_its_code(seen: Seen, looked: Looked) -> None:
    from_ms, to_ms = day_of(looked)
    since_ms = to_ms - HOUR_MS
    seen.open(f"errors?customer=acme&from={from_ms}&to={to_ms}&since={since_ms}")
    rows = seen.page.locator("#errors tbody tr")
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    everything = within(looked, (from_ms, to_ms), customer_id="acme")
    # The line above them: all with any code, of all.
    with_error, of = seen.page.locator("#errors-of").get_by_role("link").all()
    assert led_to(with_error, looked) == [one for one in everything if one.error_code is not None]
    assert led_to(of, looked) == everything
    for link in (with_error, of):
        assert number(link.inner_text()) == len(led_to(link, looked)) > 0
    for row in rows.all():
        code = row.locator("th a").inner_text()
        views = [one for one in everything if one.error_code == code]
        count, share, before, since, _, viewers, failed = row.locator("td").all()[:7]
        for cell in (count, share, viewers):
            assert led_to(cell.get_by_role("link").first, looked) == views
        assert led_to(share.get_by_role("link").last, looked) == everything
        assert number(count.inner_text()) == len(views)
        hit = [one for one in views if one.playback_failed or one.startup_failed]
        assert number(failed.inner_text()) == len(hit)
        # Nothing leads to no views; those that failed are of all with the code.
        led = [led_to(link, looked) for link in failed.get_by_role("link").all()]
        assert led == [*([hit] if hit else []), views]
        for cell, span in ((before, (from_ms, since_ms)), (since, (since_ms, to_ms))):
            all_of_span = within(looked, span, customer_id="acme")
            own = [one for one in all_of_span if one.error_code == code]
            found = [led_to(link, looked) for link in cell.get_by_role("link").all()]
            assert found == ([own, all_of_span] if own else [all_of_span])
    seen.open(f"errors?customer=acme&from={from_ms}&to={to_ms}&compare=previous")
    cell = rows.first.locator("td").nth(2)
    expect(cell).to_be_visible(timeout=SOON_MS)
    before = within(looked, (2 * from_ms - to_ms, from_ms), customer_id="acme")
    assert led_to(cell.get_by_role("link").last, looked) == before
    rows.first.locator("td").first.get_by_role("link").click()
    expect(seen.page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)


def test_a_part_of_a_title_leads_to_the_views_that_came_to_it(seen: Seen, looked: Looked) -> None:
    from_ms, to_ms = day_of(looked)
    seen.open(f"titles?customer=acme&from={from_ms}&to={to_ms}")
    page = seen.page
    page.locator("#titles").get_by_role("link", name="Sintel").click(timeout=SOON_MS)
    page.locator("#parts summary").click(timeout=SOON_MS)
    views = within(looked, (from_ms, to_ms), customer_id="acme", video_title="Sintel")
    links = page.locator("#parts").get_by_title("the views that came so far")
    for at, least_ms in ((0, 1), (-1, LENGTH_MS - LENGTH_MS // PARTS)):
        came = [one for one in views if one.max_playhead_ms >= least_ms]
        assert led_to(links.nth(at), looked) == came
        assert number(links.nth(at).inner_text()) == len(came) > 0
    of = page.locator("#retention-title + .note").get_by_role("link")
    assert led_to(of, looked) == [one for one in views if one.max_playhead_ms > 0]
    links.last.click()
    expect(page.locator(".chip", has_text="Farthest playhead is at least")).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#views thead th[aria-sort=descending]")).to_contain_text("Farthest playhead")


def test_the_counts_of_a_distribution_lead_to_views_with_a_value_and_without(seen: Seen, looked: Looked) -> None:
    from_ms, to_ms = day_of(looked)
    seen.open(f"explore?customer=acme&from={from_ms}&to={to_ms}&metrics=startup_ms_p50&as=distribution")
    expect(seen.page.locator("#distribution-of")).to_be_visible(timeout=SOON_MS)
    views = within(looked, (from_ms, to_ms), customer_id="acme")
    known, unknown = seen.page.locator("#distribution-of").get_by_role("link").all()
    assert led_to(known, looked) == [one for one in views if one.startup_ms is not None]
    assert led_to(unknown, looked) == [one for one in views if one.startup_ms is None]
    for link in (known, unknown):
        assert number(link.inner_text()) == len(led_to(link, looked)) > 0
    unknown.click()
    expect(seen.page.locator(".chip", has_text="Video start-up time is (unknown)")).to_be_visible(timeout=SOON_MS)
    expect(seen.page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)


def test_what_was_before_in_explore_leads_to_the_views_of_then(seen: Seen, looked: Looked) -> None:
    from_ms, to_ms = day_of(looked)
    seen.open(f"explore?customer=acme&from={from_ms}&to={to_ms}&compare=previous&by=cdn&as=table")
    earlier = 2 * from_ms - to_ms, from_ms
    rows = seen.page.locator("#groups tbody tr")
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    for row in rows.filter(has=seen.page.locator("th", has_text=re.compile("fastly|akamai"))).all():
        cdn = row.locator("th").inner_text()
        views = within(looked, earlier, customer_id="acme", cdn=cdn)
        expect_figure(row.locator("td").nth(2), looked, "rebuffer_fraction", views)
    links = seen.page.locator("#overall").get_by_role("link")
    expect(links).to_have_count(3, timeout=SOON_MS)
    views = within(looked, earlier, customer_id="acme")
    assert [led_to(link, looked) for link in links.all()[1:]] == [views, views]


def test_the_rest_of_a_suspect_and_what_is_usual_lead_to_their_views(seen: Seen, looked: Looked) -> None:
    to_ms = looked.now_ms // MINUTE_MS * MINUTE_MS
    # The newcomer has no view before its range: a baseline ends with a full hour, and is not to have some of its first views.
    for customer, minutes, metric in (
        ("acme", 25, "rebuffer_fraction&compare=previous"),
        (NEWCOMER, 55, "playback_failure_fraction"),
    ):
        from_ms = to_ms - minutes * MINUTE_MS
        seen.open(f"explore?customer={customer}&from={from_ms}&to={to_ms}&suspects=1&metrics={metric}")
        table = seen.page.locator(".suspects").first
        expect(table).to_be_visible(timeout=2 * SOON_MS)
        row = table.locator("tbody tr").first
        # Its n, in the cell of its figure, leads to its own views.
        own = led_to(row.locator("td").nth(1).get_by_role("link").last, looked)
        everything = within(looked, (from_ms, to_ms), customer_id=customer)
        rest = row.locator("td").nth(2).get_by_role("link")
        others = [one for one in everything if one not in own]
        assert led_to(rest.last, looked) == others
        counted = [one for one in others if one.playback_failed] if customer == NEWCOMER else others
        assert led_to(rest.first, looked) == counted
        assert number(rest.last.inner_text()) == len(others)
        assert table.get_attribute("data-against") == ("rest" if customer == NEWCOMER else "usual")
        if customer != NEWCOMER:
            usual = row.locator("td").nth(3).get_by_role("link").last
            assert number(usual.inner_text()) == len(led_to(usual, looked)) > 0


def test_rebuffering_and_bitrate_of_a_card_lead_to_the_open_views(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    row = seen.page.locator("#slice-cdn tbody tr", has_text="fastly")
    expect(row).to_be_visible(timeout=SOON_MS)
    for column in (0, 1, 2):
        asked = parse_qs(urlsplit(row.locator("td").nth(column).get_by_role("link").get_attribute("href") or "").query)
        # Live figures of a moment are of views that are open.
        assert (asked["open"], asked["filter"]) == (["1"], ['{"dimension":"cdn","in":["fastly"]}'])


def test_live_counts_say_that_they_are_of_less_than_the_hour_that_is_listed(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    titles = re.compile(r"^counted over the last \d+ (s|min); listed are views of the last hour$")
    for tile in ("starts", "failures", "exits", "startup"):
        expect(seen.page.locator(f"#tile-{tile} .behind")).to_have_attribute("title", titles, timeout=SOON_MS)
    failures = seen.page.locator("#slice-cdn tbody tr", has_text="fastly").locator("td").nth(3).get_by_role("link")
    expect(failures).to_have_attribute("title", titles, timeout=SOON_MS)


def test_the_figures_of_an_incident_lead_to_the_views_that_were_open_then(
    seen: Seen, looked: Looked, incident: AlertEvent
) -> None:
    seen.open(f"incident?id={incident.incident_id}")
    link = seen.page.locator("#figure-then b a")
    expect(link).to_have_text("8.10%", timeout=SOON_MS)
    (worst,) = incident.slices
    of_cdn = [one for one in looked.views if one.customer_id == CUSTOMER and one.cdn == "fastly"]
    begin = worst.at_ms - 1_000 * worst.seconds
    found = led_to(link, looked)
    assert {one.view_id for one in found} == {
        one.view_id
        for one in of_cdn
        if one.view_start_ms < worst.at_ms
        and begin <= max(one.view_end_ms, one.first_append_ms) <= worst.at_ms + DAY_MS
    }
    assert led_to(seen.page.locator("#figure-then .note a"), looked) == found
    for one in seen.page.locator("#found td").first.get_by_role("link").all():
        assert led_to(one, looked) == found
    link.click()
    expect(seen.page.locator(".chip", has_text="Began before")).to_be_visible(timeout=SOON_MS)
    expect(seen.page.locator("#show-open")).to_have_attribute("aria-expanded", "true")
