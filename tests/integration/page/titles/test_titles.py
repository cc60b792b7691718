"""Titles, in a real browser, beside the truth of the views."""

import json
import re
import time
from contextlib import closing
from datetime import datetime, timedelta
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from services.query.core.resources.titles.concurrency import CURVES_MAX
from services.query.core.resources.titles.title import PARTS
from shared.schemas.view import View
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import PHONE, TOO_WIDE, ZONE, Seen, expect_rows, number, texts, within
from tests.integration.page.parts.page_views import LENGTH_MS, TITLES
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import DAY_MS, FIGURES, HOUR_MS, counts_at

pytestmark = pytest.mark.integration


def test_which_titles_rebuffer_most_this_week_against_last(seen: Seen, looked: Looked) -> None:
    seen.go("Explore", within="7d")
    page = seen.page
    page.locator("#by").select_option("video_title")
    page.locator("#compare").select_option("previous")
    page.get_by_role("button", name="Table").click()
    expect(page.locator("#groups thead")).to_contain_text("Before", timeout=SOON_MS)
    page.locator("#groups thead").get_by_role("button", name="Rebuffer percentage").click()
    expect(page.locator("#groups thead th[aria-sort]")).to_contain_text("Rebuffer percentage", timeout=SOON_MS)
    rows = seen.rows("#groups")
    bounds = seen.range("/v1/breakdown")
    expect_rows(rows, lambda title: within(looked, bounds, video_title=title), "rebuffer_fraction", least=5)
    shares = [number(cells[0]) for cells in rows.values()]
    assert shares == sorted(shares, key=lambda share: -(share or 0))
    length = bounds[1] - bounds[0]
    for title, cells in rows.items():
        before = within(looked, (bounds[0] - length, bounds[0]), video_title=title)
        truth = FIGURES["rebuffer_fraction"](before)
        # Of a new title nothing is known from before.
        assert number(cells[2]) == (None if truth is None else pytest.approx(truth, rel=0.006, abs=6e-5))


def test_titles_beyond_those_listed_are_counted_and_come_by_a_click(seen: Seen, looked: Looked) -> None:
    seen.open("titles?customer=acme&range=30d&rows=2")
    page = seen.page
    titles = page.locator("#titles tbody th")
    expect(titles).to_have_count(2, timeout=SOON_MS)
    shown = set(titles.all_inner_texts())
    views = within(looked, seen.range("/v1/titles"), customer_id="acme")
    left_out = sum(view.video_title not in shown for view in views)
    expect(page.locator("#rest")).to_contain_text(f"{len(TITLES) - 2} more titles have {left_out:,} views.")
    while page.locator("#more").count():
        before = titles.count()
        page.get_by_role("button", name="More titles").click()
        expect(titles).not_to_have_count(before, timeout=SOON_MS)
        # Nothing failed; that it takes long is said only for a while. That no view has finished lately may be said all the time.
        expect(page.locator("main .notice, main .slow")).to_have_count(0, timeout=SOON_MS)
    expect(titles).to_have_count(len(TITLES), timeout=SOON_MS)
    expect(page.locator("#rest")).to_have_count(0)


