"""Filters, comparison and how new the figures are, by clicks and keys in a real browser, beside the truth of the views."""

import re
from collections.abc import Iterator

import psycopg
import pytest
from playwright.sync_api import Locator, Page, expect

from shared.schemas.view import View
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import PHONE, Seen, number, within
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import FIGURES

pytestmark = pytest.mark.integration


def test_a_copied_link_has_the_times_of_its_range(seen: Seen) -> None:
    page = seen.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen.open("explore?customer=acme&range=24h&metrics=playback_failure_fraction&compare=previous&tz=UTC")
    figure = page.locator("#overall")
    expect(figure).to_contain_text("before", timeout=SOON_MS)
    shown, bounds, address = figure.inner_text(), seen.range("/v1/overall"), page.url

    def copied() -> str:
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        return str(page.evaluate("navigator.clipboard.readText()"))

    link = copied()
    assert (page.url, "range=" in link) == (address, False)
    page.goto(link, timeout=2 * SOON_MS)
    expect(figure).to_contain_text("before", timeout=SOON_MS)
    assert (seen.range("/v1/overall"), figure.inner_text()) == (bounds, shown)
    # What is now is now wherever the link is opened.
    seen.open("?customer=acme&range=24h&tz=UTC")
    assert "range=24h" in copied()


def test_a_part_of_a_text_a_bound_of_a_number_and_conditions_in_groups_are_made_by_clicks(
    seen: Seen, looked: Looked
) -> None:
    seen.open("explore?customer=acme&range=30d&metrics=views")
    page = seen.page
    chip = page.locator(".chip-text")

    def shows(views: list[View]) -> None:
        expect(page.locator("#overall .value")).to_have_text(f"{len(views):,}", timeout=SOON_MS)
        assert 0 < len(views) < len(within(looked, seen.range("/v1/overall"), customer_id="acme"))

    def add(name: str, condition: str, value: str) -> None:
        page.locator("#filter-dimension").select_option(name, timeout=SOON_MS)
        page.locator("#filter-condition").select_option(condition)
        page.locator("#filter-value").fill(value)
        page.locator("#new-filter").get_by_role("button", name="Add").click()

    def acme() -> list[View]:
        return within(looked, seen.range("/v1/overall"), customer_id="acme")

    page.locator("#add-filter").click(timeout=SOON_MS)
    add("startup_ms", "at_least", "1.5")
    expect(chip).to_have_text("Video start-up time is at least 1.50 s")
    shows([view for view in acme() if (view.startup_ms or 0) >= 1_500])
    page.get_by_role("button", name="Remove the filter").click()
    page.locator("#add-filter").click()
    add("video_title", "contains", "FINAL")
    expect(chip).to_have_text("Video title contains FINAL")
    shows([view for view in acme() if "final" in (view.video_title or "").lower()])
    chip.click()
    page.locator("#and-filter").click()
    add("cdn", "is", "fastly")
    chip.click()
    page.locator("#or-filter").click()
    add("country", "is", "FR")
    chip.click()
    page.locator("#and-filter").click()
    add("cdn", "is", "akamai")
    expect(chip).to_have_text(
        "(Video title contains FINAL and CDN is fastly) or (Country is FR and CDN is akamai)", timeout=SOON_MS
    )
    groups = [
        view
        for view in acme()
        if ("final" in (view.video_title or "").lower() and view.cdn == "fastly")
        or (view.country == "FR" and view.cdn == "akamai")
    ]
    shows(groups)
    # A name that nobody sends is said to be one.
    page.locator("#add-filter").click()
    page.locator("#filter-dimension").select_option("custom.")
    page.locator("#new-filter").get_by_label("Name").fill("plann")
    expect(page.locator("#no-values")).to_contain_text(
        "No view of this range and these filters has a value of plann", timeout=SOON_MS
    )
    page.locator("#new-filter").get_by_label("Name").fill("plan")
    expect(page.locator("#filter-listed")).to_contain_text("gold", timeout=SOON_MS)
    expect(page.locator("#no-values")).to_have_count(0)


def test_filters_with_and_or_and_not_are_made_by_clicks(seen: Seen, looked: Looked) -> None:
    seen.open("explore?customer=acme&range=30d")
    page = seen.page
    page.locator("#add-filter").click(timeout=SOON_MS)
    _pick(page, "country", "DE", "FR")
    chip = page.locator(".chip-text")
    expect(chip).to_have_text("Country is DE or FR")
    chip.click()
    page.locator("#invert-filter").click()
    expect(chip).to_have_text("Country is not DE or FR")
    chip.click()
    page.locator("#or-filter").click()
    _pick(page, "cdn", "fastly")
    expect(chip).to_have_text("Country is not DE or FR or CDN is fastly")
    page.locator("#add-filter").click()
    _pick(page, "player_version", "2.4.0")
    expect(page.locator(".chip")).to_have_count(2)
    with page.expect_response(re.compile("/v1/overall")):
        page.reload()
    expect(chip.first).to_have_text("Country is not DE or FR or CDN is fastly", timeout=SOON_MS)
    expect(page.locator("#overall .value")).to_have_text(re.compile("%"), timeout=SOON_MS)
    views = [
        view
        for view in within(looked, seen.range("/v1/overall"), customer_id="acme", player_version="2.4.0")
        if view.country not in {"DE", "FR"} or view.cdn == "fastly"
    ]
    expect(page.locator("#overall")).to_contain_text(f"n {len(views):,}")
    shown = number(page.locator("#overall .value").inner_text())
    assert shown == pytest.approx(FIGURES["rebuffer_fraction"](views), rel=0.006)


