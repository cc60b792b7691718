"""Suspects on Now, in a real browser, beside the truth of the views."""

import json
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Response, Route, expect

from tests.integration.dashboard.dashboard_parts import newest_bucket
from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import ONE_LOOK_MS, PHONE, TOO_WIDE, Seen, in_time, number, settled, within
from tests.integration.page.parts.page_views import INCIDENT, NEWCOMER
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import FIGURES

pytestmark = pytest.mark.integration

#: What a new installation answers.
WAREHOUSE_NEW: Final = {
    "title": "No finished view is stored yet",
    "status": 503,
    "detail": "The store for them is made at the first start.",
}


def test_figures_are_asked_for_before_who_is_behind_them(seen: Seen, looked: Looked) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    watch_now(looked.installation)
    seen.page.route("**/v1/overall*", hold)
    seen.open("?customer=acme")
    expect(seen.page.locator("#tiles")).to_be_visible(timeout=SOON_MS)
    expect(seen.page.locator("#suspected")).to_contain_text("Searching for who is behind")
    assert "/v1/overall" in seen.asked
    assert "/v1/suspects" not in seen.asked
    for route in held:
        route.continue_()
    expect(seen.page.locator(".suspects").first).to_be_visible(timeout=SOON_MS)


def test_what_holds_up_all_suspects_is_said_once_until_they_come(seen: Seen, looked: Looked) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(WAREHOUSE_NEW))

    seen.page.route("**/v1/suspects*", refuse)
    seen.open(f"?customer={NEWCOMER}")
    suspected = seen.page.locator("#suspected")
    notice = suspected.locator(".notice")
    expect(notice.first).to_have_text(f"{WAREHOUSE_NEW['title']}. {WAREHOUSE_NEW['detail']}", timeout=SOON_MS)
    expect(suspected).not_to_contain_text("Searching", timeout=SOON_MS)
    expect(notice).to_have_count(1)
    expect(suspected.locator("table, .skeleton, #unsuspected, #unsearched")).to_have_count(0)
    seen.page.unroute("**/v1/suspects*", refuse)
    expect(suspected.locator(".suspects[data-metric=playback_failure_fraction]")).to_be_visible(timeout=SOON_MS)
    expect(notice).to_have_count(0, timeout=SOON_MS)


def test_where_nothing_says_what_is_usual_the_cohort_is_held_against_the_rest(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open(f"?customer={NEWCOMER}")
    table = seen.page.locator(".suspects[data-metric=playback_failure_fraction]")
    expect(table).to_have_attribute("data-against", "rest", timeout=SOON_MS)
    suspect = table.locator("tbody tr").first
    for words in ("CDN fastly", "network (ASN) 3320", "Player version 2.4.0"):
        expect(suspect).to_contain_text(words, ignore_case=True)

    def shows_cohort_and_rest() -> None:
        views = within(looked, seen.range("/v1/suspects"), customer_id=NEWCOMER)
        named = ("cdn", "asn", "player_version")
        cohort = [one for one in views if all(getattr(one, name) == INCIDENT[name] for name in named)]
        rest = [one for one in views if one not in cohort]
        for cell, of in zip(suspect.locator("td").all()[1:3], (cohort, rest), strict=True):
            expect(cell).to_contain_text(f"n {len(of)}", timeout=ONE_LOOK_MS)
            assert number(cell.inner_text()) == pytest.approx(FIGURES["playback_failure_fraction"](of), rel=0.01)

    in_time(shows_cohort_and_rest)
    expect(table.locator("thead th")).to_have_count(5)
    suspect.locator("th").get_by_role("link").click()
    expect(seen.page.locator(".chip")).to_have_count(3, timeout=SOON_MS)


def test_a_suspect_says_how_much_more_there_is_than_expected_and_how_sure_that_is(seen: Seen, looked: Looked) -> None:
    answers: dict[str, list[dict[str, Any]]] = {}

    def note(response: Response) -> None:
        if "/v1/suspects?" in response.url and response.ok:
            answers[parse_qs(urlsplit(response.url).query)["metric"][0]] = response.json()["suspects"]

    watch_now(looked.installation)
    page = seen.page
    page.on("response", note)
    seen.open("?customer=acme")
    settled(page)

    def shows_the_answers() -> None:
        tables = page.locator(".suspects").all()
        assert tables
        for table in tables:
            metric = table.get_attribute("data-metric") or ""
            of_time = metric == "rebuffer_fraction"
            cells = table.locator("tbody .excess").all_inner_texts()
            assert len(cells) == len(answers[metric]) > 0
            for cell, one in zip(cells, answers[metric], strict=True):
                excess = (number(cell) or 0) * (3_600_000 if " h more" in cell else 1)
                assert excess == pytest.approx(one["excess"], rel=0.02 if of_time else 0, abs=0.5), cell
                assert ("more rebuffering" if of_time else "more failure") in cell
                evidence = float(cell.rpartition("evidence ")[2])
                assert evidence == pytest.approx(one["surprise"], abs=0.05 if evidence < 10 else 0.5), cell

    in_time(shows_the_answers)
    assert {"rebuffer_fraction", "playback_failure_fraction"} <= answers.keys()
    meaning = page.locator(".suspects").first.get_by_role("button", name="What Excess and evidence means")
    meaning.click()
    expect(page.get_by_role("note")).to_contain_text("Each 2.3 more is ten times likelier")
    page.keyboard.press("Escape")
    expect(page.get_by_role("note")).to_have_count(0)
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert page.evaluate(TOO_WIDE, PHONE["width"]) == []
    meaning.click()
    expect(page.get_by_role("note")).to_be_in_viewport(ratio=1)


def test_where_no_view_has_finished_it_says_so_and_clears_nobody(seen: Seen, looked: Looked) -> None:
    looked.installation.count("beginner", newest_bucket(), 0, viewers_now=1_000)
    seen.open("?customer=beginner")
    expect(seen.page.locator("#tile-viewers .value")).to_have_text("1,000", timeout=SOON_MS)
    expect(seen.page.locator("#unsearched")).to_contain_text("No view has finished in this time", timeout=SOON_MS)
    expect(seen.page.locator("#unsuspected")).to_have_count(0)
