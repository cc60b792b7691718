"""Explore: everyday questions answered by clicks in a real browser, beside the truth of the views."""

import json
import re
import urllib.request

import pytest
from playwright.sync_api import Route, expect

from shared.schemas.view import View
from tests.integration.page.looking import Seen, expect_rows, number, within
from tests.integration.page.page_parts import Looked
from tests.integration.page.page_views import BROWSERS, VERSIONS
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.recounting import DAY_MS, FIGURES, HOUR_MS

pytestmark = pytest.mark.integration


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
    page.route("**/vendor/uPlot.esm.js", hold)
    seen.open("explore?range=7d")
    expect(page.locator("#overall .value")).to_contain_text("%", timeout=SOON_MS)
    page.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".chart .legend")).to_contain_text("n ")
    expect(page.locator(".chart canvas")).to_have_count(0)
    for route in held:
        route.continue_()
    expect(page.locator(".chart canvas")).to_have_count(1, timeout=SOON_MS)


def test_a_chart_that_cannot_be_drawn_says_so_beside_its_figures(seen: Seen) -> None:
    seen.page.route("**/vendor/uPlot.esm.js", lambda route: route.abort())
    seen.open("explore?range=7d")
    expect(seen.page.locator(".chart .notice")).to_contain_text("The chart cannot be drawn", timeout=SOON_MS)
    expect(seen.page.locator("#overall .value")).to_contain_text("%", timeout=SOON_MS)


def test_title_and_cdn_at_once(seen: Seen, looked: Looked) -> None:
    seen.go("Explore", within="30d")
    page = seen.page
    page.locator("#by").select_option("video_title", timeout=SOON_MS)
    page.locator("#by-second").select_option("cdn")
    expect(page.locator("#groups thead th").nth(1)).to_have_text("CDN", timeout=SOON_MS)
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
