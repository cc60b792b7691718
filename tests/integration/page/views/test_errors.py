"""Errors in the order of a click, in a real browser, beside the truth of the views."""

import pytest
from playwright.sync_api import expect

from shared.schemas.view import View
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import ONE_LOOK_MS, PHONE, TOO_WIDE, Seen, in_time, local_text, within
from tests.integration.page.parts.page_views import NEW_ERROR
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS

pytestmark = pytest.mark.integration


def test_what_is_new_and_what_rose_comes_first_by_the_heads_and_in_a_link(seen: Seen, looked: Looked) -> None:
    seen.open("errors?customer=acme&range=24h")
    page = seen.page
    codes = page.locator("#errors tbody th a")
    sorted_by = page.locator("#errors th[aria-sort]")
    heads = page.locator("#errors thead")
    expect(codes).to_have_count(3, timeout=SOON_MS)
    # Which of several errors of a view counts.
    expect(page.locator("#last-error")).to_contain_text("A view counts under its last fatal error alone.")
    expect(sorted_by).to_contain_text("Views")
    expect(codes.last).to_have_text(NEW_ERROR)
    heads.locator("button:not(.what)", has_text="First seen").press("Enter")
    expect(codes.first).to_have_text(NEW_ERROR, timeout=SOON_MS)
    expect(sorted_by).to_have_attribute("aria-sort", "descending")
    # Beside the range before: what rose most.
    expect(heads.locator("button:not(.what)", has_text="Change")).to_have_count(0)
    page.locator("#compare").select_option("previous")
    heads.locator("button:not(.what)", has_text="Change").click(timeout=SOON_MS)

    def rises(*, is_ascending: bool = False) -> None:
        from_ms, to_ms = seen.range("/v1/errors")
        spans = [
            within(looked, span, customer_id="acme") for span in ((2 * from_ms - to_ms, from_ms), (from_ms, to_ms))
        ]

        def rose(code: str) -> float:
            before, after = (sum(view.error_code == code for view in views) / len(views) for views in spans)
            return after - before

        order = sorted({view.error_code for view in spans[1] if view.error_code}, key=rose, reverse=not is_ascending)
        assert seen.asked["/v1/errors"]["order_by"] == ["change"]
        expect(codes).to_have_text(order, timeout=ONE_LOOK_MS)

    in_time(rises)
    expect(page.locator("#errors .is-new")).to_have_count(1)
    heads.locator("button:not(.what)", has_text="Change").click()
    expect(sorted_by).to_have_attribute("aria-sort", "ascending", timeout=SOON_MS)
    in_time(lambda: rises(is_ascending=True))
    page.reload()
    expect(sorted_by).to_contain_text("Change", timeout=SOON_MS)
    in_time(lambda: rises(is_ascending=True))
    # What a head means, on a phone too.
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert page.evaluate(TOO_WIDE, PHONE["width"]) == []
    assert inaccessible(page) == []
    heads.get_by_role("button", name="What Share of views means").click()
    expect(page.get_by_role("note")).to_contain_text("views with the code / all views")
    page.keyboard.press("Escape")
    # Held against nothing there is no change: the list is by views again.
    page.get_by_role("button", name="What is shown").click()
    page.locator("#compare").select_option("")
    expect(sorted_by).to_contain_text("Views", timeout=SOON_MS)


@pytest.mark.parametrize("compare", ["week", "own"])
def test_errors_are_compared_with_any_range(seen: Seen, looked: Looked, compare: str) -> None:
    seen.open("errors?customer=acme&range=24h")
    page = seen.page
    page.locator("#compare").select_option(compare, timeout=SOON_MS)
    if compare == "own":
        page.locator("#compare-from").fill(local_text(looked.now_ms - 5 * DAY_MS))
        page.locator("#compare-from").press("Enter")
    page.locator("#errors thead button:not(.what)", has_text="Change").click(timeout=SOON_MS)

    def is_compared() -> None:
        asked = seen.asked["/v1/errors"]
        from_ms, to_ms = seen.range("/v1/errors")
        begin_ms = int(asked["compare"][0])
        # By the clocks, which may be an hour off a week ago.
        distance_ms = 7 * DAY_MS if compare == "week" else from_ms - (looked.now_ms - 5 * DAY_MS)
        assert abs(from_ms - distance_ms - begin_ms) <= HOUR_MS
        before, after = (
            within(looked, (begin, begin + to_ms - from_ms), customer_id="acme") for begin in (begin_ms, from_ms)
        )

        def share(code: str, views: list[View]) -> float:
            return sum(view.error_code == code for view in views) / len(views)

        codes = {view.error_code for view in after if view.error_code}
        order = sorted(codes, key=lambda code: share(code, before) - share(code, after))
        assert asked["order_by"] == ["change"]
        expect(page.locator("#errors tbody th a")).to_have_text(order, timeout=ONE_LOOK_MS)
        cells = page.locator("#errors tbody tr").first.locator("td")
        expect(cells.nth(2)).to_contain_text(f"n {len(before):,}", timeout=ONE_LOOK_MS)
        expect(cells.nth(3)).to_contain_text(f"n {len(after):,}", timeout=ONE_LOOK_MS)

    in_time(is_compared)
    expect(page.locator("#errors thead")).to_contain_text("This range")
    expect(page.locator("#compared")).to_contain_text("Before:")
    page.reload()
    expect(page.locator("#errors th[aria-sort]")).to_contain_text("Change", timeout=SOON_MS)
    in_time(is_compared)


def test_what_is_new_since_an_hour_is_one_click_away(seen: Seen) -> None:
    seen.open("errors?customer=acme&range=24h")
    page = seen.page
    page.get_by_role("button", name="1 h ago").click(timeout=SOON_MS)
    expect(page.locator("#errors thead")).to_contain_text("Since", timeout=SOON_MS)
    expect(page.locator("#since")).not_to_have_value("")
    (since,) = seen.asked["/v1/errors"]["since"]
    assert local_text(int(since)) == page.locator("#since").input_value()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("button", name="1 h ago")).to_be_visible()