def test_keys_alone_narrow_a_figure(seen: Seen) -> None:
    seen.open("explore?customer=acme&range=30d")
    page = seen.page
    _focus(page, page.locator("#add-filter"))
    page.keyboard.press("Enter")
    _focus(page, page.locator("#filter-condition"))
    page.keyboard.press("ArrowDown")
    listed = page.locator("#filter-listed input")
    expect(listed.first).to_be_visible(timeout=SOON_MS)
    _focus(page, listed.first)
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator(".chip-text")).to_have_text(re.compile("^CDN is not "))
    _focus(page, page.locator(".chip-text"))
    page.keyboard.press("Space")
    expect(page.locator("#invert-filter")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#invert-filter")).to_have_count(0)


def test_a_range_is_compared_with_any_other_by_clicks(seen: Seen, looked: Looked) -> None:
    seen.open("explore?customer=acme&range=24h&metrics=views")
    page = seen.page
    compare = page.locator("#compare")
    for name, days in (("day", 1), ("week", 7), ("previous", 1)):
        with page.expect_response(lambda answer: "/v1/overall" in answer.url and "compare=" in answer.url):
            compare.select_option(name, timeout=SOON_MS)
        from_ms, to_ms = (at - days * 86_400_000 for at in seen.range("/v1/overall"))
        before = len(within(looked, (from_ms, to_ms), customer_id="acme"))
        expect(page.locator("#overall")).to_contain_text(f"before {before:,}", timeout=SOON_MS)
        expect(page.locator("#compared")).to_contain_text("Before: ")
    compare.select_option("own")
    page.locator("#compare-from").fill("2001-02-03T04:05")
    page.locator("#compare-from").press("Tab")
    expect(page.locator("#compared")).to_contain_text("3 Feb, 04:05 – 4 Feb, 04:05", timeout=SOON_MS)
    page.go_back()
    page.go_back()
    expect(compare).to_have_value("previous")


@pytest.fixture
def published(looked: Looked) -> Iterator[psycopg.Connection]:
    """The serving database, whose moment of publishing a test may move."""
    with psycopg.connect(looked.installation.postgres.dsn, autocommit=True) as connection:
        before = connection.execute("SELECT published_at FROM finalizer.fence").fetchone()
        yield connection
        connection.execute("UPDATE finalizer.fence SET published_at = %s", before)


@pytest.mark.parametrize("screen", ["", "explore", "errors", "views", "titles"])
def test_old_figures_say_since_when(seen: Seen, published: psycopg.Connection, screen: str) -> None:
    freshness = seen.page.locator("#freshness")
    # It is 17 minutes, rounded, for most of a minute: in which the page must have been opened.
    published.execute("UPDATE finalizer.fence SET published_at = clock_timestamp() - interval '16 minutes 35 seconds'")
    seen.open(f"{screen}?customer=acme")
    expect(freshness).to_contain_text("17 min ago", timeout=SOON_MS)
    expect(freshness).to_have_class("old-figures")
    # The same figures, which are kept, once others' views have come.
    published.execute("UPDATE finalizer.fence SET published_at = clock_timestamp()")
    seen.open(f"{screen}?customer=acme")
    expect(freshness).to_contain_text("Finished views up to", timeout=SOON_MS)


def _pick(page: Page, dimension: str, *values: str) -> None:
    """Chooses values of a dimension in the form of a filter."""
    page.locator("#filter-dimension").select_option(dimension)
    for value in values:
        page.locator("#filter-listed label").filter(has_text=re.compile(rf"^\s*{value}\s")).click(timeout=SOON_MS)
    page.locator("#new-filter").get_by_role("button", name="Add").click()


def _focus(page: Page, wanted: Locator) -> None:
    """Presses the tabulator until the element is reached."""
    expect(wanted).to_be_visible(timeout=SOON_MS)
    for _ in range(60):
        if wanted.evaluate("(one) => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("no key reaches it")


def test_on_a_phone_one_line_says_what_is_chosen_and_unfolds_it(seen: Seen) -> None:
    page = seen.page
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    seen.open("errors?customer=acme&range=7d")
    line = page.get_by_role("button", name="Customer, range and filters: acme · Last 7 days · Europe/Berlin")
    expect(line).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#customer")).to_be_hidden()
    box, head = line.bounding_box(), page.locator("header").bounding_box()
    assert box is not None
    assert head is not None
    assert box["y"] + box["height"] - head["y"] - head["height"] < 60
    assert inaccessible(page) == []
    line.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#customer")).to_be_focused()
    page.locator("#range").select_option("24h")
    folded = page.get_by_role("button", name="acme · Last 24 hours", expanded=True)
    folded.press("Space")
    expect(page.locator("#customer")).to_be_hidden()
    # There is room for all of them elsewhere.
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.locator("#customer")).to_be_visible()
    expect(page.locator(".unfold").first).to_be_hidden()
