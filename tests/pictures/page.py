"""`python -m tests.pictures.page [FOLDER]`: takes docs/page.png, of generated views; with a folder, every screen."""

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, expect

from deploy.local.paths import ROOT
from services.accounts.commands import login_link
from shared.topics import BEACONS, LIVE, REJECTED
from tests.integration.dashboard.dashboard_parts import WATCHER
from tests.integration.page.parts import page_alerts, page_beside
from tests.integration.page.parts.installation import Looked, looked_at, watch_now
from tests.integration.parts.brokers import broker_with_topics
from tests.integration.parts.browsing import chromium

SCREENS: Final = {
    "now": "?customer=acme",
    "explore": "explore?customer=acme&by=cdn",
    "errors": "errors?customer=acme&range=7d",
    "views": "views?customer=acme",
    "view": "view?customer=acme&view=view-of-x",
    "titles": "titles?customer=acme",
    "title": "titles?customer=acme&video=id+of+Cup+final",
    "alerts": "alerts?customer=acme",
    "integration": "integration?customer=acme",
    "settings": "settings?part=tokens",
    "thresholds": "settings?part=thresholds",
    "people": "settings?part=people",
    "environments": "settings?part=environments",
    "organisations": "settings?part=organisations",
    "audit": "settings?part=audit",
    "incident": "incident?id={incident}",
    "limits": "limits?customer=acme",
    "partitions": "partitions",
    "replay": "replay?customer=acme&session=of-x",
}
_WIDTH: Final = 1280
_PHONE: Final = 390
#: Generous: a picture is taken on a busy machine too.
_ENDS_MS_MAX: Final = 180_000


def main(arguments: list[str]) -> int:
    """Takes the pictures."""
    with (
        tempfile.TemporaryDirectory() as folder,
        broker_with_topics(Path(folder) / "broker", [LIVE, BEACONS, REJECTED]) as broker,
        looked_at(Path(folder), broker) as looked,
        chromium() as browser,
    ):
        with _at(browser, looked, scheme="light", width=_WIDTH) as page:
            _take(page, looked, "now", ROOT / "docs" / "page.png")
        in_few_colours(ROOT / "docs" / "page.png")
        incident = page_alerts.landed(looked.installation.postgres.dsn, looked.now_ms).incident_id
        for to, scheme, width in itertools.product(arguments[:1], ("light", "dark"), (_WIDTH, _PHONE)):
            with _at(browser, looked, scheme=scheme, width=width) as page:
                page_beside.answered(page)
                for screen in SCREENS:
                    _take(page, looked, screen, Path(to) / f"{screen}-{scheme}-{width}.png", incident)
    return 0


def in_few_colours(picture: Path) -> None:
    """Writes a screenshot again with a palette: it has few colours, and takes a third of the bytes."""
    palette = "split[a][b];[a]palettegen=max_colors=64:reserve_transparent=0[p];[b][p]paletteuse=dither=none"
    made = picture.with_suffix(".few.png")
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-i", picture, "-vf", palette, "-compression_level", "100", made], check=True
    )
    made.replace(picture)


@contextmanager
def _at(browser: Browser, looked: Looked, *, scheme: Literal["light", "dark"], width: int) -> Iterator[Page]:
    """A page of somebody who has logged in."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{looked.url}login#{login_link(looked.installation.postgres.dsn, WATCHER)}")
    page.wait_for_selector("#account", timeout=_ENDS_MS_MAX)
    yield page
    context.close()


def _take(page: Page, looked: Looked, screen: str, to: Path, incident: str = "") -> None:
    page.goto(looked.url + SCREENS[screen].format(incident=incident))
    page.wait_for_selector("main :is(h2, iframe)", timeout=_ENDS_MS_MAX)
    if screen == "now":
        page.wait_for_selector(".suspects", timeout=_ENDS_MS_MAX)
        expect(page.locator("#suspected [role=status]")).to_have_count(0, timeout=_ENDS_MS_MAX)
        # What was counted while the page came is old by now on a busy machine.
        watch_now(looked.installation)
        expect(page.locator("#status")).to_have_attribute("data-level", "good", timeout=_ENDS_MS_MAX)
        # The map comes when its place is seen.
        page.locator(".map-place").scroll_into_view_if_needed(timeout=_ENDS_MS_MAX)
        expect(page.locator("#map")).to_be_visible(timeout=_ENDS_MS_MAX)
    expect(page.locator("header")).not_to_contain_text("Loading", timeout=_ENDS_MS_MAX)
    expect(page.locator(".skeleton")).to_have_count(0, timeout=_ENDS_MS_MAX)
    expect(page.locator(".plot:not(:has(canvas))")).to_have_count(0, timeout=_ENDS_MS_MAX)
    page.screenshot(path=to, full_page=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
