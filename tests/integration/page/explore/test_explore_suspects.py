"""Who is behind a figure of Explore, asked by clicks in a real browser, beside the truth of the views."""

import json
import re
from typing import Any, Final

import pytest
from playwright.sync_api import BrowserContext, Locator, Route, expect

from shared.schemas.view import View
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import Seen, number, on_a_phone, unfit, within
from tests.integration.page.parts.page_views import INCIDENT, MINUTE_MS, NEWCOMER
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import FIGURES, HOUR_MS

pytestmark = pytest.mark.integration

SUSPECTS: Final = "/v1/suspects"
#: How long the incident is: a range of one's own, which no minute moves. There are as many other views in the range before.
LENGTH_MS: Final = 25 * MINUTE_MS
#: Names of the columns that hold figures, by the word of their head.
FIGURE, REST, USUAL = 1, 2, 3


def stretch(looked: Looked) -> tuple[int, int]:
    """The time of the incident, in whole minutes."""
    until_ms = looked.now_ms // MINUTE_MS * MINUTE_MS
    return until_ms - LENGTH_MS, until_ms


def address(looked: Looked, more: str) -> str:
    begin, end = stretch(looked)
    return f"explore?customer=acme&from={begin}&to={end}&{more}"


def hit(views: list[View], conditions: list[dict[str, Any]]) -> tuple[list[View], list[View]]:
    """The views of which all conditions hold, and all others."""
    cohort = [one for one in views if all(str(getattr(one, of["dimension"])) == of["value"] for of in conditions)]
    return cohort, [one for one in views if one not in cohort]


def expect_figure(cell: Locator, metric: str, views: list[View]) -> None:
    assert number(cell.inner_text()) == pytest.approx(FIGURES[metric](views), rel=0.006, abs=6e-5)
    expect(cell).to_contain_text(f"n {len(views):,}")


def test_who_is_behind_a_figure_is_asked_by_a_click_with_the_pictures_comparison(seen: Seen, looked: Looked) -> None:
    page = seen.page
    # Not by way of Now, which asks by itself.
    seen.open("explore")
    page.locator("#customer").select_option("acme", timeout=SOON_MS)
    seen.between(*stretch(looked))
    page.locator("#compare").select_option("previous", timeout=SOON_MS)
    expect(page.locator("#compared")).to_be_visible(timeout=SOON_MS)
    assert SUSPECTS not in seen.asked
    with page.expect_response(lambda one: SUSPECTS in one.url) as found:
        page.get_by_role("button", name="Who is behind it?").click()
    asked, begin_end = seen.asked[SUSPECTS], stretch(looked)
    usual = begin_end[0] - LENGTH_MS, begin_end[0]
    assert seen.range(SUSPECTS) == begin_end
    assert (int(asked["baseline_from"][0]), int(asked["baseline_to"][0])) == usual
    assert (asked["metric"], asked["customer"]) == (["rebuffer_fraction"], ["acme"])
    first = found.value.json()["suspects"][0]
    row = page.locator("#suspected .suspects tbody tr").first
    for words in ("CDN fastly", "Player version 2.4.0"):
        expect(row).to_contain_text(words, timeout=SOON_MS)
    cohort, rest = hit(within(looked, begin_end, customer_id="acme"), first["conditions"])
    before, _ = hit(within(looked, usual, customer_id="acme"), first["conditions"])
    cells = row.locator("td")
    for place, views in ((FIGURE, cohort), (REST, rest), (USUAL, before)):
        expect_figure(cells.nth(place), "rebuffer_fraction", views)
    expect(cells.first).to_contain_text("more rebuffering than expected")
    expect(cells.first).to_contain_text("evidence ")
    expect(page.locator("#who-of")).to_contain_text(f"n {len(cohort) + len(rest):,}")
    # Its views, then the cohort in the same picture.
    cells.nth(FIGURE).get_by_title("its views").click()
    expect(page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)
    assert seen.range("/v1/views") == begin_end
    page.go_back()
    cells.first.get_by_role("link").click(timeout=SOON_MS)
    expect(page.locator("#views th[aria-sort=descending]")).to_contain_text("Rebuffering", timeout=SOON_MS)
    worst = max(cohort, key=lambda view: view.rebuffer_ms)
    expect(page.locator("#views tbody th a").first).to_have_attribute("title", worst.view_id, timeout=SOON_MS)
    page.go_back()
    row.locator("th").get_by_role("link").click()
    expect(page.locator(".chip")).to_have_count(len(first["conditions"]))
    expect(page.locator("#overall .note").first).to_contain_text(f"n {len(cohort)} ·", timeout=SOON_MS)
    expect(page.locator("#overall .note").first).to_contain_text(f"n {len(before)}")
    assert seen.range("/v1/overall") == begin_end
    expect(page.locator("#compare")).to_have_value("previous")


