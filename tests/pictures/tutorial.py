"""`python -m tests.pictures.tutorial`: takes the pictures of docs/tutorial.md, of the incident in a demo that it starts."""

import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect

from deploy.demo.comparing.alerting import CUSTOMER
from deploy.local.paths import ROOT
from loadtest.incident import incident_of
from tests.integration.parts.browsing import chromium
from tests.pictures.page import in_few_colours

_DOCS: Final = ROOT / "docs"
_VIEWPORT: Final = {"width": 1_280, "height": 800}
#: Below the last card of a picture, px.
_MARGIN: Final = 10
#: From the start of the demo to its verdict; generous, for a busy machine.
_VERDICT_SECONDS_MAX: Final = 900
_END_SECONDS_MAX: Final = 120
#: Of an answer of the page.
_ENDS_MS_MAX: Final = 180_000
#: How long players play by default.
_SECONDS: Final = 60
_VERDICT: Final = "everything is as the players know it"
_LINK: Final = re.compile(r"Log in, once: (\S+)")


def main() -> int:
    """Takes the pictures; 1 if the demo does not come to its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        command = [sys.executable, "-m", "deploy.demo", "--folder", f"{folder}/demo", "--keep"]
        with output.open("wb") as to, subprocess.Popen(command, cwd=ROOT, stdout=to, stderr=subprocess.STDOUT) as demo:
            try:
                link = _link(demo, output)
                if link is None:
                    sys.stderr.write(output.read_text()[-2_000:])
                    return 1
                _take(link)
            finally:
                demo.terminate()
                demo.wait(_END_SECONDS_MAX)
    return 0


def _link(demo: subprocess.Popen[bytes], output: Path) -> str | None:
    """The login link that follows the verdict; None where there is none."""
    deadline = time.monotonic() + _VERDICT_SECONDS_MAX
    while demo.poll() is None and time.monotonic() < deadline:
        _, _, rest = output.read_text().partition(_VERDICT)
        if found := _LINK.search(rest):
            return found[1]
        time.sleep(1)
    return None


def _take(link: str) -> None:
    with chromium() as browser:
        context = browser.new_context(
            viewport=_VIEWPORT, timezone_id="UTC", color_scheme="light", reduced_motion="reduce"
        )
        page = context.new_page()
        page.goto(link)
        page.wait_for_selector("#account", timeout=_ENDS_MS_MAX)
        url = link.partition("login#")[0]
        page.goto(f"{url}?customer={CUSTOMER}")
        page.wait_for_selector("#recent-incidents", timeout=_ENDS_MS_MAX)
        named = page.locator(".suspects[data-metric=playback_failure_fraction] tbody tr").first
        for value in incident_of(_SECONDS).cohort.values():
            expect(named).to_contain_text(value, timeout=_ENDS_MS_MAX)
        expect(page.locator("#suspected [role=status]")).to_have_count(0, timeout=_ENDS_MS_MAX)
        _shoot(page, "now", "#finished")
        page.locator("#recent-incidents a").first.click()
        page.wait_for_selector("#course canvas", timeout=_ENDS_MS_MAX)
        expect(page.locator("#incident-views b")).to_have_text(re.compile(r"\d"), timeout=_ENDS_MS_MAX)
        _shoot(page, "incident", "#found")
        question = "metrics=playback_failure_fraction&by=cdn,player_version&as=table&range=1h"
        page.goto(f"{url}explore?customer={CUSTOMER}&{question}")
        page.wait_for_selector("#groups tbody tr", timeout=_ENDS_MS_MAX)
        _shoot(page, "explore", "#groups")


def _shoot(page: Page, name: str, last: str) -> None:
    """The page from its top to the end of the element `last`: no card is cut through."""
    expect(page.locator(".skeleton")).to_have_count(0, timeout=_ENDS_MS_MAX)
    expect(page.locator(".plot:not(:has(canvas))")).to_have_count(0, timeout=_ENDS_MS_MAX)
    picture = _DOCS / f"tutorial-{name}.png"
    bottom = page.locator(last).evaluate("(one) => one.getBoundingClientRect().bottom + scrollY")
    height = math.ceil(bottom) + _MARGIN
    page.screenshot(path=picture, full_page=True, clip={"x": 0, "y": 0, "width": _VIEWPORT["width"], "height": height})
    in_few_colours(picture)


if __name__ == "__main__":
    sys.exit(main())
