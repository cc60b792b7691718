"""What is below the line of suspects, in a real browser: closed until somebody opens it, and then in no word a suspect."""

from typing import Any, Final

import pytest
from playwright.sync_api import Route, expect

from tests.integration.page.explore.test_explore_suspects import address
from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import Seen, on_a_phone, unfit
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration

#: Words of the cohorts that answers have below the line here, the likeliest first.
POSSIBLE: Final = ("iOS", "Safari")
#: Nats of the first of them; the others have one less each.
NATS: Final = 2.1


def with_possible(route: Route) -> None:
    """The answer with two cohorts below the line, made of its first suspect. Of other answers they are none."""
    found = route.fetch()
    said: dict[str, Any] = found.json()
    said["possible"] = []
    for place, value in enumerate(POSSIBLE if said["suspects"] else ()):
        conditions = [{"dimension": "os", "value": value, "label": value}]
        below = {"conditions": conditions, "filter": {"dimension": "os", "in": [value]}, "surprise": NATS - place}
        said["possible"].append(said["suspects"][0] | below)
    route.fulfill(response=found, json=said)


def test_explore_shows_what_is_possible_when_somebody_opens_it(seen: Seen, looked: Looked) -> None:
    page = seen.page
    page.route("**/v1/suspects*", with_possible)
    seen.open(address(looked, "compare=previous&suspects=1"))
    suspects, possible = page.locator("#suspected .suspects"), page.locator("#suspected details.possible")
    expect(possible.locator("summary")).to_have_text("Not certain: 2 weaker candidates", timeout=SOON_MS)
    expect(suspects).to_have_count(1)
    expect(suspects).not_to_contain_text(POSSIBLE[0])
    # By the keyboard.
    possible.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(possible).to_contain_text("Chance or the usual changes may explain each of these.")
    expect(possible.locator("tbody th")).to_contain_text([*POSSIBLE])
    expect(possible.locator("tbody .excess").first).to_contain_text(f"evidence {NATS}")
    expect(possible.locator("thead")).to_contain_text("Not certain for")
    expect(possible).not_to_contain_text("Suspected")
    # Chance is no disaster: only what is beyond it has the colour of what is bad.
    expect(possible.locator("td.is-bad")).to_have_count(0)
    expect(suspects.first.locator("td.is-bad").first).to_be_visible()
    possible.locator("tbody th").first.get_by_role("link").click()
    expect(page.locator(".chip")).to_have_count(1)


def test_now_shows_what_is_possible_of_all_metrics_in_one_line(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    page = seen.page
    page.route("**/v1/suspects*", with_possible)
    seen.open("?customer=acme")
    tables = page.locator("#suspected .suspects")
    expect(page.locator("#unsuspected")).to_be_visible(timeout=SOON_MS)
    # Each metric is searched by itself: what stands there before all are is not yet what stays.
    expect(page.locator("#suspected").get_by_role("status")).to_have_count(0, timeout=SOON_MS)
    metrics = tables.count()
    possible = page.locator("#suspected details.possible")
    expect(possible).to_have_count(1)
    expect(possible.locator("summary")).to_have_text(f"Not certain: {metrics * len(POSSIBLE)} weaker candidates")
    expect(possible).not_to_have_attribute("open", "")
    possible.locator("summary").click()
    expect(possible.locator(".suspects")).to_have_count(metrics)
    expect(tables).to_have_count(2 * metrics)


def test_where_nothing_is_possible_there_is_no_line(seen: Seen, looked: Looked) -> None:
    def without(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, json=found.json() | {"possible": []})

    page = seen.page
    page.route("**/v1/suspects*", without)
    seen.open(address(looked, "compare=previous&suspects=1"))
    expect(page.locator("#suspected .suspects tbody tr").first).to_be_visible(timeout=SOON_MS)
    expect(page.locator("details.possible")).to_have_count(0)


def test_it_is_accessible_and_fits_a_phone(seen: Seen, looked: Looked) -> None:
    page = on_a_phone(seen.page)
    page.route("**/v1/suspects*", with_possible)
    seen.open(address(looked, "compare=previous&suspects=1"))
    page.locator("details.possible summary").click(timeout=SOON_MS)
    expect(page.locator("details.possible .suspects")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0, timeout=SOON_MS)
    assert unfit(page) == []
