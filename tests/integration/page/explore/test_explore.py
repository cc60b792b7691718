"""Explore: everyday questions answered by clicks in a real browser, beside the truth of the views."""

import json
import re
import time
import urllib.request
from collections import Counter
from contextlib import closing
from typing import Final

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import (
    ZONE,
    Seen,
    expect_rows,
    in_time,
    number,
    on_a_phone,
    texts,
    unfit,
    within,
)
from tests.integration.page.parts.page_views import BROWSERS, CDNS, MINUTE_MS, PLANS, VERSIONS
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import DAY_MS, FIGURES, HOUR_MS, counts_at

pytestmark = pytest.mark.integration

#: Buckets of a histogram that make a bin of a distribution.
BUCKETS_A_BIN: Final = 12


def test_startup_by_country_over_thirty_days(seen: Seen, looked: Looked) -> None:
    for metric in ("startup_ms_p50", "startup_ms_p95"):
        seen.go("Explore", within="30d")
        seen.page.locator("#metric").select_option(metric, timeout=SOON_MS)
        seen.page.locator("#by").select_option("country")
        seen.page.get_by_role("button", name="Table").click()
        rows = {head: cells for head, cells in seen.rows("#groups").items() if head in {"DE", "FR", "US", "BR"}}
        bounds = seen.range("/v1/breakdown")
        assert len(rows) == 4
        for country, cells in rows.items():
            views = within(looked, bounds, country=country)
            assert number(cells[0]) == pytest.approx(FIGURES[metric](views), rel=0.006)
            assert number(cells[2]) == sum(view.startup_ms is not None for view in views)


def test_exits_before_start_by_browser(seen: Seen, looked: Looked) -> None:
    seen.go("Explore", within="30d")
    seen.page.locator("#metric").select_option("exit_before_start_fraction", timeout=SOON_MS)
    seen.page.locator("#by").select_option("browser")
    rows = {head: cells for head, cells in seen.rows("#groups").items() if head in BROWSERS}
    bounds = seen.range("/v1/breakdown")
    expect_rows(rows, lambda name: within(looked, bounds, browser=name), "exit_before_start_fraction", least=3)


def test_two_player_versions_beside_each_other(seen: Seen, looked: Looked) -> None:
    seen.go("Explore", within="7d")
    page = seen.page
    page.locator("#metric").select_option("playback_failure_fraction", timeout=SOON_MS)
    page.locator("#by").select_option("player_version", timeout=SOON_MS)
    expect(page.locator(".chart .legend")).to_contain_text("2.4.0", timeout=SOON_MS)
    rows = {head: cells for head, cells in seen.rows("#groups").items() if head in VERSIONS}
    bounds = seen.range("/v1/breakdown")
    expect_rows(rows, lambda name: within(looked, bounds, player_version=name), "playback_failure_fraction", least=2)
    # The arrow keys read figures from the chart.
    page.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".chart .legend")).to_contain_text("n ")
    page.get_by_role("button", name="Small multiples").click()
    expect(page.locator("#multiples .plot")).to_have_count(len(VERSIONS) + 1, timeout=SOON_MS)
    page.locator("#multiples").get_by_role("link", name="2.4.0").click()
    expect(page.locator(".chip")).to_contain_text("Player version is 2.4.0")


def test_a_figure_waits_for_no_chart_and_keys_read_one_that_is_not_drawn_yet(seen: Seen) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page = seen.page
    page.route("**/uPlot.esm.js", hold)
    seen.open("explore?range=7d")
    expect(page.locator("#overall .value")).to_contain_text("%", timeout=SOON_MS)
    page.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".chart .legend")).to_contain_text("n ")
    expect(page.locator(".chart canvas")).to_have_count(0)
    for route in held:
        route.continue_()
    expect(page.locator(".chart canvas")).to_have_count(1, timeout=SOON_MS)


