"""The pages beside the screens, which have a document of their own: for operators, a recording, the login, the API's reader."""

import re

import pytest
from playwright.sync_api import expect

from tests.integration.page.parts import page_beside
from tests.integration.page.parts.looking import PHONE, SCROLLING, TOO_WIDE, Seen, on_a_phone, unfit
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


def test_the_pages_beside_the_screens_are_accessible_and_fit_a_phone(seen: Seen) -> None:
    page = on_a_phone(seen.page)
    for path in (
        "login",
        "limits?customer=acme",
        "partitions",
        "docs",
        "replay?customer=acme&session=of-nobody",
        *page_beside.PATHS,
    ):
        if path == page_beside.PATHS[0]:
            page_beside.answered(page)
        seen.open(path)
        expect(page.locator("h1").first).to_be_visible(timeout=SOON_MS)
        expect(page.locator("header")).not_to_contain_text("Loading", timeout=SOON_MS)
        if path == "docs":
            expect(page.locator("#operations article").nth(5)).to_be_visible(timeout=SOON_MS)
            # All operations are drawn in the same way, and there are a hundred.
            page.evaluate(
                "document.querySelectorAll('#operations > *:nth-child(n + 9)').forEach((one) => one.remove())"
            )
        assert unfit(page) == [], path


def test_the_pages_of_operators_fit_a_screen(seen: Seen) -> None:
    page_beside.answered(seen.page)
    for path in page_beside.PATHS:
        seen.open(path)
        expect(seen.page.locator("header")).not_to_contain_text("Loading", timeout=SOON_MS)
        assert seen.page.evaluate(TOO_WIDE, 1280) == [], path
        assert seen.page.evaluate(SCROLLING) == [], path
    # A recorded page that is wider than a phone is as small as that.
    seen.page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    expect(seen.page.locator("body")).to_have_attribute("data-state", "ready", timeout=SOON_MS)
    expect(seen.page.locator("#stage")).to_have_css("width", re.compile(r"^3[56]\d"))
