"""Views, one view, and errors, in a real browser, beside the truth of the views."""

import json
import re
from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import FloatRect, expect
from pyarrow import csv, parquet

from tests.integration.page.parts.installation import BEACONS_OF_X, Looked
from tests.integration.page.parts.looking import PHONE, SCHEMES, ZONE, Seen, local_text, number, pixels, within
from tests.integration.page.parts.page_views import MINUTE_MS, NEW_ERROR, SESSION, VIEWER
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import HOUR_MS, counts_at

pytestmark = pytest.mark.integration


def test_what_happened_to_a_viewer_at_an_hour(seen: Seen, looked: Looked) -> None:
    page = seen.page
    (of_x,) = (view for view in looked.views if view.viewer_user_id == VIEWER)
    began_ms = of_x.view_start_ms
    seen.go("Views", customer="acme")
    seen.between(began_ms - 5 * MINUTE_MS, began_ms + 5 * MINUTE_MS)
    page.locator("#search input[name=viewer]").fill(VIEWER)
    page.get_by_role("button", name="Search").click()
    row = page.locator("#views tbody tr")
    expect(row).to_have_count(1, timeout=SOON_MS)
    expect(row).to_contain_text("MEDIA_ERR_NETWORK")
    row.get_by_role("link").click()
    expect(page.locator("#view-title")).to_contain_text("Cup final · mux · ended with an error", timeout=SOON_MS)
    life = page.locator("#view-life svg").first
    expect(life).to_have_attribute("aria-label", re.compile("rebuffering 8.00 s, playing 22.0 s, rebuffering 5.00 s"))
    bitrate = page.locator("#view-life .lane", has_text="Bitrate")
    expect(bitrate.locator(".lane-name small")).to_have_text("to 4.00 Mbps")
    titles = ["4.00 Mbps, from 1.20 s", "4.00 Mbps, from 60.0 s", "1.50 Mbps, from 68.0 s"]
    assert bitrate.locator("rect title").all_text_contents() == titles
    expect(page.locator("#view-facts")).to_contain_text("2 × · 13.0 s (13.7%)")
    # What a fact means is said as of the column of that name.
    for name, words in (
        ("Start-up", "from the request to play to the first frame"),
        ("Seeks", "how often its viewer sought"),
    ):
        page.locator("#view-facts").get_by_role("button", name=f"What {name} means").click()
        expect(page.get_by_role("note")).to_contain_text(words)
        page.keyboard.press("Escape")
    expect(page.locator("#view-facts")).to_contain_text("MEDIA_ERR_NETWORK: the segment never came")
    # The wall clock beside the playhead: when it first stalled.
    stalled = datetime.fromtimestamp((began_ms + 60_000) / 1_000, ZoneInfo(ZONE))
    event = page.locator("#view-events tr", has_text="rebufferstart").first
    expect(event).to_contain_text(f"{stalled:%H:%M:%S}")
    expect(event.locator("th")).to_have_text("60.0 s")


def test_each_error_of_a_timeline_has_its_code_and_text_or_says_where_they_are(seen: Seen) -> None:
    seen.open("view?customer=acme&view=view-of-x")
    page = seen.page
    lane = page.locator("#view-life .lane", has_text="Errors").locator("svg")
    said = ["warning, at 64.0 s", "error MEDIA_ERR_NETWORK: the segment never came, at 95.0 s"]
    expect(lane).to_have_attribute("aria-label", "; ".join(said), timeout=SOON_MS)
    assert lane.locator("rect title").all_text_contents() == said
    rows = page.locator("#view-events tr")
    expect(rows.filter(has_text="error").last.locator("td").nth(1)).to_have_text(
        re.compile("^errorMEDIA_ERR_NETWORK: the segment never came$")
    )
    warned = rows.filter(has_text="warning")
    expect(warned).to_contain_text("Its code is in its beacon.")
    # The row keeps the last error alone: the others are read from the beacons by a click.
    assert not any(path.endswith("/beacons") for path in seen.asked)
    page.locator("#read-errors").click()
    expect(warned).to_contain_text("BUFFER_LOW: two seconds are left", timeout=SOON_MS)
    expect(lane).to_have_attribute(
        "aria-label", f"warning BUFFER_LOW: two seconds are left, at 64.0 s; {said[1]}", timeout=SOON_MS
    )
    expect(page.locator("#read-errors")).to_have_count(0)


