"""The whole page: links, phones, themes, accessibility, services that are slow or away. Runs last: it ends a service."""

import re
from typing import Final

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from services.dashboard.page import bundle
from shared.schemas.alerts.event import AlertEvent
from tests.integration.dashboard.dashboard_parts import newest_bucket
from tests.integration.page.parts import page_rows
from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import PHONE, SAME_NAMED, SCREENS, ZONE, Seen, on_a_phone, unfit
from tests.integration.page.parts.page_many import LONG_TITLE, landed_of_many_customers, watched_by_many_customers
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import DAY_MS

pytestmark = pytest.mark.integration

#: The screens are looked at by so many tests: all of them take minutes on a busy machine.
PARTS: Final = 3


def test_a_link_shows_a_colleague_the_same_and_back_undoes_a_step(seen: Seen, context: BrowserContext) -> None:
    seen.open("explore?range=30d&metrics=startup_ms_p50&as=table")
    page = seen.page
    page.locator("#by").select_option("country", timeout=SOON_MS)
    page.locator("#add-filter").click()
    page.locator("#filter-dimension").select_option("cdn")
    page.locator("#filter-value").fill("fastly | akamai")
    page.locator("#filter-value").press("Enter")
    expect(page.locator(".chip")).to_contain_text("CDN is fastly or akamai")
    page.locator("#tz").fill("Asia/Kathmandu")
    page.locator("#tz").press("Enter")
    expect(page).to_have_url(re.compile("tz=Asia(/|%2F)Kathmandu"))
    rows = seen.rows("#groups")
    other = context.new_page()
    colleague = Seen(other, seen.url)
    other.goto(page.url)
    assert colleague.rows("#groups") == rows
    expect(other.locator("#tz")).to_have_value("Asia/Kathmandu")
    other.close()
    page.go_back()
    expect(page.locator("#tz")).to_have_value(ZONE)
    page.go_back()
    expect(page.locator(".chip")).to_have_count(0)
    page.go_forward()
    expect(page.locator(".chip")).to_have_count(1)


def test_all_screens_come_as_one_file(seen: Seen) -> None:
    asked: list[str] = []
    seen.page.on("request", lambda request: asked.append(request.url) if request.resource_type == "script" else None)
    seen.open("")
    for screen in ("Explore", "Errors", "Views"):
        seen.page.get_by_role("navigation", name="Screens").get_by_role("link", name=screen).click()
        expect(seen.page.locator("main .skeleton")).to_have_count(0, timeout=SOON_MS)
    # Files of an older page are not bundled: `make setup` makes a bundle of these.
    # The library of charts is a file of its own, which no figure waits for.
    assert [url.removeprefix(seen.url) for url in asked] == [
        f"static/{bundle.PATH}",
        f"static/{bundle.FOLDER}/uPlot.esm.js",
    ]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_screen_is_accessible_and_fits_a_phone(
    seen: Seen, looked: Looked, incident: AlertEvent, part: int
) -> None:
    watch_now(looked.installation)
    page = on_a_phone(seen.page)
    for screen in (*SCREENS, f"incident?id={incident.incident_id}")[part::PARTS]:
        seen.open(screen)
        expect(page.locator("main h2").first).to_be_visible(timeout=SOON_MS)
        expect(page.locator(".skeleton")).to_have_count(0, timeout=SOON_MS)
        # What is folded is checked as well.
        page.evaluate("document.querySelectorAll('main .unfold').forEach((one) => one.click())")
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        assert unfit(page) == [], screen


def test_buttons_of_different_rows_have_names_of_their_own(seen: Seen, looked: Looked, incident: AlertEvent) -> None:
    page = seen.page
    seen.open("")
    page_rows.two_of_each(page, looked)
    watch_now(looked.installation)
    for screen in (*page_rows.SCREENS, f"incident?id={incident.incident_id}"):
        seen.open(screen)
        expect(page.locator("main h2").first).to_be_visible(timeout=SOON_MS)
        expect(page.locator(".skeleton")).to_have_count(0, timeout=SOON_MS)
        assert page.evaluate(SAME_NAMED) == [], screen
    # The check sees what it must.
    seen.open(f"alerts?customer={page_rows.CUSTOMER}")
    deletes = page.locator("#rules tbody").get_by_role("button", name="Delete: Rule")
    expect(deletes).to_have_count(2, timeout=SOON_MS)
    deletes.evaluate_all("(all) => all.forEach((one) => one.removeAttribute('aria-label'))")
    assert page.evaluate(SAME_NAMED) == ["Delete"]


