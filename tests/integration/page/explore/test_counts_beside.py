"""Of how many a figure is stands beside it, and what is of too few is not shown: compared and usual figures too."""

import re
from typing import Any, Final

import pytest
from playwright.sync_api import Route, expect

from tests.integration.page.explore.test_explore_suspects import address
from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import PHONE, TOO_WIDE, Seen
from tests.integration.parts.browsing import SOON_MS, inaccessible

pytestmark = pytest.mark.integration

#: A share, a time or a bitrate, and no change of one.
_FIGURE: Final = re.compile(r"(?<![+−\d.,])\d[\d,.]*(%| ms| s| min| h| Mbps|/min)(?!\w)")
_N: Final = re.compile(r"\bn [\d,]+")
#: Less than a percentile needs.
FEW: Final = 99


@pytest.mark.parametrize(
    ("address", "figures", "least"),
    [
        ("?customer=*", "#slices td, #customers-table td, #finished li, .suspects td:not(.excess)", 20),
        ("errors?customer=acme&range=24h&compare=previous", "#errors td:nth-child(n+3):nth-child(-n+5)", 3),
        ("explore?customer=acme&range=24h&by=cdn&compare=previous", "#overall, #groups td:nth-last-child(2)", 3),
        ("explore?customer=acme&range=24h&compare=previous&suspects=1", "#who-of, .suspects td:not(.excess)", 2),
    ],
    ids=["now", "errors", "explore", "suspects"],
)
def test_each_figure_has_its_n_beside_it_on_a_phone_too(
    seen: Seen, looked: Looked, address: str, figures: str, least: int
) -> None:
    watch_now(looked.installation)
    page = seen.page
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    seen.open(address)
    page.wait_for_function(
        "([figures, least]) => [...document.querySelectorAll(figures)].filter((one) => /\\d/.test(one.textContent)).length >= least"
        " && !document.querySelector('.skeleton')",
        arg=[figures, least],
        timeout=SOON_MS,
    )
    texts = [text for text in page.locator(figures).all_text_contents() if _FIGURE.search(text)]
    assert texts != []
    assert [text for text in texts if not _N.search(text)] == []
    assert page.evaluate(TOO_WIDE, PHONE["width"]) == []
    assert inaccessible(page) == []


def test_of_failed_views_it_stands_how_many_had_the_code(seen: Seen) -> None:
    seen.open("errors?customer=acme&range=24h")
    row = seen.page.locator("#errors tbody tr").first
    views = row.locator("td").first
    expect(views).to_have_text(re.compile(r"\d"), timeout=SOON_MS)
    expect(row.locator("td").nth(3)).to_have_text(re.compile(rf"^[\d,]+ n {views.inner_text()}$"))


def test_a_change_from_too_few_views_is_not_shown(seen: Seen) -> None:
    metric, page = "startup_ms_p95", seen.page
    fewer = {"n": 0}

    def with_few(route: Route) -> None:
        found = route.fetch()
        said: dict[str, Any] = found.json()
        for group in said.get("groups", ()):
            before = (group.get("compared") or {}).get(metric)
            if before:
                before.update(value=1_000, n=FEW + 1 - fewer["n"])
        route.fulfill(response=found, json=said)

    page.route("**/v1/breakdown*", with_few)
    cells = page.locator("#groups tbody tr").first.locator("td")
    seen.open(f"explore?customer=acme&range=7d&by=stream_type&metrics={metric}&compare=previous")
    expect(cells.last).to_have_text(re.compile(r"%$"), timeout=SOON_MS)
    fewer["n"] = 1
    seen.open(f"explore?customer=acme&range=7d&by=stream_type&metrics={metric}&compare=previous&rows=21")
    expect(cells.nth(-2)).to_have_text(f"– not shown below 100 views n {FEW}", timeout=SOON_MS)
    expect(cells.last).to_have_text("–")
    expect(page.locator("#hidden-cells")).to_be_visible()


def test_a_share_of_bad_views_is_no_percentile(seen: Seen, looked: Looked) -> None:
    page = seen.page

    def bad_by_p95(route: Route) -> None:
        # The answer of another metric in the form that a percentile's has: views beyond a threshold.
        url = re.sub(r"metric=\w+", "metric=rebuffer_fraction", route.request.url)
        found = route.fetch(url=url)
        said: dict[str, Any] = found.json()
        for one in said["suspects"]:
            one["usual"] = one["rest"] = {"value": 0.25, "n": FEW}
        route.fulfill(response=found, json=said | {"metric": "startup_ms_p95", "unit": "fraction", "against": "usual"})

    page.route("**/v1/suspects*", bad_by_p95)
    seen.open(address(looked, "compare=previous&suspects=1&metrics=startup_ms_p95"))
    cells = page.locator("#suspected .suspects tbody tr").first.locator("td")
    for at in (2, 3):
        expect(cells.nth(at)).to_have_text(f"25.0% n {FEW}", timeout=SOON_MS)
