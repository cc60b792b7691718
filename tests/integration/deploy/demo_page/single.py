"""Whom the incident hits, and one view."""

import re

import pytest
from playwright.sync_api import expect

from tests.integration.deploy.demo_page.told import RANGE, ROUNDED, Told, is_near
from tests.integration.page.parts.looking import ONE_LOOK_MS, Seen, in_time, number, settled
from tests.integration.parts.browsing import SOON_MS


def now(seen: Seen, told: Told) -> None:
    """What is wrong, and where: Now names the incident first, and a click on it shows its failures."""
    page, cohort = seen.page, told.incident
    seen.open("")
    settled(page)
    suspect = page.locator(".suspects[data-metric=playback_failure_fraction] tbody tr").first
    for words in (f"CDN {cohort.cdn}", str(cohort.asn), f"Player version {cohort.player_version}"):
        expect(suspect).to_contain_text(words, ignore_case=True)
    suspect.locator("th").get_by_role("link").click()
    expect(page.locator(".chip")).to_have_count(3, timeout=SOON_MS)
    views = told.of(cdn=cohort.cdn, asn=cohort.asn, player_version=cohort.player_version)
    failures = page.locator("#finished li").filter(has_text="Playback failures")

    def shows_the_cohort() -> None:
        expect(failures).to_contain_text(f"n {len(views)}", timeout=ONE_LOOK_MS)
        is_near(failures.locator("b").inner_text(), "playback_failure_fraction", views)

    in_time(shows_the_cohort)


def viewer(seen: Seen, told: Told) -> None:
    """One viewer's view, found by the viewer's id: its stalls, and when they were."""
    view = max(told.of(customer_id="acme", source="mux"), key=lambda one: one.rebuffer_count)
    assert view.rebuffer_count > 1
    seen.go("Views", customer="acme", within=RANGE)
    page = seen.page
    page.locator("#search input[name=viewer]").fill(str(view.viewer_id))
    page.get_by_role("button", name="Search").click()
    row = page.locator("#views tbody tr", has=page.get_by_title(view.view_id))
    expect(page.locator("#views tbody tr")).to_have_count(1, timeout=SOON_MS)
    row.get_by_role("link").first.click()
    stalls = page.locator("#view-facts div", has_text="Rebuffering").locator("dd")
    expect(stalls).to_have_text(re.compile(rf"^{view.rebuffer_count} × · "), timeout=SOON_MS)
    assert number(stalls.inner_text().split("· ")[1]) == pytest.approx(view.rebuffer_ms, rel=ROUNDED)
    states = page.locator("#view-life svg").first.get_attribute("aria-label") or ""
    drawn = [number(text) or 0 for text in re.findall(r"rebuffering ([^,]+)", states)]
    assert len(drawn) == view.rebuffer_count
    assert sum(drawn) == pytest.approx(view.rebuffer_ms, rel=ROUNDED)