def test_a_link_asks_the_same_and_another_picture_is_not_asked_about(
    seen: Seen, looked: Looked, context: BrowserContext
) -> None:
    page = seen.page
    seen.open(address(looked, "compare=previous&metrics=rebuffer_fraction"))
    button = page.locator("#ask-suspects")
    # By the keyboard.
    button.focus(timeout=SOON_MS)
    page.keyboard.press("Enter")
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "true")
    rows = page.locator("#suspected .suspects tbody tr")
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    words = rows.all_inner_texts()
    colleague = context.new_page()
    colleague.goto(page.url, timeout=2 * SOON_MS)
    theirs = colleague.locator("#suspected .suspects tbody tr")
    expect(theirs.first).to_be_visible(timeout=SOON_MS)
    assert theirs.all_inner_texts() == words
    colleague.close()
    # Another metric is another picture: nothing is asked until somebody clicks.
    del seen.asked[SUSPECTS]
    page.locator("#metric").select_option("playback_failure_fraction")
    expect(rows).to_have_count(0)
    expect(page.locator("#overall .value")).to_be_visible(timeout=SOON_MS)
    expect(button).to_have_attribute("aria-expanded", "false")
    assert SUSPECTS not in seen.asked
    page.go_back()
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    assert rows.all_inner_texts() == words
    page.go_back()
    expect(rows).to_have_count(0)
    page.go_forward()
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    button.click()
    expect(rows).to_have_count(0)
    expect(page).not_to_have_url(re.compile("suspects="))


def test_an_answer_that_comes_late_is_not_shown_for_another_picture(seen: Seen, looked: Looked) -> None:
    page = seen.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        if "metric=rebuffer_fraction" in route.request.url:
            held.append(route)
        else:
            route.continue_()

    page.route("**/v1/suspects*", hold)
    seen.open(address(looked, "compare=previous&metrics=rebuffer_fraction"))
    page.locator("#ask-suspects").click(timeout=SOON_MS)
    expect(page.locator("#suspected .skeleton")).to_be_visible()
    expect(page.locator("#search-again")).to_have_text("Searching …")
    expect(page.locator("#suspected .slow")).to_contain_text(
        "The search for suspects takes longer than usual", timeout=SOON_MS
    )
    page.locator("#metric").select_option("rebuffers_per_minute")
    page.locator("#ask-suspects").click()
    table = page.locator("#suspected .suspects")
    expect(table).to_have_attribute("data-metric", "rebuffers_per_minute", timeout=SOON_MS)
    page.evaluate(
        "new MutationObserver(() => { window.others = (window.others || 0)"
        " + document.querySelectorAll('.suspects:not([data-metric=rebuffers_per_minute])').length; })"
        ".observe(document.body, {childList: true, subtree: true, attributes: true})"
    )
    for route in held:
        route.continue_()
    with page.expect_response(lambda one: SUSPECTS in one.url):
        page.locator("#search-again").click()
    expect(page.locator("#search-again")).to_have_text("Search again", timeout=SOON_MS)
    expect(table).to_have_attribute("data-metric", "rebuffers_per_minute")
    assert not page.evaluate("window.others")