def test_a_single_point_is_drawn_within_the_range_that_was_asked_for(seen: Seen, looked: Looked) -> None:
    (counted,) = {counts_at(view) // MINUTE_MS for view in looked.views if view.view_id == "view-of-x"}
    begin, end = counted * MINUTE_MS, (counted + 1) * MINUTE_MS
    page = seen.page
    with page.expect_response(lambda one: "/v1/timeseries" in one.url) as found:
        seen.open(f"explore?customer=acme&from={begin}&to={end}")
    assert len(found.value.json()["points"]) == 1
    plot = page.locator(".chart .u-over")
    box = plot.bounding_box(timeout=SOON_MS)
    assert box is not None
    # What is marked of it is within the range as well.
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 50, steps=4)
    page.mouse.up()
    # The zone stands in every address that the page makes: the mark has been taken.
    expect(page).to_have_url(re.compile(f"from={begin}&to={end}&tz="))
    expect(page.locator(".chart canvas")).to_be_visible()


def test_keys_mark_a_stretch_of_a_chart_and_zoom_to_it(seen: Seen) -> None:
    page = seen.page
    with page.expect_response(lambda one: "/v1/timeseries" in one.url) as found:
        seen.open("explore?customer=acme&range=24h")
    times = [point["from_ms"] for point in found.value.json()["points"]]
    plot, selected = page.locator(".chart .plot"), page.locator(".chart .u-select")
    expect(page.locator(".chart canvas")).to_be_visible(timeout=SOON_MS)
    expect(plot).to_have_accessible_name(
        re.compile("With Shift they mark a stretch: Enter zooms to it, Escape ends it")
    )
    plot.focus()
    for key in ("Home", "ArrowRight", *["Shift+ArrowRight"] * 3):
        page.keyboard.press(key)
    expect(page.locator(".chart figcaption")).to_contain_text("is marked")
    box = selected.bounding_box()
    assert box is not None
    assert box["width"] > 5
    # Escape ends it, as a key without Shift does: then Enter zooms to nothing.
    for ends in ("Escape", "ArrowLeft"):
        page.keyboard.press(ends)
        expect(page.locator(".chart figcaption")).not_to_contain_text("is marked")
        assert (selected.bounding_box() or {"width": 0})["width"] == 0
        page.keyboard.press("Enter")
        assert "range=24h" in page.url
        page.keyboard.press("Shift+ArrowRight")
        expect(page.locator(".chart figcaption")).to_contain_text("is marked")
    for key in ("Escape", "End", *["Shift+ArrowLeft"] * 4):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"from={times[-5]}&to={times[-1]}&"), timeout=SOON_MS)
    assert inaccessible(page) == []


def test_a_chart_that_cannot_be_drawn_says_so_beside_its_figures(seen: Seen) -> None:
    seen.page.route("**/uPlot.esm.js", lambda route: route.abort())
    seen.open("explore?range=7d")
    expect(seen.page.locator(".chart .notice")).to_contain_text("The chart cannot be drawn", timeout=SOON_MS)
    expect(seen.page.locator("#overall .value")).to_contain_text("%", timeout=SOON_MS)


def test_title_and_cdn_at_once(seen: Seen, looked: Looked) -> None:
    seen.go("Explore", within="30d")
    page = seen.page
    page.locator("#by").select_option("video_title", timeout=SOON_MS)
    page.locator("#by-second").select_option("cdn")
    expect(page.locator("#groups thead th").nth(1)).to_have_text("CDN", timeout=SOON_MS)
    expect(page.locator("#explore-title")).to_contain_text("by video title and CDN")
    rows = {head: cells for head, cells in seen.rows("#groups").items() if "(" not in head}
    bounds = seen.range("/v1/breakdown")

    def of(head: str) -> list[View]:
        title, cdn = head.split(" / ")
        return within(looked, bounds, video_title=title, cdn=cdn)

    expect_rows(rows, of, "rebuffer_fraction", least=10)
    # The number of views leads to them.
    first = next(head for head in rows)
    page.locator("#groups tbody tr").first.locator("td").nth(1).get_by_role("link").click()
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#views tbody tr").first).to_contain_text(first.split(" / ")[0])
    page.go_back()
    # A click on a cell's head narrows to it.
    page.locator("#groups tbody tr").first.get_by_role("link").nth(1).click()
    expect(page.locator(".chip")).to_have_count(1)


