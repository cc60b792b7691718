"""The past on the page: how long a point is, counts of nobody, hours that come twice, since when errors are new, files of lists."""

import re
from collections import Counter

import pyarrow as pa
from playwright.sync_api import expect
from pyarrow import csv

from tests.integration.page.parts.looking import SOON_MS, Looked, Seen, within
from tests.integration.page.parts.page_views import NEW_ERROR
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS, counts_at

MINUTE_MS = 60_000


def file(seen: Seen) -> pa.Table:
    """The CSV of what is shown."""
    with seen.page.expect_download(timeout=2 * SOON_MS) as download:
        seen.page.locator(".export").get_by_role("button", name="CSV").click()
    return csv.read_csv(download.value.path())


def test_a_point_is_as_long_as_one_chooses_as_far_as_the_range_allows(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=24h&metrics=views")
    with page.expect_response(re.compile(r"/v1/timeseries.*bucket=hour")) as found:
        page.locator("#bucket").select_option("hour", timeout=SOON_MS)
    answer = found.value.json()
    # A range up to now ends now: its first and last hour are parts of one.
    begin, end = answer["about"]["range"]["from_ms"], answer["about"]["range"]["to_ms"]
    assert (end - begin, end % MINUTE_MS) == (DAY_MS, 0)
    assert end <= answer["points"][-1]["to_ms"] <= looked.now_ms + HOUR_MS
    is_whole = end % HOUR_MS == 0
    assert [bool(one.get("is_partial")) for one in answer["points"]] == (
        [False] * 24 if is_whole else [True, *[False] * 23, True]
    )
    if not is_whole:
        expect(page.locator("#partial")).to_contain_text("Not a whole hour", timeout=SOON_MS)
    page.reload()
    expect(page.locator("#bucket")).to_have_value("hour", timeout=SOON_MS)
    hours = file(seen)
    assert hours.num_rows == len(answer["points"])
    assert "from_at" in hours.column_names
    # Minutes of three months are too many.
    with page.expect_response(re.compile(r"/v1/timeseries")) as found:
        seen.open("explore?customer=acme&range=90d&metrics=views&bucket=minute")
    assert "bucket=" not in found.value.url
    assert page.locator("#bucket option").all_inner_texts() == ["what fits the range", "day", "week"]


def test_a_time_of_nobody_is_drawn_as_0_and_has_no_rebuffering(seen: Seen, looked: Looked) -> None:
    page = seen.page
    with page.expect_response(re.compile(r"/v1/timeseries")) as found:
        seen.open("explore?customer=acme&range=24h&metrics=views&bucket=minute")
    answer = found.value.json()
    empty = [
        at
        for at, point in enumerate(answer["points"])
        if point["n"] == 0 and point["from_ms"] < answer["about"]["as_of_ms"]
    ]
    assert empty
    for metric, shown in (("views", "0"), ("rebuffer_fraction", "–")):
        if metric != "views":
            page.locator("#metric").select_option(metric)
        chart = page.locator(".chart").first
        expect(chart.locator(".plot canvas")).to_be_visible(timeout=SOON_MS)
        chart.locator(".plot").focus()
        for key in ("Home", *["ArrowRight"] * empty[0]):
            page.keyboard.press(key)
        expect(chart.locator(".legend b")).to_have_text(shown, timeout=SOON_MS)


def test_of_an_hour_that_comes_twice_one_chooses_which(seen: Seen) -> None:
    page = seen.page
    seen.open("explore?customer=acme&from=2026-11-01T01:15-05:00&to=2026-11-01T06:00&tz=America/New_York")
    offset = page.locator("#from-offset")
    expect(offset.locator("option")).to_have_text(["UTC-04:00", "UTC-05:00"], timeout=SOON_MS)
    expect(offset.locator("option:checked")).to_have_text("UTC-05:00")
    expect(page.locator("#to-offset")).to_have_count(0)
    # 01:15 of summer time is 05:15 UTC.
    with page.expect_response(re.compile(r"/v1/overall.*from=1793510100000")):
        offset.select_option(label="UTC-04:00")
    expect(page).to_have_url(re.compile(r"from=2026-11-01T01%3A15-04%3A00"))


def test_errors_and_titles_come_as_files_and_errors_say_since_when_they_are_new(seen: Seen, looked: Looked) -> None:
    page = seen.page
    day = f"from={looked.now_ms - DAY_MS}&to={looked.now_ms}"
    seen.open(f"errors?customer=acme&{day}&compare=previous")
    expect(page.locator("#errors tbody tr").first).to_be_visible(timeout=SOON_MS)
    page.get_by_role("button", name="What First seen means").click()
    expect(page.get_by_role("note")).to_contain_text("the first view with the code")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="What New means").click()
    expect(page.get_by_role("note")).to_contain_text("codes without a view from")
    page.keyboard.press("Escape")
    bounds = seen.range("/v1/errors")
    found = file(seen)
    views = within(looked, bounds, customer_id="acme")
    counts = Counter(view.error_code for view in views if view.error_code)
    first = {
        code: min(counts_at(view) for view in looked.views if view.customer_id == "acme" and view.error_code == code)
        for code in counts
    }
    assert dict(zip(found["code"].to_pylist(), found["first_ms"].to_pylist(), strict=True)) == first
    assert NEW_ERROR in counts
    seen.open("titles?customer=acme&range=7d")
    expect(page.locator("#titles tbody tr").first).to_be_visible(timeout=SOON_MS)
    bounds = seen.range("/v1/titles")
    found = file(seen)
    titles = Counter(view.video_title for view in within(looked, bounds, customer_id="acme") if view.video_id)
    assert dict(zip(found["title"].to_pylist(), found["views"].to_pylist(), strict=True)) == titles