def test_an_underline_leaves_the_underscores_of_a_link_in_sight(seen: Seen) -> None:
    seen.open("view?customer=acme&view=view-of-x")
    link = seen.page.locator("#view-dimensions").get_by_role("link", name="MEDIA_ERR_NETWORK")
    expect(link).to_be_visible(timeout=SOON_MS)
    # Underscores alone. Down the middle of them: ground, underscore, ground, underline.
    box = link.evaluate("""(one) => {
        one.textContent = "_____";
        one.scrollIntoView({ block: "center" });
        return one.getBoundingClientRect().toJSON();
    }""")
    clip: FloatRect = {"x": box["x"] + box["width"] / 2, "y": box["y"], "width": 1, "height": box["height"] + 8}
    middle = pixels(seen.page, clip)
    inked = [pixel != middle[0] for pixel in middle]
    assert sum(now and not before for before, now in pairwise(inked)) == 2


def test_a_timeline_ends_where_the_row_stops_keeping_events_and_leads_to_the_beacons(seen: Seen) -> None:
    seen.open("view?customer=acme&view=view-of-hours")
    page = seen.page
    lanes = page.locator("#view-life .lane")
    expect(lanes.filter(has_text="State")).to_have_count(1, timeout=SOON_MS)
    # Each lane says that it does not know the rest, the one without a mark too. Requests are no events of the row.
    names = ["State", "Errors", "Bitrate\nto 3.00 Mbps", "Requests"]
    assert lanes.locator(".lane-name").all_inner_texts() == names
    rest = lanes.locator(".unkept")
    texts = rest.evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))")
    assert texts == ["not kept: 2.7 h, from 19.9 min"] * 3
    for at in range(3):
        whole, unknown = (one.nth(at).bounding_box() for one in (lanes.locator(".drawn"), rest))
        assert whole is not None
        assert unknown is not None
        assert unknown["width"] / whole["width"] == pytest.approx(160.1 / 180, abs=0.01)
    drawn = lanes.locator("svg rect").evaluate_all(
        "(all) => all.map((one) => one.x.baseVal.value + one.width.baseVal.value)"
    )
    assert max(drawn) == pytest.approx(1_000 * 19.9 / 180, abs=2)
    # The axis ends with the lanes.
    ends = [
        one.last.evaluate("(one) => one.getBoundingClientRect().right") for one in (lanes, page.locator(".axis span"))
    ]
    assert ends[1] <= ends[0]
    expect(page.locator(".states li.unkept")).to_have_text("not kept")
    expect(page.locator("#events summary")).to_have_text("The first 200 events")
    expect(page.locator("#later")).to_contain_text("the first 200 events of this view, up to 19.9 min")
    page.get_by_role("button", name="Show the beacons").click()
    expect(page.locator("#view-beacons")).to_have_attribute("open", "")
    expect(page.locator("#view-beacons")).to_contain_text("The warehouse has none yet", timeout=SOON_MS)
    assert inaccessible(page) == []


def test_which_errors_are_new_since_a_release(seen: Seen, looked: Looked) -> None:
    released_ms = (looked.now_ms - HOUR_MS) // MINUTE_MS * MINUTE_MS
    seen.go("Errors", customer="acme", within="7d")
    seen.page.locator("#since").fill(local_text(released_ms))
    seen.page.locator("#since").press("Enter")
    rows = seen.page.locator("#errors tbody tr")
    new = rows.filter(has=seen.page.locator(".tag"))
    expect(new).to_have_count(1, timeout=SOON_MS)
    expect(new).to_contain_text(NEW_ERROR)
    bounds = seen.range("/v1/errors")
    codes = [view.error_code for view in within(looked, bounds, customer_id="acme") if view.error_code]
    shown = {row.locator("th a").inner_text(): row.locator("td").first.inner_text() for row in rows.all()}
    assert shown == {code: str(codes.count(code)) for code in set(codes)}
    # The share of views before and since, and the change: it rose from none.
    heads = seen.page.locator("#errors thead th").all_inner_texts()
    spans = {"Before": (bounds[0], released_ms), "Since": (released_ms, bounds[1])}
    for row in rows.all():
        code = row.locator("th a").inner_text()
        cells = dict(zip(heads[1:], row.locator("td").all_inner_texts(), strict=True))
        for name, span in spans.items():
            views = within(looked, span, customer_id="acme")
            share = sum(view.error_code == code for view in views) / len(views)
            assert number(cells[name]) == pytest.approx(share, rel=0.006, abs=6e-5), (code, name)
            assert cells[name].endswith(f"n {len(views):,}")
    assert number(new.locator("td").nth(heads.index("Before") - 1).inner_text()) == 0
    # Where it occurs opens below its row.
    new.get_by_role("button", name=f"Show where {NEW_ERROR} occurs").click()
    expect(seen.page.locator("#errors tr.where")).to_contain_text("Player version")
    new.get_by_role("link", name=NEW_ERROR).click()
    expect(seen.page.locator("#views tbody tr")).to_have_count(codes.count(NEW_ERROR), timeout=SOON_MS)


