"""The page over millions of views: `python -m bench.query.page [--views N] [--rounds N]`.

Opens the real page in Chromium over a generated warehouse, clicks as a person does, and measures each interaction in the page:
until anything answers it (a number, or a skeleton in its place), and until all its data is there. No server answers from an
answer of before, and each round clicks something else. Chromium, dashboard, query and Postgres share the machine.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from bench.query.first_load import (
    CHROMIUM,
    ENDS_MS_MAX,
    FIRST,
    LOADS,
    Loads,
    compared,
    first_load,
    log_in,
    slowest,
)
from bench.query.inputs import DAYS, generate
from bench.query.installation import page_over
from bench.query.questions import LAST_MS
from bench.report.results import HOME, Compared, Part, keep, table
from deploy.demo.comparing.compare import nearest_rank

ANSWERED_MS_MAX: Final = 100.0
DATA_MS_MAX: Final = 1_000.0
_CUSTOMERS: Final = ("customer_00", "customer_01", "customer_02", "customer_03", "customer_04")

#: The page's now is where the generated month ends. Only `Date` is another: Playwright's own clock replaces timers and frames
#: too, and so measures itself.
_NOW: Final = """
    const Real = Date, later = %d - Real.now();
    globalThis.Date = class extends Real {
        constructor(...given) { given.length ? super(...given) : super(Real.now() + later); }
        static now() { return Real.now() + later; }
    };
"""
#: Counts the questions that the page has under way, those apart that it repeats by itself.
_COUNTING: Final = """
    window.__under_way = 0;
    const fetched = window.fetch;
    window.fetch = async (...given) => {
        const counts = !/live|incidents|alerts|session|profile/.test(String(given[0]));
        window.__under_way += counts ? 1 : 0;
        try { return await fetched(...given); } finally { window.__under_way -= counts ? 1 : 0; }
    };
"""
#: Does something to an element, and waits until the page has answered and has nothing under way: ms of both.
_MEASURED: Final = """async ([selector, kind, value]) => {
    const of = document.querySelector(selector);
    if (!of) throw new Error(`nothing is ${selector}`);
    const began = performance.now();
    let answered = 0, done = 0;
    const watch = new MutationObserver(() => { answered ||= performance.now() - began; });
    watch.observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true, attributes: true});
    if (kind === "click") of.click();
    else if (kind === "submit") { of.querySelector(`[name=${value[0]}]`).value = value[1]; of.requestSubmit(); }
    else { of.value = value; of.dispatchEvent(new Event("change", {bubbles: true})); }
    const frame = () => new Promise((go) => setTimeout(go, 4));
    let quiet = 0;
    while (quiet < 5 && performance.now() - began < 60_000) {
        await frame();
        const is_quiet = answered && !window.__under_way && !document.querySelector("main .skeleton");
        if (is_quiet && !quiet) done = performance.now() - began;
        quiet = is_quiet ? quiet + 1 : 0;
    }
    watch.disconnect();
    return [answered, done || 60_000];
}"""


@dataclass
class Times:
    """ms of an interaction in each round."""

    answered: list[float] = field(default_factory=list)
    data: list[float] = field(default_factory=list)


class Person:
    """Somebody at the page. Each interaction is measured under its name."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.times: dict[str, Times] = {}
        self._url = url

    def open(self, address: str) -> None:
        """A screen, until it has its data."""
        self.page.goto(self._url + address)
        self.settle()

    def settle(self) -> None:
        """Waits until nothing is under way."""
        self.page.wait_for_selector("main h2", timeout=ENDS_MS_MAX)
        self.page.wait_for_function(
            "() => !window.__under_way && !document.querySelector('main .skeleton')", timeout=ENDS_MS_MAX
        )

    def does(self, name: str, selector: str, kind: str, value: Any = "") -> None:
        """One interaction: a click, a choice or a search."""
        self.page.wait_for_selector(selector, timeout=ENDS_MS_MAX)
        answered, data = self.page.evaluate(_MEASURED, [selector, kind, value])
        times = self.times.setdefault(name, Times())
        times.answered.append(answered)
        times.data.append(data)


def explore(person: Person, number: int) -> None:
    """A question of the last thirty days, made narrower click by click."""
    person.open(f"explore?range=7d&metrics=playback_failure_fraction&customer={_CUSTOMERS[number % 5]}")
    person.does("all customers", "#customer", "choose", "*")
    person.does("range: 30 days", "#range", "choose", "30d")
    person.does("breakdown by CDN", "#by", "choose", "cdn")
    person.does("… and country", "#by-second", "choose", "country")
    person.does("filter: a click on a row", f"#groups tbody tr:nth-child({2 + number}) a", "click")
    person.does("compare with the range before", "#compare", "choose", "previous")
    person.does("another metric: rebuffering", "#metric", "choose", "rebuffer_fraction")
    person.does("another metric: start-up p95", "#metric", "choose", "startup_ms_p95")
    for name, place in (("small multiples", 2), ("table", 3), ("distribution", 4)):
        person.does(f"form: {name}", f"[aria-label=Form] button:nth-child({place})", "click")
    person.does("time zone", "#tz", "choose", "Europe/Berlin")
    person.does("who is behind it?", "#ask-suspects", "click")