def test_a_range_without_views_says_so_on_every_screen(seen: Seen, looked: Looked) -> None:
    long_ago = f"from={looked.now_ms - 300 * DAY_MS}&to={looked.now_ms - 299 * DAY_MS}"
    for screen in ("explore", "explore?by=cdn&as=table&", "errors", "views", "titles"):
        seen.open(f"{screen}{'' if '?' in screen else '?'}{long_ago}")
        expect(seen.page.locator("main .empty").first).to_contain_text(re.compile("^No view"), timeout=SOON_MS)
        expect(seen.page.locator(".skeleton, .notice")).to_have_count(0, timeout=SOON_MS)


def test_a_small_customer_that_fails_is_first_among_many_and_each_figure_leads_to_its_views(
    seen: Seen, looked: Looked
) -> None:
    # Near the end: from here on customers are typed instead of chosen from a list, and figures by dimension are by minute.
    watched_by_many_customers(looked.installation, 60)
    failing = {"viewers_now": 5, "views_started": 30, "failures": 30, "exits_before_start": 0, "views_finished": 30}
    looked.installation.count("tiny", newest_bucket(), 0, **failing)
    looked.installation.count("once", newest_bucket(), 0, viewers_now=1, views_started=1, failures=1)
    seen.open("")
    page = seen.page
    rows = page.locator("#customers-table tbody tr")
    expect(rows).to_have_count(50, timeout=SOON_MS)
    expect(rows.filter(has_text="tiny")).to_have_count(0)
    page.locator("#customers-table").get_by_role("button", name="Failures", exact=True).click()
    expect(rows.first.locator("th")).to_have_text("tiny", timeout=SOON_MS)
    expect(rows.first.locator("td").nth(4)).to_have_text("30 n 30 100.0%")
    # One of one is chance, unless it is asked for.
    expect(rows.filter(has_text="once")).to_have_count(0)
    page.locator("#customers-min").fill("0")
    page.locator("#customers-min").press("Enter")
    expect(rows.filter(has_text="once")).to_have_count(1, timeout=SOON_MS)
    # A link shows the same order.
    page.reload()
    expect(rows.first.locator("th")).to_have_text("tiny", timeout=SOON_MS)
    for column in (0, 1, 2, 3, 4, 5):
        expect(rows.first.locator("td").nth(column).get_by_role("link")).to_have_attribute(
            "href", re.compile("^/views")
        )
    rows.first.get_by_role("link", name="30", exact=True).nth(1).click()
    expect(page.locator(".chip")).to_contain_text("Playback failed is true", timeout=SOON_MS)
    expect(page.locator("#customer")).to_have_value("tiny")