def yesterday(looked: Looked) -> tuple[int, int]:
    """The day before that of the views' present, by the clocks of the zone."""
    today = datetime.fromtimestamp(looked.now_ms / 1_000, ZoneInfo(ZONE)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    from_ms, to_ms = (round(moment.timestamp() * 1_000) for moment in (today - timedelta(days=1), today))
    return from_ms, to_ms


def moment(at_ms: int) -> str:
    """A moment as the page words it."""
    at = datetime.fromtimestamp(at_ms / 1_000, ZoneInfo(ZONE))
    return f"{at.day} {at:%b, %H:%M}"


def audience(views: list[View], times: list[int]) -> list[tuple[int, int]]:
    """Of each step the most that were open at once, and when that was first."""
    begins = sorted({view.view_start_ms for view in views})
    step_ms, found = times[1] - times[0], []
    for from_ms in times:
        within = [from_ms, *(at_ms for at_ms in begins if from_ms < at_ms < from_ms + step_ms)]
        counts = [sum(view.view_start_ms <= at_ms < counts_at(view) for view in views) for at_ms in within]
        found.append((max(counts), within[counts.index(max(counts))]))
    return found


def peak(counts: list[tuple[int, int]]) -> tuple[int, str]:
    """The most of all, and when that was first as the page has it."""
    most = max(count for count, _ in counts)
    return most, moment(next(at_ms for count, at_ms in counts if count == most))


def test_viewers_at_a_time_by_title_during_yesterdays_match(seen: Seen, looked: Looked) -> None:
    seen.go("Titles", customer="acme")
    page = seen.page
    bounds = yesterday(looked)
    with page.expect_response(
        lambda found: f"/v1/concurrency?customer=acme&tz=Europe%2FBerlin&from={bounds[0]}&to={bounds[1]}" in found.url
    ) as found:
        seen.between(*bounds)
    legend = page.locator(".chart .legend li")
    expect(legend).to_have_count(len(TITLES), timeout=SOON_MS)
    times = found.value.json()["at_ms"]
    assert times == list(range(bounds[0], bounds[1], times[1] - times[0]))
    truth = {}
    for title in TITLES:
        own = [view for view in looked.views if view.customer_id == "acme" and view.video_title == title]
        n = sum(view.view_start_ms < bounds[1] and counts_at(view) > bounds[0] for view in own)
        truth[title] = (n, audience(own, times))
    # Each in the legend, the highest first, with its n and its highest moment.
    peaks = []
    for line in legend.all():
        n, counts = truth[line.get_by_role("link").inner_text()]
        most, when = peak(counts)
        peaks.append(most)
        expect(line.locator(".note")).to_have_text(f"n {n} · most {most} at {when}")
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] >= 3
    expect(page.locator("#together-of")).to_contain_text(
        f"of 5 titles of this range, n {sum(n for n, _ in truth.values())} views"
    )
    # The arrow keys read all curves at once.
    page.locator(".chart .plot").focus()
    for at in range(4):
        page.keyboard.press("ArrowRight")
        expect(page.locator(".chart figcaption")).to_contain_text(moment(times[at]))
        shown = {line.get_by_role("link").inner_text(): int(line.locator("b").inner_text()) for line in legend.all()}
        assert shown == {title: counts[at][0] for title, (_, counts) in truth.items()}
    # Those of one's choice, by keys too; the address keeps them.
    page.get_by_role("checkbox", name="Draw Sintel").focus()
    page.keyboard.press("Space")
    expect(legend).to_have_count(len(TITLES) - 1, timeout=SOON_MS)
    page.reload()
    expect(legend).to_have_count(len(TITLES) - 1, timeout=SOON_MS)
    expect(page.get_by_role("checkbox", name="Draw Sintel")).not_to_be_checked()
    expect(page.get_by_role("checkbox", name="Draw Cup final")).to_be_checked()
    assert {line.get_by_role("link").inner_text() for line in legend.all()} == set(TITLES) - {"Sintel"}
    assert inaccessible(page) == []
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert page.evaluate(TOO_WIDE, PHONE["width"]) == []
    page.locator("#largest").click()
    expect(legend).to_have_count(len(TITLES), timeout=SOON_MS)
    legend.get_by_role("link", name="Sintel").click()
    expect(page.locator("#title-name")).to_contain_text("Sintel", timeout=SOON_MS)