def test_the_experience_score_and_the_number_in_ones_own_tool(seen: Seen, looked: Looked) -> None:
    seen.go("Explore", customer="acme", within="30d")
    seen.page.locator("#metric").select_option("experience_score", timeout=SOON_MS)
    value = seen.page.locator("#overall .value")
    # A number alone: no share, as of the metric before.
    expect(value).to_have_text(re.compile(r"^\d+(\.\d+)?$"), timeout=SOON_MS)
    bounds = seen.range("/v1/overall")
    truth = FIGURES["experience_score"](within(looked, bounds, customer_id="acme"))
    assert float(value.inner_text()) == pytest.approx(truth, abs=0.06)
    request = urllib.request.Request(
        f"{looked.url}v1/overall?customer=acme&metrics=experience_score&from={bounds[0]}&to={bounds[1]}",
        headers={"Authorization": f"Bearer {looked.installation.token}"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        found = json.load(answer)
    assert found["metrics"]["experience_score"]["value"] == pytest.approx(truth)


def test_a_percentile_of_few_views_is_not_shown(seen: Seen, looked: Looked) -> None:
    within_ms = looked.now_ms - 20 * DAY_MS
    seen.open(f"explore?metrics=startup_ms_p95&from={within_ms}&to={within_ms + 6 * HOUR_MS}")
    expect(seen.page.locator("#overall .value")).to_have_text("–", timeout=SOON_MS)
    expect(seen.page.locator("main")).to_contain_text("Not shown below 100 views.")


def test_a_figure_has_its_meaning_behind_its_name(seen: Seen) -> None:
    seen.open("explore")
    button = seen.page.get_by_role("button", name="What rebuffer percentage means", exact=False)
    button.click(timeout=SOON_MS)
    expect(seen.page.locator(".meaning")).to_contain_text("Σ rebuffer_ms / Σ watch_ms")
    seen.page.keyboard.press("Escape")
    expect(seen.page.locator(".meaning")).to_have_count(0)


def test_each_line_of_a_breakdown_has_the_range_before_beside_it(seen: Seen, looked: Looked) -> None:
    seen.open("explore?customer=acme&range=7d")
    page = seen.page
    page.locator("#by").select_option("cdn", timeout=SOON_MS)
    with page.expect_response(lambda one: "/v1/timeseries" in one.url and "compare=" in one.url) as found:
        page.locator("#compare").select_option("previous")
    answer = found.value.json()
    points = answer["groups"][0]["points"]
    figures = [
        [bool(one["metrics"]["rebuffer_fraction"]["value"]) for one in line["points"]]
        for part in (answer, answer["compared"])
        for line in part["groups"]
    ]
    # The moment when most of the lines have something to show, before too; keys reach it from the nearer end.
    place = max(range(len(points)), key=lambda at: (sum(line[at] for line in figures), -min(at, len(points) - 1 - at)))
    keys = min((["Home", *["ArrowRight"] * place], ["End", *["ArrowLeft"] * (len(points) - 1 - place)]), key=len)
    chart = page.locator(".chart")
    # One view names no CDN.
    expect(chart.locator(".legend li")).to_have_count(2 * len([*CDNS, "(unknown)"]), timeout=SOON_MS)
    chart.locator(".plot").focus()
    for key in keys:
        page.keyboard.press(key)
    expect(chart.locator(".legend b")).to_have_count(2 * len([*CDNS, "(unknown)"]))
    lines = {item.locator(".name").inner_text(): item for item in chart.locator(".legend li").all()}
    bounds = seen.range("/v1/timeseries")
    begin, end = points[place]["from_ms"], points[place]["to_ms"]
    held = 0
    for cdn in CDNS:
        for name, earlier_ms in ((cdn, 0), (f"{cdn}, before", bounds[1] - bounds[0])):
            views = within(looked, (begin - earlier_ms, end - earlier_ms), customer_id="acme", cdn=cdn)
            shown, truth = number(lines[name].locator("b").inner_text()), FIGURES["rebuffer_fraction"](views)
            assert shown == (truth and pytest.approx(truth, rel=0.006, abs=6e-5)), name
            held += bool(truth)
            expect(lines[name].locator(".note")).to_have_text(f"n {len(views)}")
        # One colour, and the earlier one dashed.
        now, before = (lines[name].get_attribute("class") for name in (cdn, f"{cdn}, before"))
        assert f"{now} before" == before
    assert held > len(CDNS)
    # Each small chart has both as well, and the zone stands once above them.
    page.get_by_role("button", name="Small multiples").click()
    expect(page.locator("#multiples-note")).to_have_text(
        f"Times are of {ZONE}. Dashed lines are of the range that is compared with", timeout=SOON_MS
    )
    small = page.locator("#multiples article", has=page.get_by_role("link", name="fastly"))
    small.locator(".plot").focus()
    for key in keys:
        page.keyboard.press(key)
    expect(small.locator(".legend .name")).to_have_text(["fastly", "fastly, before"])
    for item, earlier_ms in zip(small.locator(".legend li").all(), (0, bounds[1] - bounds[0]), strict=True):
        views = within(looked, (begin - earlier_ms, end - earlier_ms), customer_id="acme", cdn="fastly")
        expect(item.locator(".note")).to_have_text(f"n {len(views)}")


@pytest.mark.parametrize(
    ("form", "drawn", "said"),
    [
        ("line", ".legend .name", "The lines are by CDN alone; the table below has both."),
        ("multiples", "#multiples article", "The charts are by CDN alone; the table below has both."),
        ("distribution", "#bins .bar", "The distribution is of all views; the table below is by CDN and country."),
        ("table", "#groups", None),
    ],
)
def test_what_a_drawing_leaves_out_of_its_heading_is_said_and_in_the_table(
    seen: Seen, looked: Looked, form: str, drawn: str, said: str | None
) -> None:
    seen.open(f"explore?customer=acme&range=7d&metrics=startup_ms_p50&by=cdn,country&as={form}")
    page = seen.page
    expect(page.locator("#explore-title")).to_contain_text("by CDN and country", timeout=SOON_MS)
    expect(page.locator(drawn).first).to_be_attached(timeout=SOON_MS)
    rows = seen.rows("#groups")
    known = {(view.cdn, view.country) for view in within(looked, seen.range("/v1/overall"), customer_id="acme")}
    listed = {tuple(head.split(" / ")) for head in rows} & known
    assert len(listed) >= len(CDNS)
    if said is None:
        expect(page.locator("#apart")).to_have_count(0)
        return
    expect(page.locator("#apart")).to_have_text(said)
    # By one dimension lines and charts are all that the heading says.
    page.locator("#by-second").select_option("")
    page.get_by_role("button", name={"line": "Line", "multiples": "Small multiples"}.get(form, "Distribution")).click()
    expect(page.locator(drawn).first).to_be_attached(timeout=SOON_MS)
    if form == "distribution":
        expect(page.locator("#apart")).to_have_text("The distribution is of all views; the table below is by CDN.")
    else:
        expect(page.locator("#apart")).to_have_count(0)
    expect(page.locator("#groups thead")).not_to_contain_text("Country", ignore_case=True)


def test_a_distribution_is_drawn_beside_that_of_the_range_before(seen: Seen, looked: Looked) -> None:
    seen.open("explore?customer=acme&range=7d&metrics=startup_ms_p50&by=cdn")
    page = seen.page
    page.get_by_role("button", name="Distribution").click(timeout=SOON_MS)
    expect(page.locator("#bins .bar").first).to_be_attached(timeout=SOON_MS)
    expect(page.locator("#bins .before")).to_have_count(0)
    page.locator("#compare").select_option("previous")
    expect(page.locator("#bins thead")).to_contain_text("Before", timeout=SOON_MS)
    begin, end = seen.range("/v1/overall")
    # One question has both.
    assert (seen.range("/v1/distribution"), seen.asked["/v1/distribution"]["compare"]) == ((begin, end), ["previous"])
    counts = [
        Counter(
            bucket_of(view.startup_ms) // BUCKETS_A_BIN
            for view in within(looked, bounds, customer_id="acme")
            if view.startup_ms is not None
        )
        for bounds in ((begin, end), (2 * begin - end, begin))
    ]
    shown = [tuple(map(number, row)) for row in texts(page.locator("#bins tbody tr"), ".count, td:last-child")]
    assert shown == [(counts[0][place], counts[1][place]) for place in sorted(counts[0] | counts[1])]
    # A bar and its outline are as long as the shares are.
    shares = [[count[place] / count.total() for place in sorted(counts[0] | counts[1])] for count in counts]
    for name, of in (("", shares[0]), (".before", shares[1])):
        bars = page.locator(f"#bins .bar{name or ':not(.before)'}")
        widths = bars.evaluate_all("(all) => all.map((one) => parseFloat(one.style.width))")
        assert widths == pytest.approx([100 * share / max(map(max, shares)) for share in of], abs=0.01)
    # The breakdown is a table below it.
    rows = {head: cells for head, cells in seen.rows("#groups").items() if head in CDNS}
    assert len(rows) == len(CDNS)


def test_what_is_compared_is_accessible_and_fits_a_phone(seen: Seen) -> None:
    page = on_a_phone(seen.page)
    for form, drawn in (
        ("line", ".chart .before"),
        ("multiples", "#multiples canvas"),
        ("distribution", "#bins .before"),
    ):
        seen.open(f"explore?customer=acme&range=7d&metrics=startup_ms_p50&by=cdn&compare=previous&as={form}")
        expect(page.locator(drawn).first).to_be_visible(timeout=SOON_MS)
        assert unfit(page) == [], form


def test_a_distribution_without_views_says_so(seen: Seen, looked: Looked) -> None:
    long_ago = f"from={looked.now_ms - 300 * DAY_MS}&to={looked.now_ms - 299 * DAY_MS}"
    seen.open(f"explore?metrics=startup_ms_p50&as=distribution&{long_ago}")
    expect(seen.page.locator("main .empty")).to_have_text("No view in this range.", timeout=SOON_MS)
    expect(seen.page.locator("#bins")).to_have_count(0)


def test_a_custom_dimension_without_a_title_is_the_breakdown(seen: Seen, looked: Looked) -> None:
    seen.open("explore?customer=acme&range=30d&as=table&metrics=playback_failure_fraction")
    page = seen.page
    page.locator("#by").select_option("custom.", timeout=SOON_MS)
    page.locator("#by-name").fill("plan")
    page.locator("#by-name").press("Enter")
    expect(page.locator("#explore-title")).to_contain_text("by plan", timeout=SOON_MS)
    rows, bounds = seen.rows("#groups"), seen.range("/v1/breakdown")

    def of(plan: str) -> list[View]:
        return [view for view in within(looked, bounds, customer_id="acme") if view.custom["plan"] == plan]

    expect_rows(rows, of, "playback_failure_fraction", least=len(PLANS))


def test_a_range_up_to_now_ends_by_the_servers_clock(context: BrowserContext, looked: Looked) -> None:
    # Playwright's clock would be set for all pages of the context, which other tests use after this one.
    with closing(context.new_page()) as page:
        page.add_init_script(f"const now = Date.now; Date.now = () => now() - {2 * HOUR_MS};")
        seen = Seen(page, looked.url)
        seen.open("explore?customer=acme&range=1h")

        def ends_now() -> None:
            # What was asked is heard of within calls to the browser alone.
            expect(page.locator("#overall")).to_be_visible()
            for path in ("/v1/overall", "/v1/timeseries"):
                assert path in seen.asked
                assert seen.range(path)[1] > time.time() * 1_000 - HOUR_MS / 2

        in_time(ends_now)
