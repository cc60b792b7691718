"""Many tabs of one browser, in a real one: live figures in all that are seen, by one connection that stays open."""

import re
from contextlib import ExitStack, closing
from typing import Final

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import Seen
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration

#: Two more than the connections that a browser opens to a server.
TABS: Final = 8
STREAM: Final = "/v1/live/stream"
#: A tab of a browser without a window is always seen: this one is as the test says.
HIDING: Final = """window.isAway = false;
Object.defineProperty(Document.prototype, "hidden", { get: () => window.isAway });"""
GO: Final = "(isAway) => { window.isAway = isAway; document.dispatchEvent(new Event('visibilitychange')); }"


def test_as_many_tabs_of_now_as_there_are_let_every_other_screen_come(context: BrowserContext, looked: Looked) -> None:
    watch_now(looked.installation)
    streams: list[str] = []
    with ExitStack() as opened:
        pages = [opened.enter_context(closing(context.new_page())) for _ in range(TABS)]
        for page in pages:
            page.on("request", lambda request: streams.append(request.url) if STREAM in request.url else None)
            Seen(page, looked.url).open("?customer=acme")
            expect(page.locator("#tile-viewers .value")).to_have_text("800", timeout=SOON_MS)
            expect(page.locator("#status-text")).to_contain_text("Live ·")
        assert len(streams) == 1
        other = Seen(opened.enter_context(closing(context.new_page())), looked.url)
        other.open("explore?customer=acme&range=1h")
        expect(other.page.locator("#overall .value")).to_be_visible(timeout=SOON_MS)
        # All go on.
        watch_now(looked.installation)
        for page in pages:
            expect(page.locator("#status-text")).to_contain_text("Live ·", timeout=SOON_MS)


def test_a_hidden_tab_lets_its_stream_go_and_comes_back_with_what_it_had(
    context: BrowserContext, looked: Looked
) -> None:
    watch_now(looked.installation)
    with closing(_hideable(context)) as first, closing(_hideable(context)) as second:
        with first.expect_request(f"**{STREAM}?*"):
            Seen(first, looked.url).open("?customer=acme")
        expect(first.locator("#tile-viewers .value")).to_have_text("800", timeout=SOON_MS)
        Seen(second, looked.url).open("?customer=acme")
        expect(second.locator("#tile-viewers .value")).to_have_text("800", timeout=SOON_MS)
        # Whoever waits has the stream as soon as it is let go.
        with first.expect_event("requestfailed", lambda one: STREAM in one.url), second.expect_request(f"**{STREAM}?*"):
            first.evaluate(GO, True)
        first.route("**/v1/live?*", lambda _: None)
        first.evaluate(GO, False)
        expect(first.locator("#status-text")).to_contain_text(re.compile(r"Catching up · live data \d+ s old"))
        expect(first.locator("#tile-viewers .value")).to_have_text("800")
        expect(first.locator("#live-notice")).to_have_count(0)
        first.unroute_all(behavior="ignoreErrors")
        first.evaluate(GO, True)
        watch_now(looked.installation)
        first.evaluate(GO, False)
        expect(first.locator("#status-text")).to_contain_text("Live ·", timeout=SOON_MS)


def _hideable(context: BrowserContext) -> Page:
    page = context.new_page()
    page.add_init_script(HIDING)
    return page
