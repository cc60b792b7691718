"""A real Chromium that looks at the page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from deploy.local.paths import PLAYERS

#: In which the page must have caught up; generous, for a busy machine.
SOON_MS: Final = 30_000
# Where a test says nothing else: the five seconds of Playwright are over before a browser without CPU time has drawn.
expect.set_options(timeout=SOON_MS)

#: What Chromium's console says of something that the content policy refuses.
_POLICY: Final = "Content Security Policy"
_SHADE: Final = (
    "(image) => document.querySelectorAll('.scroll').forEach((one) => { one.style.backgroundImage = image; })"
)
#: Runs axe, but for the rules that find nothing serious: neither they nor what they check counts as such. What axe would load
#: before is for one of these.
_SERIOUS: Final = """() => {
    const { checks } = axe._audit.data;
    const isSerious = (one) => ["serious", "critical"].includes(one.impact);
    const all = (rule) => [rule, ...[rule.any, rule.all, rule.none].flat().map((one) => checks[one.id ?? one])];
    const others = axe._audit.rules.filter((rule) => !all(rule).some(isSerious)).map((rule) => [rule.id, { enabled: false }]);
    return axe.run({ rules: Object.fromEntries(others), resultTypes: ["violations"], iframes: false, preload: false });
}"""
#: The first that is there. The shell is the same engine without a window around the page: for a window, each page is drawn again in
#: every frame, without a graphics card, which takes most of a browser's CPU time.
EXECUTABLES: Final = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
#: Where a page lives for seconds, to compile its scripts once more costs more than they run.
UNOPTIMIZED: Final = "--js-flags=--no-opt,--no-maglev"
#: What else saves CPU time there: all pages of a context share a process, so that none is started for a page, and a page is a few
#: tiles instead of two dozen.
FRUGAL: Final = (
    UNOPTIMIZED,
    "--renderer-process-limit=1",
    *("--default-tile-width=1280", "--default-tile-height=912"),
    # What draws and what asks servers are threads of the browser's process: a message between processes costs more. Of several such
    # arguments Chromium takes the last, so Playwright's own feature is named as well.
    *("--in-process-gpu", "--enable-features=NetworkServiceInProcess2,CDPScreenshotNewSurface"),
)


def executable() -> str:
    """The browser of tests."""
    return next(one for one in EXECUTABLES if Path(one).exists())


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, closed at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(),
            args=["--no-sandbox", "--disable-dev-shm-usage", *FRUGAL],
        )
        yield browser
        browser.close()


def inaccessible(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds serious on a page: each rule, and the elements that break it. Frames within it are not looked at."""
    # By the debugger's protocol, which no content policy holds up.
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"{(PLAYERS / 'axe-core' / 'axe.min.js').read_text()}; undefined")
    # Over a gradient axe does not judge a colour: the shade of tables that scroll is taken away.
    page.evaluate(_SHADE, "none")
    found = page.evaluate(_SERIOUS)
    page.evaluate(_SHADE, "")
    serious = [one for one in found["violations"] if one["impact"] in {"serious", "critical"}]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in serious]


@contextmanager
def undisturbed(context: BrowserContext, url: str) -> Iterator[Page]:
    """A new page. Fails at the end if it logged an error, broke its content policy, or asked anybody but `url` for anything."""
    page = context.new_page()
    errors: list[str] = []
    strangers: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if _POLICY in said.text else None)
    page.on("request", lambda request: strangers.append(request.url) if url not in request.url else None)
    yield page
    page.close()
    assert errors == []
    assert strangers == []