def test_five_hundred_customers_and_the_longest_title_fit_a_phone(seen: Seen, looked: Looked) -> None:
    watched_by_many_customers(looked.installation, 500)
    landed_of_many_customers(looked.installation, 500)
    page = seen.page
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    seen.open("")
    expect(page.locator("#customers-table tbody tr")).to_have_count(50, timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text(re.compile(r"4\d\d more customers are not listed"))
    # Which CDN, country or title is bad across all of them.
    expect(page.locator("#slices-note")).to_have_text(
        re.compile(r"As of \d\d:\d\d, added up by minute because there are more than 20 customers\."), timeout=SOON_MS
    )
    cdn = page.locator("#slice-cdn tbody tr")
    expect(cdn.filter(has_text="fastly").locator("td")).to_have_text(
        ["2,000", "75.0% n 2,000", "– n 0", "500 n 2,000"], timeout=2 * SOON_MS
    )
    expect(page.locator("#slice-video_title tbody tr").last.locator("th")).to_contain_text("(other)")
    expect(page.locator("#slice-country .map-place")).to_be_visible()
    page.locator("#customers-table").get_by_role("button", name="Started", exact=True).click()
    # One fewer, once a customer of earlier tests has fallen silent.
    held = re.compile(r"Sorted are the (199|200) customers with the most viewers\.")
    expect(page.locator("#customers-held")).to_have_text(held)
    assert page.evaluate("document.querySelectorAll('*').length") < 2_500
    page.locator(".unfold").click()
    page.locator("input#customer").fill("customer-000")
    page.locator("input#customer").press("Enter")
    expect(page.locator("#slice-video_title")).to_contain_text(LONG_TITLE, timeout=SOON_MS)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_value_across_all_customers_narrows_the_figures_at_the_top_and_the_other_cards(
    seen: Seen, looked: Looked
) -> None:
    watched_by_many_customers(looked.installation, 500)
    seen.open("")
    page = seen.page
    page.locator("#slice-cdn").get_by_role("link", name="fastly", exact=True).click(timeout=SOON_MS)
    expect(page.locator(".chip")).to_contain_text("CDN is fastly", timeout=SOON_MS)
    expect(page.locator("#tile-viewers .value")).to_have_text("2,000", timeout=SOON_MS)
    expect(page.locator("#tile-failures")).to_contain_text("n 4,000 started")
    expect(page.locator("#live-as-of")).to_contain_text("added up by minute")
    countries = page.locator("#slice-country tbody tr")
    expect(countries.locator("th")).to_have_text(["FR", "DE"])
    expect(countries.first.locator("td").first).to_have_text("1,500")
    # Its own card has all values, to choose from.
    expect(page.locator("#slice-cdn")).to_contain_text("akamai")
    page.locator("#back").get_by_role("button", name="1 h").click()
    expect(page.locator(".chart").first.locator(".plot")).to_have_attribute(
        "aria-label", re.compile("Viewers, the last 1 h by minute"), timeout=SOON_MS
    )
    countries.first.get_by_role("link", name="FR", exact=True).click()
    expect(page.locator("#tile-viewers .value")).to_have_text("1,500", timeout=SOON_MS)
    assert inaccessible(page) == []


def test_an_answer_that_takes_long_is_named_and_what_was_shown_stays_with_its_age(seen: Seen) -> None:
    page = seen.page
    held: list[Route] = []
    seen.open("explore?customer=acme&range=1h&by=cdn&as=table")
    first = page.locator("#overall .value")
    expect(first).to_have_text(re.compile("%"), timeout=SOON_MS)
    # From now on these answers do not come.
    page.route("**/v1/overall?*", lambda route: held.append(route))  # noqa: PLW0108 - it sets an attribute on it
    shown = first.inner_text()
    page.get_by_role("link", name="Errors", exact=True).click()
    expect(page.locator("main h2").first).to_have_text(re.compile("Errors"), timeout=SOON_MS)
    page.go_back()
    expect(page.locator("main .slow").first).to_contain_text(
        re.compile(r"The figure takes longer than usual \(\d+ s\)\. What is shown is \d+ s old"), timeout=SOON_MS
    )
    expect(first).to_have_text(shown)
    assert held


def test_a_query_service_that_is_away_is_named_and_what_was_shown_stays_with_its_age(
    seen: Seen, looked: Looked
) -> None:
    # Last: it stops the service that answers questions.
    seen.open("explore?range=1h")
    value = seen.page.locator("#overall .value")
    expect(value).to_have_text(re.compile("%"), timeout=SOON_MS)
    looked.query.stop(30)
    # Only now: while it ended it may have answered once more, of another minute.
    shown = value.inner_text()
    expect(seen.page.locator("main .notice").first).to_contain_text(
        re.compile(r"do not come at present\. .*What is shown is \d+ s old"), timeout=3 * SOON_MS
    )
    expect(value).to_have_text(shown)
    assert inaccessible(seen.page) == []