def search(person: Person, number: int) -> None:
    """Views of one viewer, and one of them."""
    person.open(f"views?range=30d&customer={_CUSTOMERS[number % 5]}")
    person.does("views: search by title", "#search", "submit", ("title", f"video {1_234 + number}"))
    person.does("view opened", "#views tbody tr a", "click")


def screens(person: Person, number: int) -> None:
    """The other screens, by their links."""
    person.open(f"explore?range=24h&customer={_CUSTOMERS[number % 5]}")
    person.does("screen Titles", "nav a[href*='titles']", "click")
    person.does("titles: sorted by another head", "#titles thead th:nth-child(4) button", "click")
    person.does("title opened", "#titles tbody th a", "click")
    person.does("screen Errors", "nav a[href*='errors']", "click")
    person.does("errors: new since a release", "#since", "choose", f"2026-01-30T{12 + number:02}:00")
    person.does("screen Now", "nav a[href^='/?']", "click")


def _first_load(browser: Browser, url: str, state: Any, screen: str) -> tuple[int, float]:
    context = _context(browser, state)
    found = first_load(context.new_page(), url, screen)
    context.close()
    return found


def _context(browser: Browser, state: Any) -> Any:
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, timezone_id="UTC", storage_state=state, bypass_csp=True
    )
    context.add_init_script(_NOW % (LAST_MS - 1_000))
    context.add_init_script(_COUNTING)
    return context


def measure(views: int, rounds: int) -> tuple[dict[str, Times], Loads]:
    """Times by interaction, and the first loads by screen."""
    warehouse = HOME / "query"
    generate(warehouse, views)
    with (
        tempfile.TemporaryDirectory() as folder,
        page_over(Path(folder), warehouse) as over,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(**CHROMIUM)
        state = log_in(browser, over.link)
        parts: tuple[Callable[[Person, int], None], ...] = (explore, search, screens)
        found: dict[str, Times] = {}
        for number in range(rounds + 1):
            person = Person(_context(browser, state).new_page(), over.url)
            for part in parts:
                part(person, number)
            person.page.context.close()
            # The first round brings files and columns into memory.
            for name, times in person.times.items() if number else ():
                whole = found.setdefault(name, Times())
                whole.answered += times.answered
                whole.data += times.data
        loads = {
            screen: [_first_load(browser, over.url, state, screen) for _ in range(max(LOADS, rounds))]
            for screen in FIRST
        }
        browser.close()
    return found, loads


def _part(views: int, rounds: int, times: dict[str, Times], loads: Loads) -> Part:
    figures = compared(loads)
    lines = ["| interaction | answered, p50 / slowest | data, p50 / slowest | met |", "|---|---|---|---|"]
    late = []
    for name, one in times.items():
        is_met = max(one.answered) <= ANSWERED_MS_MAX and max(one.data) <= DATA_MS_MAX
        late += [] if is_met else [name]
        lines.append(
            f"| {name} | {_rank(one.answered, 0.5):.0f} ms / {max(one.answered):.0f} ms"
            f" | {_rank(one.data, 0.5):,.0f} ms / {max(one.data):,.0f} ms | {'yes' if is_met else 'no'} |"
        )
    figures.append(
        Compared(
            "page: interactions answered within 100 ms, their data within 1 s, in every round",
            f"{len(times) - len(late)} of {len(times)}",
            f"{len(times)} of {len(times)}",
            not late,
        )
    )
    return Part(
        name="page",
        title="The page over millions of views",
        command=f"python -m bench.query.page --views {views} --rounds {rounds}",
        checked="each interaction ends with an answer",
        compared=figures,
        lines=[
            (
                f"{views:,} views of {DAYS} days of 20 customers, {rounds} rounds."
                " Chromium, dashboard, query and Postgres share two cores."
                f" The slowest first number: {slowest(loads)}."
            ),
            "",
            *lines,
        ],
    )


def _rank(values: list[float], rank: float) -> float:
    return float(nearest_rank(values, rank) or 0)


def main() -> int:
    """0 when every interaction ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.query.page", description=__doc__)
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    part = _part(given.views, given.rounds, *measure(given.views, given.rounds))
    keep(part)
    print("\n".join([*table([part]), "", *part.lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