def test_titles_are_ticked_by_keys_one_after_the_other_while_the_answer_is_under_way(seen: Seen) -> None:
    page = seen.page
    seen.open("titles?customer=acme&range=7d")
    legend, boxes = page.locator(".chart .legend li"), page.locator("#titles .drawn")
    expect(legend).to_have_count(len(TITLES), timeout=SOON_MS)
    expect(boxes).to_have_count(len(TITLES), timeout=SOON_MS)
    slow = _Slow(page, "**/v1/concurrency*")
    off: set[int] = set()
    # Two are taken, and the first comes back: none of it waits for an answer, and nothing else moves.
    for at in (0, 1, 0):
        boxes.nth(at).focus()
        page.keyboard.press("Space")
        off ^= {at}
        for other in range(len(TITLES)):
            expect(boxes.nth(other)).to_be_checked(checked=other not in off)
        expect(boxes.nth(at)).to_be_focused()
        expect(page.locator("#together-title ~ .skeleton")).to_have_count(1)
    slow.end()
    expect(legend).to_have_count(len(TITLES) - 1, timeout=SOON_MS)
    expect(boxes.nth(0)).to_be_focused()
    # Of another range those with the most at once are not known yet: what is ticked stays, and cannot be changed.
    page.locator("#largest").click()
    expect(legend).to_have_count(len(TITLES), timeout=SOON_MS)
    slow.begin()
    page.locator("#range").select_option("30d")
    expect(page.locator("#together-title ~ .skeleton")).to_have_count(1)
    expect(boxes).to_have_count(len(TITLES), timeout=SOON_MS)
    boxes.nth(2).focus()
    expect(boxes.nth(2)).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Space")
    for box in boxes.all():
        expect(box).to_be_checked()
    expect(boxes.nth(2)).to_be_focused()
    slow.end()
    expect(boxes.nth(2)).not_to_have_attribute("aria-disabled", "true", timeout=SOON_MS)
    expect(boxes.nth(2)).to_be_focused()


class _Slow:
    """Questions of a page whose answers are under way until `end`."""

    def __init__(self, page: Page, url: str) -> None:
        self._held: list[Route] | None = []
        page.route(url, self._ask)

    def begin(self) -> None:
        self._held = []

    def end(self) -> None:
        held, self._held = self._held or [], None
        for route in held:
            route.continue_()

    def _ask(self, route: Route) -> None:
        if self._held is None:
            route.continue_()
        else:
            self._held.append(route)


def test_an_address_of_titles_that_cannot_be_drawn_has_a_way_back(context: BrowserContext, looked: Looked) -> None:
    videos = quote(json.dumps([f"id {n}" for n in range(CURVES_MAX + 1)]))
    with closing(context.new_page()) as page:
        Seen(page, looked.url).open(f"titles?customer=acme&range=7d&videos={videos}")
        expect(page.locator("#together-title ~ .notice")).to_be_visible(timeout=SOON_MS)
        page.get_by_role("button", name="Those with the most at once").click()
        expect(page.locator(".chart .legend li")).to_have_count(len(TITLES), timeout=SOON_MS)
        expect(page.locator("#together-title ~ .notice")).to_have_count(0)


def test_viewers_at_a_time_of_one_title_of_yesterday(seen: Seen, looked: Looked) -> None:
    seen.go("Titles", customer="acme")
    page = seen.page
    bounds = yesterday(looked)
    seen.between(*bounds)
    with page.expect_response(re.compile("/v1/titles/id")) as found:
        page.locator("#titles").get_by_role("link", name=TITLES[0]).click(timeout=SOON_MS)
    expect(page.locator("#title-name")).to_contain_text(TITLES[0], timeout=SOON_MS)
    path = urlsplit(found.value.url).path
    assert seen.range(path) == bounds
    times = [one["at_ms"] for one in found.value.json()["concurrency"]]
    match = [view for view in looked.views if view.customer_id == "acme" and view.video_title == TITLES[0]]
    counts = audience(match, times)
    most, when = peak(counts)
    assert most >= 3
    expect(page.locator("#title-peak")).to_have_text(f"most {most} at {when}")
    # The arrow keys read the curve.
    curve = page.locator(".chart").first
    curve.locator(".plot").focus()
    for count, _ in counts[:4]:
        page.keyboard.press("ArrowRight")
        expect(curve.locator(".legend b")).to_have_text(str(count))
    expect(curve.locator("figcaption")).to_contain_text(
        f"{datetime.fromtimestamp(times[3] / 1_000, ZoneInfo(ZONE)):%H:%M}"
    )
    expect(page.locator(".chart")).to_have_count(6, timeout=SOON_MS)
    # What each chart shows is explained beside its name.
    for name in ("Viewers at a time", "Rebuffer percentage", "Weighted average bitrate"):
        chart = page.locator("h3, .chart", has_text=name).last
        chart.get_by_role("button", name=f"What {name} means").click()
        expect(chart.locator(".meaning")).to_contain_text("Formula")
        page.keyboard.press("Escape")
    # The peak leads to the views that it counts.
    page.locator("#title-peak").get_by_role("link").click()
    expect(page.locator("#views tbody tr")).to_have_count(most, timeout=SOON_MS)


