"""The page of a running demo in a real Chromium, clicked through as a person does, beside the truth of its simulated players.

Every figure that is read from the page is counted again from the players' account (`truth.json`), which does not depend on how
beacons are folded. The demo must have compared, and no player may send anything meanwhile. Questions whose answer needs a month, or
many titles, are held against generated rows (`tests/integration/page`).
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from deploy.demo import accounts, addresses
from deploy.demo.comparing.compare import PERCENTILE_ERROR_MAX
from loadtest.incident import Incident
from shared.schemas.view import View
from tests.integration.page.looking import ONE_LOOK_MS, Seen, expect_rows, in_time, let_in, number, settled
from tests.integration.parts.browsing import SOON_MS, chromium, undisturbed
from tests.unit.query.recounting import FIGURES

#: All views of the demo are within it.
_RANGE: Final = "7d"
#: What a table calls the views without a value.
_UNKNOWN: Final = "(unknown)"
#: What a row must have and players do not tell: no figure here rests on it.
_UNTOLD: Final[dict[str, Any]] = {
    "schema_version": 1,
    "revision": 1,
    **dict.fromkeys(("day", "first_append_ms", "last_append_ms", "view_start_ms", "view_end_ms"), 0),
}
#: A figure is rounded to three digits where it is shown.
_ROUNDED: Final = 0.006
#: Below so many views the page shows no p95.
_P95_VIEWS_MIN: Final = 100


@dataclass(frozen=True)
class Told:
    """What the players know of their views."""

    views: list[View]
    incident: Incident

    def of(self, **fields: Any) -> list[View]:
        """The views with these values."""
        return [one for one in self.views if all(getattr(one, name) == value for name, value in fields.items())]

    def by(self, dimension: str, **fields: Any) -> Callable[[str], list[View]]:
        """The views of a row of a table, by its head."""
        return lambda head: self.of(**{dimension: None if head == _UNKNOWN else head}, **fields)


def hold(folder: Path, incident: Incident) -> None:
    """Holds the page of the demo in a folder against its players' truth."""
    found = _addresses(folder)
    url = found["PAGE"]
    told = Told(_told(folder / "truth.json"), incident)
    with (
        chromium() as browser,
        closing(let_in(browser, url, found["POSTGRES"], accounts.OWNER)) as context,
        undisturbed(context, url) as page,
    ):
        seen = Seen(page, url)
        for holds in (_now, _tables, _startup, _exits, _versions, _title, _viewer, _errors):
            holds(seen, told)


def _addresses(folder: Path) -> dict[str, str]:
    lines = (folder / addresses.FILE_NAME).read_text().splitlines()
    return dict(shlex.split(line)[1].split("=", 1) for line in lines)


def _told(truth: Path) -> list[View]:
    rows = json.loads(truth.read_text())["views"]
    assert rows
    fields = View.__struct_fields__
    return [View(**_UNTOLD, **{name: value for name, value in row.items() if name in fields}) for row in rows]


def _now(seen: Seen, told: Told) -> None:
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
        _is_near(failures.locator("b").inner_text(), "playback_failure_fraction", views)

    in_time(shows_the_cohort)


def _tables(seen: Seen, told: Told) -> None:
    """Rebuffering by CDN and by country, and by player version within the country that a click chooses."""
    seen.go("Explore", within=_RANGE)
    page = seen.page
    page.get_by_role("button", name="Table").click()
    expect_rows(_rows(seen, "cdn", "CDN"), told.by("cdn"), "rebuffer_fraction", least=4)
    expect_rows(_rows(seen, "country", "Country"), told.by("country"), "rebuffer_fraction", least=2)
    page.locator("#groups tbody").get_by_role("link", name="DE", exact=True).click()
    expect(page.locator(".chip")).to_contain_text("Country is DE", timeout=SOON_MS)
    rows = _rows(seen, "player_version", "Player version")
    expect_rows(rows, told.by("player_version", country="DE"), "rebuffer_fraction", least=3)


def _startup(seen: Seen, told: Told) -> None:
    """The median and the 95th percentile of the start-up time by country."""
    seen.go("Explore", within=_RANGE)
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
            _is_near(cells[0], metric, views, PERCENTILE_ERROR_MAX)
            shown += 1
    assert shown > len(rows)


def _exits(seen: Seen, told: Told) -> None:
    """The exits before the start by device and by browser."""
    seen.go("Explore", within=_RANGE)
    seen.page.locator("#metric").select_option("exit_before_start_fraction")
    seen.page.get_by_role("button", name="Table").click()
    for dimension, title in (("device", "Device"), ("browser", "Browser")):
        rows = _rows(seen, dimension, title, "exit_before_start_fraction")
        expect_rows(rows, told.by(dimension), "exit_before_start_fraction", least=5)


