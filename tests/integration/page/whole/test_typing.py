"""What is being typed and what is shown stay, in a real browser, while answers come and the page is drawn again."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from shared.schemas.alerts.event import AlertEvent
from tests.integration.page.parts import page_settings
from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import COUNT_SKELETONS, ZONE, Seen
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


def test_what_is_typed_stays_while_live_figures_come(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    viewers = page.locator("#tile-viewers .value")
    expect(viewers).to_have_text("800", timeout=SOON_MS)
    # Hundreds of zones are listed once somebody is about to choose one.
    expect(page.locator("#zones option")).to_have_count(0)
    page.locator("#tz").fill("")
    expect(page.locator("#zones option[value='Asia/Kathmandu'], #zones option[value='Asia/Katmandu']")).to_have_count(1)
    page.locator("#tz").press_sequentially("Asia/Ka")
    looked.installation.count("acme", int(page.evaluate("Date.now()")) // 5_000 * 5_000, 0, viewers_now=801)
    expect(viewers).to_have_text("801", timeout=SOON_MS)
    expect(page.locator("#tz")).to_have_value("Asia/Ka")
    expect(page.locator("#tz")).to_be_focused()
    page.locator("#tz").press_sequentially("thmandu\n")
    expect(page).to_have_url(re.compile("tz=Asia(/|%2F)Kathmandu"))


def test_a_name_of_a_view_is_typed_while_the_view_is_asked_for_again(seen: Seen) -> None:
    seen.open("view?customer=acme&view=view-of-x")
    page = seen.page
    expect(page.locator("#view-title")).to_be_visible(timeout=SOON_MS)
    page.locator("#view-id").fill("another")
    for _ in range(2):
        # Begun after the text was typed, and drawn before the next one is begun.
        with page.expect_response(re.compile("/v1/views/view-of-x"), timeout=SOON_MS):
            pass
    expect(page.locator("#view-id")).to_have_value("another")


@pytest.mark.parametrize(
    ("address", "field", "text"),
    [
        ("views?customer=acme", "#search input[name=viewer]", "viewer-1"),
        ("views?customer=acme", "#search input[name=title]", "Cup f"),
        ("titles?customer=acme", "#views-min", "7"),
        ("integration?customer=acme", "#collector", "collect.example"),
        ("view?customer=acme", "#view-customer", "globe"),
        ("errors?customer=acme&range=&from=2026-05-01T10:00&to=2026-05-01T11:00", "#tz", "Europe/Lis"),
    ],
)
def test_what_is_typed_stays_when_the_page_is_drawn_again(seen: Seen, address: str, field: str, text: str) -> None:
    page = seen.page
    # Lines for a player, and their collector, are shown where there is a key for them.
    page_settings.manages_no_keys(page)
    seen.open(address)
    typed = page.locator(field)
    expect(typed).to_be_visible(timeout=SOON_MS)
    page.evaluate("document.fonts.ready")
    typed.fill(text)
    # A place that is like the one before: everything is drawn again, and nothing else happens. A click would end the typing.
    page.evaluate("dispatchEvent(new PopStateEvent('popstate')); new Promise(requestAnimationFrame)")
    expect(typed).to_have_value(text)
    expect(typed).to_be_focused()


def test_a_field_shows_what_another_place_says(seen: Seen) -> None:
    seen.open("explore?customer=acme")
    page = seen.page
    zone = page.locator("#tz")
    expect(zone).to_have_value(ZONE, timeout=SOON_MS)
    zone.fill("Asia/Tokyo")
    zone.press("Enter")
    expect(page).to_have_url(re.compile("Tokyo"))
    page.go_back()
    expect(zone).to_have_value(ZONE)
    # What is no zone is not taken.
    zone.fill("Nowhere")
    zone.press("Enter")
    expect(zone).to_have_value(ZONE)


def test_a_date_can_be_typed_key_by_key(seen: Seen) -> None:
    """A browser says each year that the keys make: 2, 20, 202 and 2026."""
    seen.open("explore?customer=acme&range=&from=2026-05-01T10:00&to=2026-05-09T11:00&tz=UTC")
    page = seen.page
    expect(page.locator("#from")).to_have_value("2026-05-01T10:00", timeout=SOON_MS)
    page.locator("#from").focus()
    page.keyboard.type("05032026")
    page.keyboard.press("Tab")
    expect(page.locator("#from")).to_have_value("2026-05-03T10:00")
    expect(page).to_have_url(re.compile("from=2026-05-03"))


def test_a_threshold_that_is_being_typed_stays_while_another_one_is_saved(seen: Seen) -> None:
    seen.open("settings?part=thresholds&of=acme")
    rows = seen.page.locator("#thresholds li")
    saved, typed = rows.first, rows.nth(1).get_by_label("From n")
    typed.fill("321", timeout=SOON_MS)
    saved.get_by_label("From n").fill("123")
    saved.get_by_role("button", name="Save").click()
    expect(saved).to_contain_text("this environment's", timeout=SOON_MS)
    expect(typed).to_have_value("321")
    saved.get_by_role("button", name="Back to before").click()
    expect(saved).to_contain_text("as installed", timeout=SOON_MS)
    expect(saved.get_by_label("From n")).not_to_have_value("123")
    expect(typed).to_have_value("321")


@pytest.mark.parametrize(
    ("screen", "shown", "asked"),
    [
        ("titles?customer=acme&range=1h&compare=day", "#titles tbody tr", ("/v1/titles", "compare")),
        ("incident?id=", "#course canvas", ("/v1/live/history", "until_ms")),
    ],
)
def test_what_is_shown_stays_when_the_next_minute_is_asked_for(
    timed: Seen, incident: AlertEvent, screen: str, shown: str, asked: tuple[str, str]
) -> None:
    page = timed.page
    timed.open(f"{screen}{incident.incident_id}" if screen.endswith("=") else screen)
    expect(page.locator(shown).first).to_be_visible(timeout=SOON_MS)
    expect(page.locator(".skeleton")).to_have_count(0, timeout=SOON_MS)
    path, moving = asked
    before = timed.asked[path][moving]
    page.evaluate(COUNT_SKELETONS)
    with page.expect_request(
        lambda request: urlsplit(request.url).path == path and parse_qs(urlsplit(request.url).query)[moving] != before,
        timeout=2 * SOON_MS,
    ):
        page.clock.fast_forward(60_000)
    assert page.evaluate("skeletons") == 0
    expect(page.locator(shown).first).to_be_visible()


def test_rows_that_were_asked_for_stay_until_the_newest_are_wanted(timed: Seen) -> None:
    page = timed.page
    timed.open("views?customer=acme&range=30d")
    rows = page.locator("#views tbody tr")
    page.locator("#more").click(timeout=SOON_MS)
    expect(rows).to_have_count(100, timeout=SOON_MS)
    with page.expect_response(re.compile("/v1/views\\?"), timeout=2 * SOON_MS):
        page.clock.fast_forward(31_000)
    expect(page.locator("#newest")).to_be_visible(timeout=SOON_MS)
    expect(rows).to_have_count(100)
    page.locator("#newest").click()
    expect(rows).to_have_count(50)


@pytest.mark.parametrize("menu", ["saved", "account"])
def test_a_menu_closes_by_escape_and_by_a_press_elsewhere(seen: Seen, menu: str) -> None:
    seen.open("explore?customer=acme")
    page = seen.page
    title, content = page.locator(f"#{menu} summary"), page.locator(f"#{menu} .menu")
    title.click(timeout=SOON_MS)
    expect(content).to_be_visible(timeout=SOON_MS)
    page.keyboard.press("Escape")
    expect(content).not_to_be_visible()
    expect(title).to_be_focused()
    page.keyboard.press("Enter")
    expect(content).to_be_visible(timeout=SOON_MS)
    page.locator("#explore-title").click()
    expect(content).not_to_be_visible()


def test_a_form_that_escape_closes_leaves_the_focus_at_what_opened_it(seen: Seen) -> None:
    seen.open("explore?customer=acme")
    page = seen.page
    page.locator("#add-filter").click(timeout=SOON_MS)
    page.locator("#filter-value").focus(timeout=SOON_MS)
    page.keyboard.press("Escape")
    expect(page.locator("#new-filter")).to_have_count(0)
    expect(page.locator("#add-filter")).to_be_focused()
