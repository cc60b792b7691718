"""Explore: metrics by dimensions, in tables and as lines."""

import re
from typing import Final

import pytest
from playwright.sync_api import expect

from deploy.demo.comparing.compare import PERCENTILE_ERROR_MAX
from shared.schemas.view import View
from tests.integration.deploy.demo_page.told import RANGE, UNKNOWN, Told, is_near, value_of
from tests.integration.page.parts.looking import Seen, expect_rows, number
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import FIGURES

#: Below so many views the page shows no p95.
_P95_VIEWS_MIN: Final = 100
#: A score has one digit after the point.
_SCORE_ROUNDED: Final = 0.06


def tables(seen: Seen, told: Told) -> None:
    """Rebuffering by CDN and by country, and by player version within the country that a click chooses."""
    seen.go("Explore", within=RANGE)
    page = seen.page
    page.get_by_role("button", name="Table").click()
    expect_rows(_rows(seen, "cdn", "CDN"), told.by("cdn"), "rebuffer_fraction", least=4)
    expect_rows(_rows(seen, "country", "Country"), told.by("country"), "rebuffer_fraction", least=2)
    page.locator("#groups tbody").get_by_role("link", name="DE", exact=True).click()
    expect(page.locator(".chip")).to_contain_text("Country is DE", timeout=SOON_MS)
    rows = _rows(seen, "player_version", "Player version")
    expect_rows(rows, told.by("player_version", country="DE"), "rebuffer_fraction", least=3)


def startup(seen: Seen, told: Told) -> None:
    """The median and the 95th percentile of the start-up time by country."""
    seen.go("Explore", within=RANGE)
    shown = 0
    for metric in ("startup_ms_p50", "startup_ms_p95"):
        seen.page.locator("#metric").select_option(metric)
        seen.page.get_by_role("button", name="Table").click()
        rows = _rows(seen, "country", "Country", metric)
        assert rows.keys() == {str(view.country) for view in told.views}
        for country, cells in rows.items():
            views = [view for view in told.of(country=country) if view.startup_ms is not None]
            assert number(cells[2]) == len(views), (metric, country)
            if metric.endswith("p95") and len(views) < _P95_VIEWS_MIN:
                assert number(cells[0]) is None
                continue
            is_near(cells[0], metric, views, PERCENTILE_ERROR_MAX)
            shown += 1
    assert shown > len(rows)


def exits(seen: Seen, told: Told) -> None:
    """The exits before the start by device and by browser."""
    seen.go("Explore", within=RANGE)
    seen.page.locator("#metric").select_option("exit_before_start_fraction")
    seen.page.get_by_role("button", name="Table").click()
    for dimension, title in (("device", "Device"), ("browser", "Browser")):
        rows = _rows(seen, dimension, title, "exit_before_start_fraction")
        expect_rows(rows, told.by(dimension), "exit_before_start_fraction", least=5)


def versions(seen: Seen, told: Told) -> None:
    """Two player versions beside each other: each has its line, and the table has their failures."""
    seen.go("Explore", within=RANGE)
    page = seen.page
    page.locator("#metric").select_option("playback_failure_fraction")
    rows = _rows(seen, "player_version", "Player version", "playback_failure_fraction")
    expect_rows(rows, told.by("player_version"), "playback_failure_fraction", least=3)
    for version in {str(view.player_version) for view in told.views if view.player_version}:
        expect(page.locator(".chart .legend")).to_contain_text(version, timeout=SOON_MS)


def titles_by_cdn(seen: Seen, told: Told) -> None:
    """Titles and CDNs at once: a ratio and a count of each cell, and with the rest all views."""
    seen.go("Explore", within=RANGE)
    page = seen.page
    page.get_by_role("button", name="Table").click()
    page.locator("#by").select_option("video_title", timeout=SOON_MS)
    page.locator("#by-second").select_option("cdn")
    expect(page.locator("#groups thead th").nth(1)).to_have_text("CDN", timeout=SOON_MS)
    cells = all_rows(seen)

    def of(head: str) -> list[View]:
        title, cdn = head.split(" / ")
        return told.of(video_title=value_of(title), cdn=value_of(cdn))

    assert set(cells) == {f"{view.video_title or UNKNOWN} / {view.cdn or UNKNOWN}" for view in told.views}
    expect_rows(cells, of, "rebuffer_fraction", least=len(told.incident.cohort))
    assert sum(number(figures[1]) or 0 for figures in cells.values()) == len(told.views)


def score(seen: Seen, told: Told) -> None:
    """The overall experience score, and that of each CDN."""
    seen.go("Explore", within=RANGE)
    page = seen.page
    page.locator("#metric").select_option("experience_score", timeout=SOON_MS)
    value = page.locator("#overall .value")
    # A number alone: no share, as of the metric before.
    expect(value).to_have_text(re.compile(r"^\d+(\.\d+)?$"), timeout=SOON_MS)
    shown = {"all": value.inner_text()}
    page.get_by_role("button", name="Table").click()
    shown |= {cdn: cells[0] for cdn, cells in _rows(seen, "cdn", "CDN", "experience_score").items()}
    views = {"all": told.views} | {cdn or UNKNOWN: told.of(cdn=cdn) for cdn in {view.cdn for view in told.views}}
    assert shown.keys() == views.keys()
    for cdn, of_cdn in views.items():
        assert number(shown[cdn]) == pytest.approx(FIGURES["experience_score"](of_cdn), abs=_SCORE_ROUNDED), cdn


def all_rows(seen: Seen) -> dict[str, list[str]]:
    """The rows of a table of Explore, once a click has brought those that it left out."""
    more, rows = seen.page.locator("#more-rows"), seen.page.locator("#groups tbody tr")
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    while more.count():
        before = rows.count()
        more.click()
        expect(rows).not_to_have_count(before, timeout=SOON_MS)
        expect(seen.page.locator("#more-rows[disabled]")).to_have_count(0, timeout=SOON_MS)
    return seen.rows("#groups")


def _rows(seen: Seen, dimension: str, title: str, metric: str = "rebuffer_fraction") -> dict[str, list[str]]:
    """The rows of Explore by a dimension that is chosen, once they are those of this metric."""
    page = seen.page
    page.locator("#by").select_option(dimension, timeout=SOON_MS)
    expect(page.locator("#groups thead th").first).to_have_text(title, timeout=SOON_MS)
    assert seen.asked["/v1/breakdown"]["metrics"] == [metric]
    return seen.rows("#groups")
