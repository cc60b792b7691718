"""A page that rrweb's own recorder records with the very lines of docs/recordings.md, and visits to it in a headless browser."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web
from playwright.sync_api import Browser, Page, sync_playwright

from deploy.demo.viewers.clients_doc import RECORDINGS_DOC, aimed_at, lines_to_paste
from deploy.local.paths import RRWEB
from deploy.local.ports import free_port
from services.rim.admin.http_thread import HttpThread

#: The key of the document's lines.
CUSTOMER: Final = "YOUR_KEY"
#: What a visitor calls herself at last, and the text of the page then.
NAME, GREETING = "Grace", "Hello Grace"
#: What she types when she leaves the page for a moment.
WAY_OUT: Final = "on the way out"
_CHROMIUM: Final = "chromium"
_CHROMIUM_ARGS: Final = ["--no-sandbox", "--disable-dev-shm-usage"]
#: How long a page's events are let through between two looks.
_LOOK_MS: Final = 200
_PAGE: Final = """<!doctype html>
<meta charset="utf-8"><title>Shop</title><link rel="icon" href="data:,">
<h1 id="greeting">Before</h1>
<input id="name"><button id="greet" onclick="greeting.textContent = 'Hello ' + document.getElementById('name').value">Greet</button>
<script src="/rrweb/umd/rrweb.min.js"></script>
<script type="module">
{lines}
</script>
"""
#: Waits until a condition holds or the time is over; whether it holds.
Until = Callable[[Callable[[], bool]], bool]


def missing() -> str | None:
    """What a recording in a browser lacks on this machine; None when nothing."""
    if shutil.which(_CHROMIUM) is None:
        return f"{_CHROMIUM} is not installed"
    return None if RRWEB.is_dir() else f"{RRWEB} is missing"


@contextmanager
def serving(make_app: Callable[[], web.Application]) -> Iterator[str]:
    """Serves an application on a port of its own; yields its address. Raises `OSError` when it cannot listen."""
    port = free_port()
    thread = HttpThread("pages", "127.0.0.1", port, make_app)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        thread.stop()


@contextmanager
def recorded_page(collector_port: int) -> Iterator[str]:
    """Serves the page; yields its address. Raises `OSError` when it cannot listen."""
    lines = aimed_at(lines_to_paste("Recording a page", document=RECORDINGS_DOC), f"127.0.0.1:{collector_port}")

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=_PAGE.replace("{lines}", lines), content_type="text/html")

    def app() -> web.Application:
        made = web.Application()
        made.router.add_get("/", page)
        made.router.add_static("/rrweb/", RRWEB)
        return made

    with serving(app) as url:
        yield f"{url}/"


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=shutil.which(_CHROMIUM),
            args=_CHROMIUM_ARGS,
            # People's browsers have one.
            ignore_default_args=["--disable-back-forward-cache"],
        )
        try:
            yield made
        finally:
            made.close()


def visit(page: Page, url: str, stored: Callable[[str], int], until: Until) -> str | None:
    """Visits the page, which is recorded; the session's id, or None when its payloads are not stored in time.

    `stored` returns how many payloads of a session are stored.
    """
    posted: set[str] = set()
    page.on("request", lambda request: posted.add(request.url) if "/recordings/" in request.url else None)

    def is_stored_after(count: int) -> bool:
        # Only a call of its own lets the page's events through.
        page.wait_for_timeout(_LOOK_MS)
        return bool(posted) and stored(_session_of(posted)) > count

    page.goto(url)
    for name in ("Ada", NAME):
        page.fill("#name", name)
        page.click("#greet")
        # The recorder sends now and then: what it sends from here on ends with the greeting.
        count = len(posted)
        if not until(lambda count=count: is_stored_after(count)):  # type: ignore[misc]
            return None
    page.goto("about:blank")
    return _session_of(posted)


def leave_and_return(page: Page) -> None:
    """Leaves the page with events that are not sent yet, and comes back to it out of the back-forward cache."""
    page.evaluate("addEventListener('pageshow', (event) => { window.returned = event.persisted; })")
    page.fill("#name", WAY_OUT)
    page.goto("about:blank")
    # Not at once: the call itself would end with the page.
    page.evaluate("setTimeout(() => history.back())")
    page.wait_for_function("window.returned !== undefined")
    if not page.evaluate("window.returned"):
        raise RuntimeError("the page was loaded again: it was not in the back-forward cache")


def shown_in_replay(page: Page) -> tuple[str, str]:
    """Heading and input of the page as the replay shows it now."""
    frame = page.frame_locator(".replayer-wrapper iframe")
    return frame.locator("#greeting").inner_text(), frame.locator("#name").input_value()


def _session_of(posted: set[str]) -> str:
    found = re.search(r"/recordings/([^?]+)", min(posted))
    assert found is not None, posted
    return found[1]
