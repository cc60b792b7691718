"""The table of Explore: which groups it lists, and where its figures lead."""

import re
from collections import Counter
from typing import Final

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from pyarrow import csv

from shared.statistics.histogram import bucket_of
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import PHONE, Seen, number, texts, within
from tests.integration.page.parts.page_views import CDNS
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration

#: Views of one page of the list.
PAGE: Final = 50
#: Buckets of a histogram that make a bin of a distribution.
BUCKETS_A_BIN: Final = 12


def test_a_breakdown_lists_more_rows_and_those_with_enough_views_alone(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=30d&as=table&by=viewer&metrics=views")
    rows = page.locator("#groups tbody tr")
    expect(rows).to_have_count(21, timeout=SOON_MS)
    bounds = seen.range("/v1/breakdown")
    truth = Counter(str(view.viewer_user_id) for view in within(looked, bounds, customer_id="acme"))
    expect(rows.last.locator("th")).to_have_text(f"(other) {len(truth) - 20} more")
    page.locator("#more-rows").click()
    expect(rows).to_have_count(101, timeout=SOON_MS)
    expect(page).to_have_url(re.compile("rows=100"))
    page.locator("#more-rows").click()
    expect(rows).to_have_count(len(truth), timeout=SOON_MS)
    expect(page.locator("#more-rows")).to_have_count(0)
    assert {head: number(cells[0]) for head, cells in seen.rows("#groups").items()} == truth
    # The field above the table does not touch it.
    field, table = page.locator("#views-min").bounding_box(), page.locator(".scroll:has(> #groups)").bounding_box()
    assert field is not None
    assert table is not None
    assert table["y"] - field["y"] - field["height"] >= 6
    # Those with few views are no rows of their own; the address has the number.
    least = truth.most_common(30)[-1][1]
    enough = {name: n for name, n in truth.items() if n >= least}
    page.locator("#views-min").fill(str(least))
    page.locator("#views-min").press("Enter")
    expect(rows).to_have_count(len(enough) + 1, timeout=SOON_MS)
    expect(rows.last.locator("th")).to_have_text(f"(other) {len(truth) - len(enough)} more")
    expect(page.locator("#more-rows")).to_have_count(0)
    page.reload()
    expect(page.locator("#views-min")).to_have_value(str(least), timeout=SOON_MS)
    expect(rows).to_have_count(len(enough) + 1, timeout=SOON_MS)


def listed(seen: Seen, count: int) -> list[str]:
    """The ids of the views that are listed, once there are as many."""
    links = seen.page.locator("#views tbody th a")
    expect(links).to_have_count(count, timeout=SOON_MS)
    found: list[str] = links.evaluate_all("(all) => all.map((one) => one.title)")
    return found


def test_a_failure_rate_leads_to_the_views_that_failed_and_its_n_to_all(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=24h&as=table&by=cdn&metrics=playback_failure_fraction")
    page.get_by_role("link", name="The views behind it: those that failed").click(timeout=SOON_MS)
    expect(page.locator(".chip")).to_contain_text("Playback failed is true", timeout=SOON_MS)
    bounds = seen.range("/v1/overall")
    failed = within(looked, bounds, customer_id="acme", playback_failed=True)
    assert 0 < len(failed) < PAGE
    assert sorted(listed(seen, len(failed))) == sorted(view.view_id for view in failed)
    page.go_back()
    page.locator("#overall").get_by_role("link", name="n ").click(timeout=SOON_MS)
    listed(seen, PAGE)
    expect(page.locator(".chip")).to_have_count(0)
    page.go_back()
    # Those of one group alone.
    row = page.locator("#groups tbody tr", has=page.get_by_role("link", name="fastly"))
    row.locator("td").first.get_by_role("link").click(timeout=SOON_MS)
    of_group = [view.view_id for view in failed if view.cdn == "fastly"]
    assert sorted(listed(seen, len(of_group))) == sorted(of_group)
    page.go_back()
    row.locator("td").nth(1).get_by_role("link").click(timeout=SOON_MS)
    listed(seen, min(PAGE, len(within(looked, bounds, customer_id="acme", cdn="fastly"))))


def test_rebuffering_leads_to_its_views_the_longest_first(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=24h&metrics=rebuffer_fraction")
    page.get_by_role("link", name="The views behind it: the longest rebuffering first").click(timeout=SOON_MS)
    expect(page.locator("#views th[aria-sort=descending]")).to_contain_text("Rebuffering", timeout=SOON_MS)
    views = {view.view_id: view for view in within(looked, seen.range("/v1/overall"), customer_id="acme")}
    shown = [views[name].rebuffer_ms for name in listed(seen, PAGE)]
    assert shown == sorted((view.rebuffer_ms for view in views.values()), reverse=True)[:PAGE]


def test_a_bin_of_a_distribution_leads_to_its_views(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=24h&metrics=startup_ms_p50&as=distribution")
    bins = page.locator("#bins tbody tr")
    expect(bins.first).to_be_visible(timeout=SOON_MS)
    views = within(looked, seen.range("/v1/distribution"), customer_id="acme")
    by_bin: dict[int, set[str]] = {}
    for view in views:
        if view.startup_ms is not None:
            by_bin.setdefault(bucket_of(view.startup_ms) // BUCKETS_A_BIN, set()).add(view.view_id)
    # The fullest one of those that are on one page.
    place, truth = max(
        ((place, by_bin[key]) for place, key in enumerate(sorted(by_bin)) if len(by_bin[key]) <= PAGE),
        key=lambda one: len(one[1]),
    )
    bins.nth(place).get_by_role("link").click()
    expect(page.locator(".chip")).to_contain_text("Video start-up time is at least", timeout=SOON_MS)
    assert set(listed(seen, len(truth))) == truth


@pytest.mark.parametrize(
    ("metric", "field", "unit"),
    [("bitrate_bps", "avg_bitrate_bps", "Mbps"), ("experience_score", "score_view", "")],
)
def test_bitrates_and_scores_are_distributed_in_their_units(
    seen: Seen, looked: Looked, metric: str, field: str, unit: str
) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=24h")
    page.locator("#metric").select_option(metric, timeout=SOON_MS)
    page.get_by_role("button", name="Distribution").click()
    bins = page.locator("#bins tbody tr")
    expect(bins.first).to_be_visible(timeout=SOON_MS)
    views = within(looked, seen.range("/v1/distribution"), customer_id="acme")
    values = {view.view_id: value for view in views if (value := getattr(view, field)) is not None}
    by_bin: dict[int, set[str]] = {}
    for view_id, value in values.items():
        # Scores by five points.
        place = value // 5 if field == "score_view" else bucket_of(value) // BUCKETS_A_BIN
        by_bin.setdefault(place, set()).add(view_id)
    assert [[number(text) for text in row] for row in texts(bins, ".count")] == [
        [len(by_bin[place])] for place in sorted(by_bin)
    ]
    ends = texts(bins, "th, td:nth-child(2)")
    assert all(text.endswith(unit) for row in ends for text in row)
    if field == "score_view":
        # Nothing is better than 100.
        assert ends == [
            [f"{5 * place:.1f}", "–" if place == 20 else f"{5 * place + 5:.1f}"] for place in sorted(by_bin)
        ]
    ordered = sorted(values.values())
    median = ordered[(len(ordered) + 1) // 2 - 1]
    shown = page.locator(".quantiles li", has_text=re.compile("p50$")).locator("b").inner_text()
    assert number(shown) == pytest.approx(median, rel=0.012)
    # A bin leads to its views, which have the value in a column of that name.
    fewest = min(by_bin, key=lambda place: len(by_bin[place]))
    bins.nth(sorted(by_bin).index(fewest)).get_by_role("link").click()
    expect(page.locator(".chip")).to_contain_text(
        f"{'Weighted average bitrate' if unit else 'Experience'} is at least", timeout=SOON_MS
    )
    expect(page.locator(".chip")).to_contain_text(unit)
    assert len(by_bin[fewest]) <= PAGE
    assert set(listed(seen, len(by_bin[fewest]))) == by_bin[fewest]
    head = page.locator("#views thead th[aria-sort]")
    expect(head).to_contain_text("Bitrate" if unit else "Experience")


def test_what_is_drawn_comes_as_a_file(seen: Seen, looked: Looked) -> None:
    page = seen.page

    def file() -> pa.Table:
        with page.expect_download(timeout=2 * SOON_MS) as download:
            page.locator(".export").get_by_role("button", name="CSV").click()
        return csv.read_csv(download.value.path())

    order = "sort=views&order=ascending&compare=previous"
    seen.open(f"explore?customer=acme&range=24h&as=table&by=cdn&metrics=playback_failures&{order}")
    shown = seen.rows("#groups")
    begin, end = seen.range("/v1/breakdown")
    found = file()
    assert found["cdn"].to_pylist() == list(shown)
    for column, bounds in (("", (begin, end)), ("_before", (2 * begin - end, begin))):
        failed = sum(view.playback_failed for view in within(looked, bounds, customer_id="acme"))
        # A group without views before has no figure there.
        assert sum(value or 0 for value in found[f"playback_failures{column}"].to_pylist()) == failed
    # A chart is its lines, not the table below it.
    page.get_by_role("button", name="Line").click()
    expect(page.locator(".chart .legend")).to_contain_text("fastly", timeout=SOON_MS)
    found = file()
    assert set(found["value"].to_pylist()) == {*CDNS, "(unknown)"}
    lines = Counter(dict.fromkeys(CDNS, 0))
    for name, views in zip(found["value"].to_pylist(), found["views"].to_pylist(), strict=True):
        lines[name] += views
    bounds = seen.range("/v1/timeseries")
    assert {cdn: lines[cdn] for cdn in CDNS} == {
        cdn: len(within(looked, bounds, customer_id="acme", cdn=cdn)) for cdn in CDNS
    }


def test_cells_and_points_of_too_few_views_are_explained_below(seen: Seen) -> None:
    page = seen.page
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    seen.open("explore?customer=acme&range=7d&by=viewer&metrics=startup_ms_p95")
    cells, points = page.locator("#hidden-cells"), page.locator("#hidden-points")
    expect(cells).to_have_text("Dash: a value is not shown below 100 views.", timeout=SOON_MS)
    expect(page.locator("#groups tbody td").first).to_have_text("–")
    expect(points).to_have_text("Gap: a value is not shown below 100 views.", timeout=SOON_MS)
    seen.open("explore?customer=acme&range=7d&by=viewer&metrics=startup_ms_p50")
    expect(page.locator("#groups tbody tr").first).to_be_visible(timeout=SOON_MS)
    expect(cells).to_have_count(0)
    expect(points).to_have_count(0)


def test_a_table_that_is_sorted_by_a_percentile_lists_no_group_without_its_figure(seen: Seen) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=7d&as=table&by=viewer&metrics=startup_ms_p95")
    field, why, rows = page.locator("#views-min"), page.locator("#views-min-why"), page.locator("#groups tbody tr")
    expect(rows).to_have_count(21, timeout=SOON_MS)
    expect(why).to_have_count(0)
    page.locator("#groups thead").get_by_role("button", name="p95").click()
    expect(field).to_have_attribute("placeholder", "100")
    # No viewer has as many views: all of them are the rest.
    expect(rows).to_have_count(1, timeout=SOON_MS)
    assert seen.asked["/v1/breakdown"]["views_min"] == ["100"]
    # Another number would list what has no value to sort by.
    expect(why).to_have_text("No group has 100 views in this range. Try: Last 30 days · sort by views")
    why.get_by_role("link", name="sort by views").click()
    expect(rows).to_have_count(21, timeout=SOON_MS)
    expect(why).to_have_count(0)
    page.go_back()
    why.get_by_role("link", name="Last 30 days").click(timeout=SOON_MS)
    expect(page.locator("#range")).to_have_value("30d", timeout=SOON_MS)
    expect(page.locator("#groups thead [aria-sort]")).to_contain_text("p95")
    seen.open("explore?customer=acme&range=7d&as=table&by=cdn&metrics=startup_ms_p95&sort=startup_ms_p95")
    expect(why).to_have_text("100 unless you type another number: a smaller group shows no value to sort by.")
    seen.open("explore?customer=acme&range=7d&as=table&by=viewer&metrics=startup_ms_p95&sort=startup_ms_p95")
    expect(rows).to_have_count(1, timeout=SOON_MS)
    field.fill("1")
    field.press("Enter")
    expect(rows).to_have_count(21, timeout=SOON_MS)
    expect(why).to_have_count(0)


def test_an_address_with_several_metrics_shows_the_first_and_offers_the_others(seen: Seen) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=7d&metrics=startup_ms_p50,views,mistyped&by=cdn")
    expect(page.locator("#overall .value")).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#metric")).to_have_value("startup_ms_p50")
    expect(page.locator(".skeleton")).to_have_count(0, timeout=SOON_MS)
    assert seen.asked["/v1/overall"]["metrics"] == ["startup_ms_p50"]
    page.locator("#other-metrics a").click()
    expect(page.locator("#metric")).to_have_value("views", timeout=SOON_MS)
    expect(page.locator("#other-metrics")).to_have_count(0)