def _versions(seen: Seen, told: Told) -> None:
    """Two player versions beside each other: each has its line, and the table has their failures."""
    seen.go("Explore", within=_RANGE)
    page = seen.page
    page.locator("#metric").select_option("playback_failure_fraction")
    rows = _rows(seen, "player_version", "Player version", "playback_failure_fraction")
    expect_rows(rows, told.by("player_version"), "playback_failure_fraction", least=3)
    for version in {str(view.player_version) for view in told.views if view.player_version}:
        expect(page.locator(".chart .legend")).to_contain_text(version, timeout=SOON_MS)


def _title(seen: Seen, told: Told) -> None:
    """One title: how many views it has, and how they rebuffered."""
    views = told.of(customer_id="acme")
    ((video, title), _) = Counter((one.video_id, one.video_title) for one in views if one.video_title).most_common(1)[0]
    views = told.of(customer_id="acme", video_id=video)
    seen.go("Titles", customer="acme", within=_RANGE)
    page = seen.page
    page.locator("#titles").get_by_role("link", name=str(title), exact=True).click(timeout=SOON_MS)
    facts = page.locator("#title-figures li")
    expect(page.locator("main")).to_contain_text(f"n {len(views)} views", timeout=SOON_MS)
    for name, metric in (
        ("Rebuffer percentage", "rebuffer_fraction"),
        ("Playback failures", "playback_failure_fraction"),
    ):
        _is_near(facts.filter(has_text=name).locator("b").inner_text(), metric, views)


def _viewer(seen: Seen, told: Told) -> None:
    """One viewer's view, found by the viewer's id: its stalls, and when they were."""
    view = max(told.of(customer_id="acme", source="mux"), key=lambda one: one.rebuffer_count)
    assert view.rebuffer_count > 1
    seen.go("Views", customer="acme", within=_RANGE)
    page = seen.page
    page.locator("#search input[name=viewer]").fill(str(view.viewer_id))
    page.get_by_role("button", name="Search").click()
    row = page.locator("#views tbody tr", has=page.get_by_title(view.view_id))
    expect(page.locator("#views tbody tr")).to_have_count(1, timeout=SOON_MS)
    row.get_by_role("link").first.click()
    stalls = page.locator("#view-facts div", has_text="Rebuffering").locator("dd")
    expect(stalls).to_have_text(re.compile(rf"^{view.rebuffer_count} × · "), timeout=SOON_MS)
    assert number(stalls.inner_text().split("· ")[1]) == pytest.approx(view.rebuffer_ms, rel=_ROUNDED)
    states = page.locator("#view-life svg").first.get_attribute("aria-label") or ""
    drawn = [number(text) or 0 for text in re.findall(r"rebuffering ([^,]+)", states)]
    assert len(drawn) == view.rebuffer_count
    assert sum(drawn) == pytest.approx(view.rebuffer_ms, rel=_ROUNDED)


def _errors(seen: Seen, told: Told) -> None:
    """The list of errors: how many views have each."""
    seen.go("Errors", within=_RANGE)
    rows = seen.page.locator("#errors tbody tr")
    codes = Counter(view.error_code for view in told.views if view.error_code)
    expect(rows).to_have_count(len(codes), timeout=SOON_MS)
    shown = {row.locator("th a").inner_text(): number(row.locator("td").first.inner_text()) for row in rows.all()}
    assert shown == codes
    for row in rows.all():
        share = row.locator("td").nth(1).inner_text()
        assert number(share) == pytest.approx(codes[row.locator("th a").inner_text()] / len(told.views), rel=_ROUNDED)
        assert share.endswith(f"n {len(told.views)}")


def _rows(seen: Seen, dimension: str, title: str, metric: str = "rebuffer_fraction") -> dict[str, list[str]]:
    """The rows of Explore by a dimension that is chosen, once they are those of this metric."""
    page = seen.page
    page.locator("#by").select_option(dimension, timeout=SOON_MS)
    expect(page.locator("#groups thead th").first).to_have_text(title, timeout=SOON_MS)
    assert seen.asked["/v1/breakdown"]["metrics"] == [metric]
    return seen.rows("#groups")


def _is_near(text: str, metric: str, views: list[View], error: float = 0) -> None:
    truth = FIGURES[metric](views)
    assert number(text) == pytest.approx(truth, rel=_ROUNDED + error, abs=6e-5), (metric, text, truth)