def test_a_curve_ends_now_says_whom_it_misses_and_leads_to_them(seen: Seen, looked: Looked) -> None:
    page = seen.page
    around = f"from={looked.now_ms - 12 * HOUR_MS}&to={looked.now_ms + 12 * HOUR_MS}"
    with page.expect_response(re.compile("/v1/titles/id")) as found:
        seen.open(f"titles?customer=acme&{around}&video=id+of+Cup+final")
    answer = found.value.json()
    # The range goes on for half a day, and the curve does not.
    curve = [one["at_ms"] for one in answer["concurrency"]]
    assert looked.now_ms - answer["step_ms"] <= curve[-1] < time.time() * 1_000
    note = page.locator("#still-open")
    expect(note).to_contain_text("Those that are open are missing", timeout=SOON_MS)
    note.get_by_role("link", name="Its viewers now").click()
    expect(page.locator(".chip")).to_contain_text("Video title is Cup final", timeout=SOON_MS)
    expect(page.locator("#now-title")).to_be_visible()
    # Of days ago nothing is open.
    days = f"from={looked.now_ms - 3 * DAY_MS}&to={looked.now_ms - 2 * DAY_MS}"
    seen.open(f"titles?customer=acme&{days}&video=id+of+Cup+final")
    expect(page.locator(".chart").first).to_be_visible(timeout=SOON_MS)
    expect(note).to_have_count(0)


def test_the_figures_of_a_title_have_its_failures_and_lead_to_its_views_errors_and_course(
    seen: Seen, looked: Looked
) -> None:
    page = seen.page
    title = TITLES[1]
    address = f"titles?customer=acme&range=7d&video=id+of+{title.replace(' ', '+')}"
    seen.open(address)
    facts = page.locator("#title-figures li")
    expect(facts).to_have_count(7, timeout=SOON_MS)
    views = within(looked, seen.range(f"/v1/titles/{quote(f'id of {title}')}"), customer_id="acme", video_title=title)
    assert sum(view.playback_failed for view in views) > 1
    for name, metric in (
        ("Playback failures", "playback_failure_fraction"),
        ("Exits before video start", "exit_before_start_fraction"),
        ("Rebuffer percentage", "rebuffer_fraction"),
        ("Experience", "experience_score"),
    ):
        fact = facts.filter(has_text=name)
        truth = FIGURES[metric](views)
        assert number(fact.locator("b").inner_text()) == pytest.approx(truth, rel=0.006, abs=6e-5), metric
    expect(facts.filter(has_text="Playback failures")).to_contain_text(f"n {len(views):,}")
    for name in ("Playback failures", "Exits before video start"):
        expect(page.get_by_role("group", name=f"{name}. Left and right arrow keys")).to_be_visible()
    links = page.locator("#title-links a")
    for place, shown in (("views", "#views"), ("explore", "#overall"), ("errors", "#errors")):
        links.and_(page.locator(f"a[href^='/{place}?']")).click()
        expect(page.locator(shown)).to_be_visible(timeout=SOON_MS)
        expect(page.locator(".chip")).to_contain_text(f"is id of {title}")
        page.go_back()
        expect(facts).to_have_count(7, timeout=SOON_MS)
    facts.filter(has_text="Playback failures").get_by_role("link", name="Playback failures").click()
    expect(page.locator("#overall .value")).to_be_visible(timeout=SOON_MS)
    assert seen.asked["/v1/overall"]["metrics"] == ["playback_failure_fraction"]
    assert title in seen.asked["/v1/overall"]["filter"][0]