def test_a_value_is_asked_by_its_worst_usual_views_or_by_those_beyond_a_threshold_that_is_typed(
    seen: Seen, looked: Looked
) -> None:
    page = seen.page
    seen.open(address(looked, "compare=previous&metrics=startup_ms_p50"))
    page.locator("#ask-suspects").click(timeout=SOON_MS)
    expect(page.locator("#who-of")).to_be_visible(timeout=SOON_MS)
    assert seen.asked[SUSPECTS]["metric"] == ["startup_ms_p50"]
    assert "above_ms" not in seen.asked[SUSPECTS]
    begin, end = stretch(looked)
    usual = FIGURES["startup_ms_p50"](within(looked, (begin - LENGTH_MS, begin), customer_id="acme"))
    assert float(page.locator("#threshold").input_value()) == pytest.approx(usual / 1_000, rel=0.01)
    page.locator("#threshold").fill("2.5")
    with page.expect_response(lambda one: "above_ms=2500" in one.url) as found:
        page.locator("#threshold").press("Enter")
    views = [one for one in within(looked, (begin, end), customer_id="acme") if one.startup_ms is not None]
    assert found.value.json()["figure"] == {
        "value": pytest.approx(sum((one.startup_ms or 0) > 2_500 for one in views) / len(views)),
        "n": len(views),
    }
    expect(page.locator("#suspected")).to_contain_text("above 2,500 ms", timeout=SOON_MS)
    expect(page).to_have_url(re.compile("threshold=2500"))


