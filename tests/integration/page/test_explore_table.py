"""The table of Explore: which groups it lists, and where its figures lead."""

import re
from collections import Counter

import pytest
from playwright.sync_api import expect

from tests.integration.page.looking import Seen, number, within
from tests.integration.page.page_parts import Looked
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


def test_a_breakdown_lists_more_rows_and_those_with_enough_views_alone(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=30d&as=table&by=viewer&metrics=views")
    rows = page.locator("#groups tbody tr")
    expect(rows).to_have_count(21, timeout=SOON_MS)
    bounds = seen.range("/v1/breakdown")
    truth = Counter(str(view.viewer_user_id) for view in within(looked, bounds, customer_id="acme"))
    expect(rows.last.locator("th")).to_have_text(f"(other) {len(truth) - 20} more")
    page.locator("#more-rows").click()
    expect(rows).to_have_count(101, timeout=SOON_MS)
    expect(page).to_have_url(re.compile("rows=100"))
    page.locator("#more-rows").click()
    expect(rows).to_have_count(len(truth), timeout=SOON_MS)
    expect(page.locator("#more-rows")).to_have_count(0)
    assert {head: number(cells[0]) for head, cells in seen.rows("#groups").items()} == truth
    # Those with few views are no rows of their own; the address has the number.
    least = truth.most_common(30)[-1][1]
    enough = {name: n for name, n in truth.items() if n >= least}
    page.locator("#views-min").fill(str(least))
    page.locator("#views-min").press("Enter")
    expect(rows).to_have_count(len(enough) + 1, timeout=SOON_MS)
    expect(rows.last.locator("th")).to_have_text(f"(other) {len(truth) - len(enough)} more")
    expect(page.locator("#more-rows")).to_have_count(0)
    page.reload()
    expect(page.locator("#views-min")).to_have_value(str(least), timeout=SOON_MS)
    expect(rows).to_have_count(len(enough) + 1, timeout=SOON_MS)
