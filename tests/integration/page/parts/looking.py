"""A page of the browser that is looked at, and the truth of what it shows."""

import base64
import re
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any, Final, Literal
from urllib.parse import parse_qs, quote, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, BrowserContext, FloatRect, Locator, Page, expect

from services.accounts.commands import login_link
from shared.schemas.view import View
from tests.integration.page.parts import page_settings
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.page_views import LONG_TITLE
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import FIGURES, counts_at

ZONE: Final = "Europe/Berlin"
#: Of a context. Nothing moves: each frame costs CPU time.
LOOKS: Final[dict[str, Any]] = {
    "viewport": {"width": 1280, "height": 900},
    "timezone_id": ZONE,
    "reduced_motion": "reduce",
}
PHONE: Final = {"width": 390, "height": 844}
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
SCREENS: Final = (
    *("", "explore", "errors", "views", "titles", "view?customer=acme&view=view-of-x", "alerts", "settings"),
    *("settings?part=thresholds", "integration", "integration?customer=acme", *page_settings.SCREENS),
    *(
        f"explore?customer=newcomer&by=video_title&as={form}"
        for form in ("table", "lines", "multiples", "distribution")
    ),
    *("views?customer=newcomer", f"titles?customer=newcomer&video={quote(f'id of {LONG_TITLE}')}"),
)
#: Where clicks begin, and where those that lead there begin.
_BEGIN: Final = "errors"
_BEGIN_OF_ERRORS: Final = "views"
#: How long one look of `in_time` waits for a text.
ONE_LOOK_MS: Final = 1_000
#: What reaches beyond the screen.
TOO_WIDE: Final = """(width) => document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll("main *")]
    .filter((one) => one.getBoundingClientRect().right > width && !one.closest(".scroll"))
    .map((one) => one.outerHTML.slice(0, 80))"""
#: Names that buttons or links of several rows share, although each does something else. Figures are named by their heads.
SAME_NAMED: Final = r"""() => {
    const nameOf = (one) => (one.getAttribute("aria-label") ?? one.textContent).replace(/\s+/g, " ").trim() || one.title;
    const found = new Map();
    for (const one of document.querySelectorAll("main :is(button, a[href])")) {
        const name = nameOf(one);
        const row = one.closest("tbody tr, li, .chip");
        if (!row || /^(n )?[\d.–(]/.test(name)) continue;
        const does = one.matches(".what") ? name : one.matches("a") ? one.getAttribute("href") : row;
        found.set(name, (found.get(name) ?? new Set()).add(does));
    }
    return [...found].filter(([, all]) => all.size > 1).map(([name]) => name);
}"""
#: Boxes that scroll from side to side.
SCROLLING: Final = """() => [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => one.getAttribute("aria-label"))"""
#: Counts from now on how often something that is shown gives way to a skeleton: `skeletons`.
COUNT_SKELETONS: Final = """() => { window.skeletons = 0; new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes)
        if (node.matches?.(".skeleton") || node.querySelector?.(".skeleton")) window.skeletons += 1;
}).observe(document.body, { childList: true, subtree: true }); }"""
_ROWS: Final = """(rows) => rows.map((row) =>
    ["th", "td"].map((kind) => [...row.querySelectorAll(kind)].map((one) => one.innerText)))"""
_TEXTS: Final = """(rows, parts) => rows.map((row) =>
    [...row.querySelectorAll(parts)].map((one) => one.innerText))"""
_PIXELS: Final = """async (address) => {
    const image = await createImageBitmap(await (await fetch(address)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    return [...canvas.getImageData(0, 0, image.width, image.height).data];
}"""
_UNITS: Final = {"%": 0.01, "ms": 1.0, "s": 1_000.0, "min": 60_000.0, "Mbps": 1e6, "": 1.0}


def logged_in(browser: Browser, looked: Looked, email: str) -> BrowserContext:
    return let_in(browser, looked.url, looked.installation.postgres.dsn, email)


def let_in(browser: Browser, url: str, dsn: str, email: str) -> BrowserContext:
    """A browser that a link from this database has logged in at a page."""
    context = browser.new_context(**LOOKS)
    # It stays open: the pages of a site share its process, and what their scripts were compiled to, as long as one is there.
    first = context.new_page()
    first.goto(f"{url}login?to=/static/icon.svg#{login_link(dsn, email)}")
    first.wait_for_url(f"{url}static/icon.svg", timeout=SOON_MS)
    return context


def settled(page: Page) -> None:
    """Waits until screen Now has what it asks for. Before, what comes above moves what is below: a click between would miss it."""
    expect(page.locator("#unsuspected, #unsearched, table.suspects").first).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#suspected [role=status], .skeleton")).to_have_count(0, timeout=SOON_MS)