def test_which_parts_of_a_video_were_reached_and_watched_again(seen: Seen, looked: Looked) -> None:
    seen.open("titles?customer=acme&range=7d")
    page = seen.page
    with page.expect_response(re.compile("/v1/titles/id")) as found:
        page.locator("#titles").get_by_role("link", name="Sintel").click(timeout=SOON_MS)
    bounds = seen.range(urlsplit(found.value.url).path)
    # By keys alone.
    page.locator("#parts summary").focus(timeout=SOON_MS)
    page.keyboard.press("Enter")
    rows = page.locator("#parts tbody tr")
    expect(rows).to_have_count(PARTS, timeout=SOON_MS)
    views = within(looked, bounds, customer_id="acme", video_title="Sintel")
    truth = []
    for begin_ms in range(0, LENGTH_MS, LENGTH_MS // PARTS):
        end_ms = begin_ms + LENGTH_MS // PARTS
        played = [[one for one in view.playback_ranges if one[0] < end_ms and one[1] > begin_ms] for view in views]
        reached = sum(0 < view.max_playhead_ms >= begin_ms for view in views)
        truth.append([reached, sum(map(bool, played)), sum(map(len, played))])
    shown = [[number(text) for text in row[1:]] for row in texts(rows, "td")]
    assert shown == truth
    assert truth[0][0] > truth[-1][0] > 0
    expect(rows.nth(1).locator("th")).to_have_text("6.00 s")
    # Those of the third minute were watched again: so says the table, and the bars are amber.
    again = [plays > 1.2 * count for _, count, plays in truth]
    assert again == [2 * 60_000 <= part * LENGTH_MS // PARTS < 3 * 60_000 for part in range(PARTS)]
    assert [bool(tags) for tags in texts(rows, ".tag")] == again
    bars = page.locator(".retention span")
    assert bars.evaluate_all("(all) => all.map((one) => one.className === 'again')") == again
    expect(page.locator("main")).to_contain_text("Amber parts were watched again.")
    # Each name of a chart of a title says what it means.
    for name in ("Viewers at a time", "Retention", "Rebuffer percentage"):
        page.locator("h3, .chart").get_by_role("button", name=f"What {name} means").click()
        expect(page.get_by_role("note")).to_be_visible()
        page.keyboard.press("Escape")
    # Bars are shares, by an axis of shares; keys read each of them, and the pointer.
    expect(page.locator(".retention-values span")).to_have_text(["100%", "75%", "50%", "25%", "0%"])
    known = sum(view.max_playhead_ms > 0 for view in views)
    last = 100 * truth[-1][0] / known
    heights = bars.evaluate_all("(all) => all.map((one) => parseFloat(one.style.height))")
    assert heights[-1] == pytest.approx(last, abs=0.01)
    plot, read = page.locator(".retention"), page.locator("#retention-at")
    plot.focus()
    page.keyboard.press("End")
    expect(read).to_contain_text(f"% came so far ({truth[-1][0]} of {known})")
    assert number(read.inner_text().partition(": ")[2]) == pytest.approx(last / 100, rel=0.006)
    page.keyboard.press("ArrowLeft")
    expect(read).to_contain_text(f"({truth[-2][0]} of {known})")
    bars.nth(1).hover()
    expect(read).to_contain_text(f"({truth[1][0]} of {known})")
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert page.evaluate(TOO_WIDE, PHONE["width"]) == []
    assert inaccessible(page) == []