def test_the_list_says_by_what_it_is_ordered(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.go("Views", customer="acme", within="24h")
    rows = page.locator("#views tbody tr")
    expect(rows).to_have_count(50, timeout=SOON_MS)
    finished = page.locator("#views thead th[aria-sort]")
    expect(finished).to_contain_text("Finished")
    expect(finished).to_have_attribute("aria-sort", "descending")
    truth = sorted(counts_at(view) for view in within(looked, seen.range("/v1/views"), customer_id="acme"))

    def texts(times: list[int]) -> list[str]:
        return [f"{datetime.fromtimestamp(at / 1_000, ZoneInfo(ZONE)):%H:%M:%S}" for at in times]

    def shown() -> list[str]:
        return [text.split(", ")[1] for text in rows.locator("td:nth-of-type(1)").all_inner_texts()]

    assert shown() == texts(truth[::-1][:50])
    finished.locator("button:not(.what)").click()
    expect(finished).to_have_attribute("aria-sort", "ascending", timeout=SOON_MS)
    expect(rows.first.locator("td").first).to_contain_text(texts(truth)[0], timeout=SOON_MS)
    assert shown() == texts(truth[:50])
    assert seen.asked["/v1/views"]["order_by"] == ["time"]
    # A column of texts is no order.
    expect(page.locator("#views thead th", has_text="Country").get_by_role("button")).to_have_count(0)


def test_columns_have_words_of_people_and_say_what_they_mean(seen: Seen) -> None:
    page = seen.page
    named = {
        "seek_ms": "Seeking",
        "upscale_integral": "Upscaling × time",
        "ttfb_sum_ms": "Waiting for requests",
        "req_time_ms": "Time of requests",
        "dropped_frames": "Dropped frames",
        "score_smooth": "Smoothness score",
        "content_startup_ms": "Content start-up time",
        "startup_ms": "Start-up",
        "country": "Country",
        "gap_ms": "Time without beacons",
    }
    seen.open(f"views?customer=acme&range=24h&columns={','.join(named)}")
    heads = page.locator("#views thead th")
    expect(heads).to_have_count(len(named) + 1, timeout=SOON_MS)
    # Titles of metrics come with the list of those.
    for at, (name, title) in enumerate(named.items(), start=1):
        expect(heads.nth(at)).to_have_text(title if name in ("country", "gap_ms") else f"{title} ?")
    page.get_by_role("button", name="What Start-up means").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".meaning")).to_contain_text("from the request to play to the first frame")
    expect(page.locator(".meaning")).to_contain_text("Mux, video startup time")
    assert inaccessible(page) == []
    page.keyboard.press("Escape")
    # What only a link has asked for can be left out by a click too.
    page.locator("details.columns summary").click()
    page.get_by_label("Time without beacons").click()
    expect(heads).to_have_count(len(named), timeout=SOON_MS)


