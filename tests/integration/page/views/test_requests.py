"""The player's requests on the timeline of a view, in a real browser, of captured beacons."""

import re
from contextlib import closing

import pytest
from playwright.sync_api import BrowserContext, expect

from services.query.http.views import OPERATIONS
from shared.schemas.view import View
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import Seen, on_a_phone, unfit
from tests.integration.page.parts.page_requests import NOT_KEPT, PART_KEPT
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import DAY_MS

pytestmark = pytest.mark.integration


def row_of(looked: Looked, view_id: str) -> View:
    (row,) = (view for view in looked.views if view.view_id == view_id)
    return row


def read(seen: Seen, view_id: str) -> None:
    seen.open(f"view?customer=acme&view={view_id}")
    button = seen.page.locator("#read-requests")
    expect(button).to_be_visible(timeout=SOON_MS)
    # Each look at beacons is noted: nothing is read before it is asked for.
    assert not any(path.endswith(f"/{view_id}/requests") for path in seen.asked)
    button.click()
    expect(seen.page.locator("#requests-read")).to_be_visible(timeout=SOON_MS)
    # The button is gone: who goes on by the keyboard is at what it was for.
    expect(seen.page.locator("#view-requests summary")).to_be_focused()


def took_text(ms: int) -> str:
    return f"{ms} ms" if ms < 1_000 else f"{ms / 1_000:.2f} s"


@pytest.mark.parametrize("view_id", ["captured-mux", "captured-hls"])
def test_the_requests_drawn_are_those_that_the_view_counts(seen: Seen, looked: Looked, view_id: str) -> None:
    row = row_of(looked, view_id)
    read(seen, view_id)
    page = seen.page
    assert row.ttfb_max_ms is not None
    assert row.req_count
    total = (
        f"{row.req_count} requests, {row.req_failed} failed, {row.req_canceled} canceled,"
        f" slowest first byte {took_text(row.ttfb_max_ms)}"
    )
    lane = page.locator("#view-life .lane", has_text="Requests").locator("svg")
    expect(lane).to_have_attribute("aria-label", total)
    expect(lane.locator("g")).to_have_count(row.req_count)
    expect(page.locator("#view-requests summary")).to_have_text(f"Requests: {total}")
    assert (page.locator("#requests-read").inner_text()).startswith(f"{row.req_count} requests, in ")
    listed = seen.rows("#request-table")
    assert sum(1 for _ in page.locator("#request-table tbody tr").all()) == row.req_count
    assert any(took_text(row.ttfb_max_ms) in cells for cells in listed.values())


def test_each_request_says_when_what_and_how_it_went(seen: Seen, looked: Looked) -> None:
    row = row_of(looked, "captured-mux")
    read(seen, "captured-mux")
    page = seen.page
    first = page.locator("#request-table tbody tr").first
    expect(first).to_contain_text("completed")
    expect(first).to_contain_text("media · cdn.example.com")
    assert first.locator("td").all_inner_texts()[3:] == ["40 ms", "190 ms", "100.0 kB", "4.21 Mbps"]
    # What failed or was canceled differs by a sign and a word, not by colour alone.
    outcomes = page.locator("#request-table .outcome")
    assert outcomes.all_inner_texts() == ["completed"] * 3 + ["✕ failed (404)", "○ canceled"]
    assert page.locator("#view-life .sign").all_inner_texts() == ["✕", "○"]
    lane = page.locator("#view-life .lane", has_text="Requests")
    expect(lane.locator("g title").first).to_have_text(
        re.compile(
            r"^completed, media · cdn\.example\.com, first byte after 40 ms, took 190 ms, 100\.0 kB, 4\.21 Mbps, from "
        )
    )
    # The lane has the axis of all others: a bar begins where its time is.
    begun_ms = float(page.locator("#request-table tbody th").first.inner_text().split()[0]) * 1_000
    bar = lane.locator("rect.loads").first.bounding_box()
    whole = lane.locator("svg").bounding_box()
    states = page.locator("#view-life svg").first.bounding_box()
    assert bar is not None
    assert whole is not None
    assert states is not None
    assert (whole["x"], whole["width"]) == pytest.approx((states["x"], states["width"]), abs=1)
    span_ms = row.view_end_ms - row.view_start_ms
    assert (bar["x"] - whole["x"]) / whole["width"] == pytest.approx(begun_ms / span_ms, abs=0.01)
    page.locator("#only-bad").check()
    assert outcomes.all_inner_texts() == ["✕ failed (404)", "○ canceled"]


def test_urls_are_shown_without_what_may_be_secret(seen: Seen, looked: Looked) -> None:
    read(seen, "captured-hls")
    cells = seen.page.locator("#request-table tbody td.text").all_inner_texts()
    assert "init-1.mp4 · media.example.com" in cells
    assert not [one for one in cells if re.search(r"[?=#/]", one)]


