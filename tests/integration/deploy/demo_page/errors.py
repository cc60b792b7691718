"""Errors: which there are, and which are new or more since a moment."""

from collections import Counter
from itertools import pairwise
from typing import Final

import pytest
from playwright.sync_api import expect

from loadtest.story import GAVE_UP_CODE
from shared.schemas.view import View
from tests.integration.deploy.demo_page.told import RANGE, ROUNDED, Told, narrow
from tests.integration.page.parts.looking import Seen, number
from tests.integration.parts.browsing import SOON_MS

#: Before the incident no player gave up, and soon after it one did.
_BEFORE_MS, _AFTER_MS = 3_000, 500
#: So much later than it is the end of a view may be known whose client says when it sends. (Those have versions.)
_LATE_MS: Final = 200


def codes(seen: Seen, told: Told) -> None:
    """The list of errors: how many views have each."""
    seen.go("Errors", within=RANGE)
    rows = seen.page.locator("#errors tbody tr")
    codes = Counter(view.error_code for view in told.views if view.error_code)
    expect(rows).to_have_count(len(codes), timeout=SOON_MS)
    shown = {row.locator("th a").inner_text(): number(row.locator("td").first.inner_text()) for row in rows.all()}
    assert shown == codes
    for row in rows.all():
        share = row.locator("td").nth(1).inner_text()
        assert number(share) == pytest.approx(codes[row.locator("th a").inner_text()] / len(told.views), rel=ROUNDED)
        assert share.endswith(f"n {len(told.views)}")


def since_the_incident(seen: Seen, told: Told) -> None:
    """Which error codes are new since the incident, and which rose, among players of its version."""
    version = told.incident.player_version
    views = told.of(player_version=version)
    since_ms = _moment(views, told)
    seen.go("Explore", within=RANGE)
    page = seen.page
    narrow(seen, "player_version", version)
    expect(page.locator(".chip")).to_contain_text(version, timeout=SOON_MS)
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Errors", exact=True).click()
    expect(page.locator("#errors tbody tr").first).to_be_visible(timeout=SOON_MS)
    # The run is shorter than a minute, to which a person chooses the moment: a link has it to the millisecond.
    page.goto(f"{page.url}&since={since_ms}")
    expect(page.locator("#errors thead")).to_contain_text("Since", timeout=SOON_MS)
    # What rose most comes first.
    page.locator("#errors thead").get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#errors thead th[aria-sort]")).to_contain_text("Change", timeout=SOON_MS)
    before, after = (
        [view for view in views if (view.view_end_ms >= since_ms) is is_after] for is_after in (False, True)
    )
    was, now = (Counter(view.error_code for view in part if view.error_code) for part in (before, after))
    rose = {code: now[code] / len(after) - was[code] / len(before) for code in was | now}
    rows = page.locator("#errors tbody tr")
    expect(rows).to_have_count(len(was | now), timeout=SOON_MS)
    expect(rows.first.locator("th a")).to_have_text(max(rose, key=lambda code: rose[code]), timeout=SOON_MS)
    heads = page.locator("#errors thead th").all_inner_texts()[1:]
    order, new = [], set()
    for row in rows.all():
        code = row.locator("th a").inner_text()
        order.append(code)
        cells = dict(zip([head.removesuffix(" ?") for head in heads], row.locator("td").all_inner_texts(), strict=True))
        assert number(cells["Views"]) == was[code] + now[code], code
        for name, part, codes in (("Before", before, was), ("Since", after, now)):
            assert number(cells[name]) == pytest.approx(codes[code] / len(part), rel=ROUNDED, abs=6e-5), (code, name)
            assert cells[name].endswith(f"n {len(part)}"), (code, name)
        if row.locator(".is-new").count():
            new.add(code)
    assert order == sorted(rose, key=lambda code: -rose[code])
    assert new == {GAVE_UP_CODE}, new
    assert new == now.keys() - was.keys()


def _moment(views: list[View], told: Told) -> int:
    """A moment about when the incident began: after it the next view ends, and before it none for as long as possible."""
    began_ms = told.began_ms + told.incident.from_ms
    ends = sorted(view.view_end_ms for view in views)
    pauses = [
        (end - earlier, end) for earlier, end in pairwise(ends) if began_ms - _BEFORE_MS <= end <= began_ms + _AFTER_MS
    ]
    longest_ms, end = max(pauses)
    assert longest_ms > _LATE_MS
    return end