def test_a_table_that_scrolls_has_a_shade_where_more_is(seen: Seen) -> None:
    page = seen.page
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    seen.open("views?customer=acme&range=24h")
    head = page.locator("#views thead th").first
    expect(head).to_be_visible(timeout=SOON_MS)
    head.scroll_into_view_if_needed()
    table = page.locator(".scroll", has=page.locator("#views"))

    def edge() -> list[tuple[int, int, int]]:
        """The right edge of the table, below the texts of its head."""
        box, of_head = table.bounding_box(), head.bounding_box()
        assert box is not None
        assert of_head is not None
        at: FloatRect = {
            "x": box["x"] + box["width"] - 12,
            "y": of_head["y"] + of_head["height"] - 4,
            "width": 10,
            "height": 1,
        }
        return pixels(page, at)

    assert table.evaluate("(one) => one.scrollWidth - one.clientWidth") > 100
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        card = page.evaluate("getComputedStyle(document.body).getPropertyValue('--card')").lstrip("#")
        plain = tuple(int(card[at : at + 2], 16) for at in (0, 2, 4))
        table.evaluate("(one) => { one.scrollLeft = 0; }")
        shaded = edge()
        assert len(set(shaded)) > 5
        assert sum(abs(one - other) for one, other in zip(shaded[-1], plain, strict=True)) > 60
        # At its end nothing more is on this side.
        table.evaluate("(one) => { one.scrollLeft = one.scrollWidth; }")
        assert set(edge()) == {plain}


@pytest.mark.parametrize("form", ["CSV", "Parquet"])
def test_views_come_as_a_file(seen: Seen, looked: Looked, form: str) -> None:
    seen.go("Views", customer="acme", within="24h")
    expect(seen.page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)
    truth = {view.view_id for view in within(looked, seen.range("/v1/views"), customer_id="acme")}
    with seen.page.expect_download(timeout=2 * SOON_MS) as download:
        seen.page.locator(".export").get_by_role("button", name=form).click()
    file = download.value.path()
    found = csv.read_csv(file) if form == "CSV" else parquet.read_table(file)
    assert set(found["view_id"].to_pylist()) == truth


def test_beside_open_views_it_says_that_files_have_finished_ones_alone(seen: Seen) -> None:
    seen.open("views?customer=acme")
    page = seen.page
    files, said = page.get_by_role("group", name="Export"), page.locator("#exports-finished")
    expect(files).to_be_visible(timeout=SOON_MS)
    expect(said).to_have_count(0)
    page.locator("#show-open").click()
    expect(said).to_have_text("Files have finished views alone.", timeout=SOON_MS)
    expect(files).to_have_attribute("title", "Exports finished views alone")
    page.locator("#show-open").click()
    expect(said).to_have_count(0)


def test_more_views_come_of_the_range_of_the_first_page_when_time_has_moved_on(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.go("Views", customer="acme", within="24h")
    rows = page.locator("#views tbody tr")
    expect(rows).to_have_count(50, timeout=SOON_MS)
    # A range up to now is another one an hour later.
    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3_700_000; }")
    page.get_by_role("button", name="More views").click()
    expect(rows).to_have_count(100, timeout=SOON_MS)
    expect(page.locator("main .notice")).to_have_count(0)


def test_every_beacon_behind_a_view_is_shown_page_by_page(seen: Seen) -> None:
    seen.open("view?customer=acme&view=view-of-x")
    panel = seen.page.locator("#view-beacons")
    panel.get_by_text("Beacons behind it").click(timeout=SOON_MS)
    beacons = panel.locator("li code")
    expect(beacons).to_have_count(100, timeout=SOON_MS)
    panel.get_by_role("button", name="More beacons").click()
    expect(beacons).to_have_count(BEACONS_OF_X, timeout=SOON_MS)
    assert [json.loads(text)["seq"] for text in beacons.all_inner_texts()] == list(range(BEACONS_OF_X))
    expect(panel.get_by_role("button")).to_have_count(0)


def test_a_view_leads_to_the_recording_of_its_session_and_back(seen: Seen) -> None:
    seen.open("view?customer=acme&view=view-of-x")
    page = seen.page
    expect(page.locator("main")).to_contain_text("3 parts", timeout=SOON_MS)
    page.locator("#recording").click()
    page.wait_for_url(re.compile("/replay"), timeout=SOON_MS)
    # Nobody has the payloads here, and the page says so.
    expect(page.locator("#status")).to_contain_text("The recording cannot be looked up now", timeout=SOON_MS)
    asked = seen.asked["/v1/recordings"]
    assert (asked["customer"], asked["session"]) == (["acme"], [SESSION])
    page.get_by_role("link", name="Back to the view").click()
    expect(page.locator("#view-title")).to_contain_text("Cup final", timeout=SOON_MS)