def test_a_score_is_asked_by_the_views_below_a_threshold(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open(address(looked, "compare=previous&metrics=experience_score&suspects=1&threshold=61.5"))
    expect(page.locator("#who-of")).to_contain_text("below 61.5", timeout=SOON_MS)
    assert (seen.asked[SUSPECTS]["metric"], seen.asked[SUSPECTS]["below"]) == (["experience_score"], ["61.5"])
    expect(page.locator("#threshold-form")).to_contain_text("Bad below")
    expect(page.locator("#threshold")).to_have_value("61.5")


def test_without_a_comparison_the_api_says_what_is_usual(seen: Seen, looked: Looked) -> None:
    page = seen.page
    # All their views: none is in the baseline, at whatever minute of the hour that ends.
    end = stretch(looked)[1] + MINUTE_MS
    begin = end - HOUR_MS
    seen.open(f"explore?customer={NEWCOMER}&from={begin}&to={end}&metrics=playback_failure_fraction&suspects=1")
    table = page.locator("#suspected .suspects")
    expect(table).to_have_attribute("data-against", "rest", timeout=SOON_MS)
    assert not {"baseline_from", "baseline_to"} & seen.asked[SUSPECTS].keys()
    expect(table.locator("tbody tr").first).to_contain_text(f"CDN {INCIDENT['cdn']}")
    expect(table.locator("tfoot")).to_contain_text("too few views to say what is usual")
    # A range that is compared with cannot overlap: the page says so itself, and asks nothing.
    del seen.asked[SUSPECTS]
    seen.open("explore?customer=acme&range=7d&compare=day&suspects=1")
    expect(page.locator("#suspected .notice")).to_contain_text("the two overlap", timeout=SOON_MS)
    expect(page.locator("#overall .value")).to_be_visible(timeout=SOON_MS)
    assert SUSPECTS not in seen.asked


def test_what_nobody_can_be_behind_is_not_asked(seen: Seen) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=24h&metrics=views&suspects=1")
    expect(page.locator("#no-suspects")).to_contain_text("has suspects, not views", timeout=SOON_MS)
    expect(page.locator("#ask-suspects, #suspected")).to_have_count(0)
    assert SUSPECTS not in seen.asked
    page.locator("#no-suspects").get_by_role("link").click()
    expect(page.locator("#metric")).to_have_value("rebuffer_fraction")
    expect(page.locator("#ask-suspects")).to_be_visible()


def test_a_search_that_is_refused_says_why_and_waits_for_a_click(seen: Seen, looked: Looked) -> None:
    page = seen.page
    problem = {"title": "Too many questions at a time", "status": 429, "detail": "Ask again in a moment."}

    def refuse(route: Route) -> None:
        route.fulfill(status=429, content_type="application/problem+json", body=json.dumps(problem))

    page.route("**/v1/suspects*", refuse)
    seen.open(address(looked, "compare=previous&suspects=1"))
    notice = page.locator("#suspected .notice")
    expect(notice).to_contain_text(f"{problem['title']}. {problem['detail']}", timeout=SOON_MS)
    expect(page.locator("#suspected table, #suspected .skeleton")).to_have_count(0)
    page.unroute("**/v1/suspects*", refuse)
    # It is a dear question: it is asked by a click alone.
    page.locator("#search-again").click()
    expect(page.locator("#suspected .suspects tbody tr").first).to_be_visible(timeout=SOON_MS)
    expect(notice).to_have_count(0)
    # Once there was an answer, it stays with its age.
    page.route("**/v1/suspects*", refuse)
    page.locator("#search-again").click()
    expect(notice).to_contain_text(re.compile(r"What is shown is \d+ s old"), timeout=SOON_MS)
    expect(page.locator("#suspected .is-old .suspects")).to_be_visible()


def test_suspects_are_ranked_by_excess_or_by_evidence(seen: Seen, looked: Looked) -> None:
    def answer(route: Route) -> None:
        """The answer, and one more suspect: of fewer views, and surer."""
        found = route.fetch()
        said = found.json()
        (first, *_) = said["suspects"]
        said["suspects"] = [first, first | {"excess": first["excess"] / 2, "surprise": 2 * first["surprise"]}]
        said["suspects"][1]["conditions"] = [{"dimension": "os", "value": "iOS", "label": "iOS"}]
        route.fulfill(response=found, json=said)

    page = seen.page
    page.route("**/v1/suspects*", answer)
    seen.open(address(looked, "compare=previous&suspects=1"))
    heads = page.locator("#suspected .suspects tbody th")
    expect(heads).to_contain_text(["CDN fastly", "iOS"], timeout=SOON_MS)
    page.get_by_role("group", name="Ranked by").get_by_role("button", name="By evidence").click()
    expect(page).to_have_url(re.compile("rank=surprise"))
    expect(heads).to_contain_text(["iOS", "CDN fastly"])
    page.go_back()
    expect(heads).to_contain_text(["CDN fastly", "iOS"])


def test_now_leads_to_the_same_question_of_any_metric_and_range(seen: Seen) -> None:
    page = seen.page
    seen.open("?customer=acme")
    page.locator("#ask-elsewhere").click(timeout=SOON_MS)
    expect(page.locator("#suspected .suspects tbody tr").first).to_be_visible(timeout=SOON_MS)
    begin, end = seen.range(SUSPECTS)
    assert end - begin == HOUR_MS
    expect(page.locator("#range")).to_have_value("1h")
    expect(page.locator("#customer")).to_have_value("acme")


def test_who_is_behind_is_accessible_and_fits_a_phone(seen: Seen, looked: Looked) -> None:
    page = on_a_phone(seen.page)
    for more in ("compare=previous&suspects=1", "metrics=startup_ms_p50&suspects=1&threshold=1500", "metrics=views"):
        seen.open(address(looked, more))
        expect(page.locator("#who-of, #no-suspects").first).to_be_visible(timeout=SOON_MS)
        expect(page.locator(".skeleton")).to_have_count(0, timeout=SOON_MS)
        assert unfit(page) == [], more