def test_requests_whose_beacons_are_gone_are_said_to_be(seen: Seen, looked: Looked) -> None:
    read(seen, NOT_KEPT)
    expect(seen.page.locator("#requests-read")).to_contain_text("The beacons of this view are no longer kept")
    expect(seen.page.locator("#request-table")).to_have_count(0)
    row = row_of(looked, PART_KEPT)
    read(seen, PART_KEPT)
    said = seen.page.locator("#requests-read")
    found = re.search(r"^(\d+) requests, .* It counts (\d+) more: their beacons are no longer kept", said.inner_text())
    assert found is not None
    assert int(found[1]) + int(found[2]) == row.req_count
    assert int(found[1]) == seen.page.locator("#request-table tbody tr").count() > 0


def test_a_player_that_reports_none_is_said_to(seen: Seen) -> None:
    seen.open("view?customer=acme&view=view-of-x")
    expect(seen.page.locator("#no-requests")).to_have_text("This player has reported no requests.", timeout=SOON_MS)
    expect(seen.page.locator("#read-requests")).to_have_count(0)


def test_more_requests_come_by_a_button(seen: Seen, looked: Looked) -> None:
    row = row_of(looked, "captured-hls")
    assert row.req_count
    size = row.req_count // 2
    # As with a view of more than a page: the server is asked for shorter ones.
    seen.page.route("**/requests?*", lambda route: route.continue_(url=f"{route.request.url}&limit={size}"))
    read(seen, "captured-hls")
    listed = seen.page.locator("#request-table tbody tr")
    expect(listed).to_have_count(size)
    expect(seen.page.locator("#requests-read")).to_contain_text(
        f"Shown are the first {size} of {row.req_count} requests"
    )
    expect(seen.page.locator("#view-requests summary")).to_contain_text(
        f"Requests: the first {size} of {row.req_count} requests,"
    )
    expect(seen.page.locator("#view-life .lane", has_text="Requests").locator("svg")).to_have_attribute(
        "aria-label", re.compile(f"^the first {size} of {row.req_count} requests,")
    )
    seen.page.locator("#more-requests").click()
    expect(listed).to_have_count(2 * size, timeout=SOON_MS)
    assert len(set(seen.page.locator("#view-life g title").all_text_contents())) == 2 * size
    assert any(one.path.endswith("/requests") for one in OPERATIONS)


def test_what_is_wrong_is_said_in_full(seen: Seen) -> None:
    problem = '{"title": "The question needs too much memory", "detail": "Ask for fewer groups.", "status": 422}'
    seen.page.route(
        "**/requests?*", lambda route: route.fulfill(status=422, body=problem, content_type="application/problem+json")
    )
    seen.open("view?customer=acme&view=captured-mux")
    seen.page.locator("#read-requests").click(timeout=SOON_MS)
    expect(seen.page.locator("#requests-problem")).to_have_text(
        "The question needs too much memory. Ask for fewer groups.", timeout=SOON_MS
    )


def test_requests_of_one_row_are_not_shown_under_another_row_of_the_same_id(seen: Seen) -> None:
    page = seen.page
    # A view that goes on for more than a day has several rows, by day: here each is the same row.
    page.route(
        re.compile(r"/v1/views/captured-hls(/requests)?\?"),
        lambda route: route.fulfill(response=route.fetch(url=re.sub(r"&day=\d+", "", route.request.url))),
    )
    seen.open("view?customer=acme&view=captured-hls&day=1")
    expect(page.locator("#read-requests")).to_be_visible(timeout=SOON_MS)
    with page.expect_response(lambda one: "captured-hls?" in one.url and "day=2" in one.url):
        page.evaluate(
            "(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }",
            page.url.replace("day=1", "day=2"),
        )
    page.locator("#read-requests").click(timeout=SOON_MS)
    expect(page.locator("#request-table")).to_be_visible(timeout=SOON_MS)
    page.go_back()
    expect(page).to_have_url(re.compile("day=1"))
    expect(page.locator("#read-requests")).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#request-table")).to_have_count(0)


def test_how_old_a_view_is_follows_from_the_servers_clock(context: BrowserContext, looked: Looked) -> None:
    # Playwright's clock would be set for all pages of the context, which other tests use after this one.
    with closing(context.new_page()) as page:
        # By the clock of a viewer that is two months behind the view would be too new for its beacons to be gone.
        page.add_init_script(f"const now = Date.now; Date.now = () => now() - {60 * DAY_MS};")
        read(Seen(page, looked.url), NOT_KEPT)
        expect(page.locator("#requests-read")).to_contain_text("The beacons of this view are no longer kept")


def test_requests_can_be_read_by_everybody_and_fit_a_phone(seen: Seen, looked: Looked) -> None:
    on_a_phone(seen.page)
    read(seen, "captured-mux")
    assert unfit(seen.page) == []
    region = seen.page.get_by_role("region", name="Requests")
    region.focus()
    expect(region).to_be_focused()
