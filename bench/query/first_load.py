"""First loads of the page on the demo: `python -m bench.query.first_load [--loads N]`.

Starts the demo that `make demo KEEP=1` starts, waits for its table, and loads screens while its live viewers play. Each load
begins with an empty cache. It is measured in the page, until the first number is painted. All of it shares the machine.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from bench.report.results import Compared, Part, keep, table
from deploy.demo.comparing.compare import nearest_rank
from deploy.local.paths import ROOT
from deploy.local.process import Child

FIRST_LOAD_BYTES_MAX: Final = 150_000
FIRST_NUMBER_MS_MAX: Final = 1_000.0
LOADS: Final = 5
ENDS_MS_MAX: Final = 60_000
_DEMO_SECONDS_MAX: Final = 600
_STOP_SECONDS_MAX: Final = 120
#: The demo prints it when its table is printed and its viewers go on.
_LINK: Final = re.compile(r"^Log in, once: (\S+)$", re.MULTILINE)
CHROMIUM: Final[dict[str, Any]] = {
    "executable_path": "/usr/bin/chromium",
    "args": ["--no-sandbox", "--disable-dev-shm-usage"],
}
#: By screen its address, and what its first number is in.
FIRST: Final = {"Explore": ("explore?range=24h", "#overall .value"), "Now": ("", "#tiles .value, #finished b")}
#: By screen bytes and ms of each first load.
Loads = dict[str, list[tuple[int, float]]]

#: Keeps when the first number was painted: ms since the navigation began.
_PAINTED: Final = """
    const seen = new MutationObserver(() => {
        if (!document.querySelector(%s)) return;
        seen.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.__first = performance.now(); }));
    });
    seen.observe(document, {subtree: true, childList: true});
"""


def log_in(browser: Browser, link: str) -> Any:
    """What a browser keeps of this login."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("#account", timeout=ENDS_MS_MAX)
    state = context.storage_state()
    context.close()
    return state


def first_load(page: Page, url: str, screen: str) -> tuple[int, float]:
    """Bytes of a screen's first load as they were sent, without answers of the API, and ms until its first number."""
    sizes: list[int] = []
    page.on("requestfinished", lambda request: sizes.append(_sent(request)))
    address, number = FIRST[screen]
    page.add_init_script(_PAINTED % json.dumps(number))
    page.goto(f"{url}{address}", wait_until="commit")
    painted = page.wait_for_function("() => window.__first", timeout=ENDS_MS_MAX)
    return sum(sizes), float(painted.json_value())


def compared(loads: Loads, *, of: str = "page") -> list[Compared]:
    """The sizes and times of each screen beside their goals. `of` says of which page."""
    found = []
    for screen, each in loads.items():
        size, number_ms = max(size for size, _ in each), float(nearest_rank([ms for _, ms in each], 0.5) or 0)
        what = f"{of}: first load of {screen}"
        found += [
            Compared(what, f"{size / 1_000:.0f} kB", "≤ 150 kB", size <= FIRST_LOAD_BYTES_MAX),
            Compared(
                f"{of}: first number of {screen}, p50",
                f"{number_ms:,.0f} ms",
                "≤ 1 s",
                number_ms <= FIRST_NUMBER_MS_MAX,
            ),
        ]
    return found


def slowest(loads: Loads) -> str:
    """The slowest first number of each screen, for a sentence."""
    return "; ".join(f"{screen} {max(ms for _, ms in each):,.0f} ms" for screen, each in loads.items())


def _sent(request: Any) -> int:
    if "/v1/" in request.url:
        return 0
    sizes = request.sizes()
    return int(sizes["responseBodySize"]) + int(sizes["responseHeadersSize"])


@contextmanager
def _demo() -> Iterator[str]:
    """A demo that stays up until the block ends; the link to log in."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "demo.log"
        argv = [sys.executable, "-m", "deploy.demo", "--keep", "--folder", f"{folder}/demo"]
        child = Child("demo", argv, log_file=log, folder=ROOT)
        child.start()
        try:
            child.wait_until(lambda: bool(_LINK.search(log.read_text())), _DEMO_SECONDS_MAX, "at its table")
            yield _LINK.findall(log.read_text())[-1]
        finally:
            child.stop(_STOP_SECONDS_MAX)


def _measured(link: str, count: int) -> Loads:
    parts = urlsplit(link)
    url = f"{parts.scheme}://{parts.netloc}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**CHROMIUM)
        state = log_in(browser, link)
        loads: Loads = {screen: [] for screen in FIRST}
        for screen, each in loads.items():
            for _ in range(count):
                context = browser.new_context(viewport={"width": 1280, "height": 900}, storage_state=state)
                each.append(first_load(context.new_page(), url, screen))
                context.close()
        browser.close()
    return loads


def _part(loads: Loads, count: int) -> Part:
    lines = ["| screen | first numbers |", "|---|---|"]
    lines += [f"| {screen} | {', '.join(f'{ms:,.0f}' for _, ms in each)} ms |" for screen, each in loads.items()]
    return Part(
        name="first-load",
        title="The page of the demo",
        command=f"python -m bench.query.first_load --loads {count}",
        checked="each load ends with a number",
        compared=compared(loads, of="page of the demo"),
        lines=[
            (
                "The demo runs as `make demo KEEP=1` starts it, and its live viewers play while the page is loaded."
                f" {count} loads of each screen, with nothing cached. The slowest: {slowest(loads)}."
            ),
            "",
            *lines,
        ],
    )


def main() -> int:
    """0 when every load ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.query.first_load", description=__doc__)
    parser.add_argument("--loads", type=int, default=LOADS)
    given = parser.parse_args()
    with _demo() as link:
        part = _part(_measured(link, given.loads), given.loads)
    keep(part)
    print("\n".join([*table([part]), "", *part.lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