class Seen:
    """A page, and what it asked the API last, by path."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.asked: dict[str, dict[str, list[str]]] = {}
        page.on("request", self._note)

    def open(self, address: str) -> None:
        # Dozens of small modules, of a server that shares its cores.
        self.page.goto(self.url + address, timeout=2 * SOON_MS)

    def go(self, screen: str, *, customer: str = "", within: str = "") -> None:
        """From another screen, which asks for less than Now, to this one, a customer and a range, by clicks."""
        self.open(_BEGIN_OF_ERRORS if screen == "Errors" else _BEGIN)
        self.page.get_by_role("navigation", name="Screens").get_by_role("link", name=screen, exact=True).click(
            timeout=SOON_MS
        )
        if customer:
            self.page.locator("#customer").select_option(customer, timeout=SOON_MS)
        if within:
            self.page.locator("#range").select_option(within, timeout=SOON_MS)

    def between(self, from_ms: int, to_ms: int) -> None:
        """Chooses a range of one's own, by the clocks of the zone."""
        self.page.locator("#range").select_option("own", timeout=SOON_MS)
        for name, at_ms in (("from", from_ms), ("to", to_ms)):
            self.page.locator(f"#{name}").fill(local_text(at_ms))
            self.page.locator(f"#{name}").press("Enter")

    def range(self, path: str) -> tuple[int, int]:
        """The range of the last question at this path, ms."""
        parameters = self.asked[path]
        return int(parameters["from"][0]), int(parameters["to"][0])

    def rows(self, table: str) -> dict[str, list[str]]:
        """The cells of a table by the text of the row's heads, once it is drawn."""
        rows = self.page.locator(f"{table} tbody tr")
        expect(rows.first).to_be_visible(timeout=SOON_MS)
        return {" / ".join(heads).strip(): cells for heads, cells in rows.evaluate_all(_ROWS)}

    def _note(self, request: Any) -> None:
        parts = urlsplit(request.url)
        asked = parse_qs(parts.query)
        # The list of customers, of a whole month up to now, comes when it comes: no figure of the screen rests on it.
        if asked.get("by") != ["customer"] or "to" in asked:
            self.asked[parts.path] = asked


def texts(rows: Locator, parts: str) -> list[list[str]]:
    """Of each of these rows, as they are now, the texts of its parts (a selector): in one call to the browser."""
    found: list[list[str]] = rows.evaluate_all(_TEXTS, parts)
    return found


def pixels(page: Page, clip: FloatRect) -> list[tuple[int, int, int]]:
    """The colours of a part of what is seen, row by row."""
    shot = base64.b64encode(page.screenshot(clip=clip)).decode()
    # On a page of its own: the content policy of the other one does not let it decode a picture.
    with closing(page.context.new_page()) as other:
        found: list[int] = other.evaluate(_PIXELS, f"data:image/png;base64,{shot}")
    return [(found[at], found[at + 1], found[at + 2]) for at in range(0, len(found), 4)]


def on_a_phone(page: Page) -> Page:
    """The page as small as a phone, for `unfit`."""
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    page.emulate_media(reduced_motion="reduce")
    return page


def unfit(page: Page) -> list[tuple[str, Any]]:
    """What is too wide for a phone or not accessible, in light and in dark colours: to load a page twice costs more than both."""
    found: list[tuple[str, Any]] = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found += [(scheme, one) for one in (*page.evaluate(TOO_WIDE, PHONE["width"]), *inaccessible(page))]
    return found


def local_text(at_ms: int) -> str:
    """A moment as a person types it, by the clocks of the zone."""
    return datetime.fromtimestamp(at_ms / 1_000, ZoneInfo(ZONE)).strftime("%Y-%m-%dT%H:%M")


def within(looked: Looked, bounds: tuple[int, int], **fields: Any) -> list[View]:
    """The views that count in a range and have these fields."""
    return [
        view
        for view in looked.views
        if bounds[0] <= counts_at(view) < bounds[1]
        and all(getattr(view, name) == value for name, value in fields.items())
    ]


def in_time(check: Callable[[], None]) -> None:
    """Checks until it holds; raises what does not hold in time.

    For figures of a range that ends now: the page asks again and again, and each minute for another range.
    """
    deadline = time.monotonic() + 2 * SOON_MS / 1_000
    while True:
        try:
            check()
        except AssertionError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)
        else:
            return


def number(text: str) -> float | None:
    """A figure as the page words it."""
    found = re.match(r"([\d,.]+)\s*(%|ms|s|min|Mbps)?", text)
    return None if found is None else float(found[1].replace(",", "")) * _UNITS[found[2] or ""]


def expect_rows(
    rows: dict[str, list[str]], of: Callable[[str], list[View]], metric: str, *, n_column: int = 1, least: int = 1
) -> None:
    """Holds the first cell of each row, and its n, against the views that the row's head names."""
    assert len(rows) >= least
    for head, cells in rows.items():
        views = of(head)
        truth = FIGURES[metric](views)
        found = number(cells[0])
        assert found == pytest.approx(truth, rel=0.006, abs=6e-5), (head, cells, truth)
        assert number(cells[n_column]) == len(views), (head, cells)
