"""Titles: one of them, those that rebuffer most, and how many watched each at a time."""

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Final

from playwright.sync_api import expect

from loadtest.playing import CMCD_DELAY_MS_MAX
from shared.schemas.view import View
from tests.integration.deploy.demo_page.explore import all_rows
from tests.integration.deploy.demo_page.told import RANGE, UNKNOWN, Told, is_near
from tests.integration.page.parts.looking import Seen, expect_rows, number
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import FIGURES

#: So much later than they are a view's begin and end may be known: a beacon dates from when it comes, if its client says no time of
#: sending. The POST may wait so long to leave, and then takes its time.
_LATE_MS: Final = CMCD_DELAY_MS_MAX + 1_500
#: So much sooner than the last beacon was emitted a view may end: a request's record dates from the request's begin.
_EARLY_MS: Final = 820


def one(seen: Seen, told: Told) -> None:
    """One title: how many views it has, and how they rebuffered."""
    views = told.of(customer_id="acme")
    ((video, title), _) = Counter((one.video_id, one.video_title) for one in views if one.video_title).most_common(1)[0]
    views = told.of(customer_id="acme", video_id=video)
    seen.go("Titles", customer="acme", within=RANGE)
    page = seen.page
    page.locator("#titles").get_by_role("link", name=str(title), exact=True).click(timeout=SOON_MS)
    facts = page.locator("#title-figures li")
    expect(page.locator("main")).to_contain_text(f"n {len(views)} views", timeout=SOON_MS)
    for name, metric in (
        ("Rebuffer percentage", "rebuffer_fraction"),
        ("Playback failures", "playback_failure_fraction"),
    ):
        is_near(facts.filter(has_text=name).locator("b").inner_text(), metric, views)


def most_rebuffering(seen: Seen, told: Told) -> None:
    """Which titles rebuffer most, and more than the week before: of that the page says that there is nothing."""
    seen.go("Explore", within=RANGE)
    page, heads = seen.page, seen.page.locator("#groups thead")
    page.locator("#by").select_option("video_title", timeout=SOON_MS)
    page.locator("#compare").select_option("previous")
    page.get_by_role("button", name="Table").click()
    expect(heads).to_contain_text("Before", timeout=SOON_MS)
    heads.get_by_role("button", name="Rebuffer percentage").click()
    expect(heads.locator("th[aria-sort]")).to_contain_text("Rebuffer percentage", timeout=SOON_MS)
    known = {view.video_title for view in told.views} - {None}
    shares = {str(title): FIGURES["rebuffer_fraction"](told.of(video_title=title)) for title in known}
    ordered = sorted(shares, key=lambda title: -shares[title])
    expect(page.locator("#groups tbody th").first).to_have_text(ordered[0], timeout=SOON_MS)
    rows = all_rows(seen)
    assert [title for title in rows if title != UNKNOWN] == ordered
    expect_rows(rows, told.by("video_title"), "rebuffer_fraction", least=5)
    # Before, and the change.
    assert {tuple(cells[2:]) for cells in rows.values()} == {("– n 0", "–")}


def at_a_time(seen: Seen, told: Told) -> None:
    """The most viewers of a title at a time, for the titles with the most.

    They are no more than there were between each player's begin and leaving, and no fewer than between its begin and its last
    beacon: what comes after that nobody knows of. Both begin and end are known within `_LATE_MS` and `_EARLY_MS`.
    """
    by_video = {
        video: told.of(customer_id="acme", video_id=video) for video in {str(view.video_id) for view in told.views}
    }
    least = {video: _most_at_once(_known(view) for view in views) for video, views in by_video.items()}
    most = {video: _most_at_once(_there(view, told) for view in views) for video, views in by_video.items()}
    seen.go("Titles", customer="acme", within=RANGE)
    lines = seen.page.locator(".chart").first.locator(".legend li")
    expect(lines).to_have_count(5, timeout=SOON_MS)
    shown = {}
    for line in lines.all():
        title = line.get_by_role("link").inner_text()
        video = title.lower().replace(" ", "-")
        n, peak = (number(text.split()[1]) for text in line.locator(".note").inner_text().split(" · "))
        # A view of one moment was never open.
        assert n == sum(view.view_start_ms < view.view_end_ms for view in by_video[video]), title
        assert peak is not None
        assert least[video] <= peak <= most[video], (title, least[video], peak, most[video])
        shown[video] = peak
    # The highest are listed, and first.
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert max(least[video] for video in by_video.keys() - shown.keys()) <= min(shown.values())
    assert sum(most[video] - least[video] for video in shown) < sum(shown.values()) / 2


def _known(view: View) -> tuple[int, int]:
    return view.view_start_ms + _LATE_MS, view.view_end_ms - _EARLY_MS


def _there(view: View, told: Told) -> tuple[int, int]:
    return view.view_start_ms, told.left_ms[view.view_id] + _LATE_MS


def _most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """How many spans have a moment in common at most. A span without length has none."""
    found = [(begin, end) for begin, end in spans if begin < end]
    # What ends at a moment is gone when another one begins.
    changes = sorted([(begin, 1) for begin, _ in found] + [(end, -1) for _, end in found])
    return max(itertools.accumulate((change for _, change in changes), initial=0))
