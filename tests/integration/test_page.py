"""Everyday questions of people who run video, each answered by clicks in a real browser, beside the truth of the views."""

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import psycopg
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pyarrow import csv, parquet

from deploy.local.paths import PLAYERS
from services.accounts.commands import login_link, make_tenant
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.view import View
from shared.topics import BEACONS, LIVE, REJECTED
from tests.integration import page_alerts, page_settings
from tests.integration.brokers import broker_with_topics
from tests.integration.dashboard_parts import WATCHER
from tests.integration.page_parts import (
    CHROMIUM_ARGS,
    LONG_TITLE,
    SOON_MS,
    Looked,
    arrives,
    looked_at,
    viewers_at,
    watch_now,
    watched_before,
    watched_by_many_customers,
)
from tests.integration.page_views import BROWSERS, INCIDENT, NEW_ERROR, TITLES, VERSIONS, VIEWER
from tests.unit.query.recounting import DAY_MS, FIGURES, HOUR_MS, counts_at

pytestmark = pytest.mark.integration

ZONE: Final = "Europe/Berlin"
PHONE: Final = {"width": 390, "height": 844}
SCREENS: Final = (
    *("", "explore", "errors", "views", "titles", "view?customer=acme&view=view-of-x", "alerts", "settings"),
    *("integration", "integration?customer=acme", *page_settings.SCREENS),
)
#: What reaches beyond the screen.
_TOO_WIDE: Final = """(width) => document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll("main *")]
    .filter((one) => one.getBoundingClientRect().right > width && !one.closest(".scroll"))
    .map((one) => one.outerHTML.slice(0, 80))"""
_UNITS: Final = {"%": 0.01, "ms": 1.0, "s": 1_000.0, "min": 60_000.0, "Mbps": 1e6, "": 1.0}


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    folder = tmp_path_factory.mktemp("page")
    with broker_with_topics(folder / "broker", [LIVE, BEACONS, REJECTED]) as broker, looked_at(folder, broker) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_ARGS)
        yield chromium
        chromium.close()


def logged_in(browser: Browser, looked: Looked, email: str) -> BrowserContext:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, timezone_id=ZONE)
    opened = context.new_page()
    link = login_link(looked.installation.postgres.dsn, email)
    opened.goto(f"{looked.url}login#{link}")
    expect(opened.locator("#account")).to_contain_text(email, timeout=SOON_MS)
    opened.close()
    return context


@pytest.fixture(scope="module")
def context(browser: Browser, looked: Looked) -> Iterator[BrowserContext]:
    made = logged_in(browser, looked, WATCHER)
    yield made
    made.close()


class Seen:
    """A page, and what it asked the API last, by path."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.asked: dict[str, dict[str, list[str]]] = {}
        page.on("request", self._note)

    def open(self, address: str) -> None:
        self.page.goto(self.url + address)

    def range(self, path: str) -> tuple[int, int]:
        """The range of the last question at this path, ms."""
        parameters = self.asked[path]
        return int(parameters["from"][0]), int(parameters["to"][0])

    def rows(self, table: str) -> dict[str, list[str]]:
        """The cells of a table by the text of the row's heads, once it is drawn."""
        rows = self.page.locator(f"{table} tbody tr")
        expect(rows.first).to_be_visible(timeout=SOON_MS)
        return {
            " / ".join(row.locator("th").all_inner_texts()).strip(): row.locator("td").all_inner_texts()
            for row in rows.all()
        }

    def _note(self, request: Any) -> None:
        parts = urlsplit(request.url)
        self.asked[parts.path] = parse_qs(parts.query)


@pytest.fixture
def seen(context: BrowserContext, looked: Looked) -> Iterator[Seen]:
    """A page; a test fails when it logs an error or asks anybody else for anything."""
    page = context.new_page()
    errors: list[str] = []
    strangers: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: strangers.append(request.url) if looked.url not in request.url else None)
    yield Seen(page, looked.url)
    page.close()
    assert errors == []
    assert strangers == []


def within(looked: Looked, bounds: tuple[int, int], **fields: Any) -> list[View]:
    """The views that count in a range and have these fields."""
    return [
        view
        for view in looked.views
        if bounds[0] <= counts_at(view) < bounds[1]
        and all(getattr(view, name) == value for name, value in fields.items())
    ]


def number(text: str) -> float | None:
    """A figure as the page words it."""
    found = re.match(r"([\d,.]+)\s*(%|ms|s|min|Mbps)?", text)
    return None if found is None else float(found[1].replace(",", "")) * _UNITS[found[2] or ""]


def expect_rows(
    rows: dict[str, list[str]], of: Callable[[str], list[View]], metric: str, *, n_column: int = 1, least: int = 1
) -> None:
    """Holds the first cell of each row, and its n, against the views that the row's head names."""
    assert len(rows) >= least
    for head, cells in rows.items():
        views = of(head)
        truth = FIGURES[metric](views)
        found = number(cells[0])
        assert found == pytest.approx(truth, rel=0.006, abs=6e-5), (head, cells, truth)
        assert number(cells[n_column]) == len(views), (head, cells)


def test_what_is_wrong_now_and_where(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    fastly = page.locator("#slice-cdn tbody tr", has_text="fastly")
    expect(fastly.locator("td").nth(1)).to_have_text("35.0%", timeout=SOON_MS)
    suspect = page.locator(".suspects[data-metric=rebuffer_fraction] tbody tr").first
    expect(suspect).to_contain_text("CDN fastly", timeout=SOON_MS)
    expect(suspect).to_contain_text("Player version 2.4.0")
    suspect.get_by_role("link").click()
    chips = page.locator(".chip").all_inner_texts()
    assert {"CDN is fastly", "Player version is 2.4.0"} <= {chip.split("\n")[0].strip(" ×") for chip in chips}
    named = {key: value for key, value in INCIDENT.items() if any(str(value) in chip for chip in chips)}
    fact = page.locator("#finished li").first
    cohort = within(looked, seen.range("/v1/overall"), customer_id="acme", **named)
    expect(fact).to_contain_text(f"n {len(cohort)}", timeout=SOON_MS)
    shown = number(fact.locator("b").inner_text())
    assert shown == pytest.approx(FIGURES["rebuffer_fraction"](cohort), rel=0.006)
    # One CDN, by one click on its slice, and back.
    page.go_back()
    fastly.get_by_role("link", name="fastly").click()
    expect(page.locator("#tile-viewers .value")).to_have_text("200", timeout=SOON_MS)
    page.go_back()
    expect(page.locator("#tile-viewers .value")).to_have_text("800", timeout=SOON_MS)


def test_viewers_of_the_last_day_by_minute_and_by_five_seconds_near_now(seen: Seen, looked: Looked) -> None:
    watched_before(looked.installation)
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page

    def first_and_last(back: str) -> tuple[str, str]:
        with page.expect_response(re.compile("/v1/live/history")):
            page.locator("#back").get_by_role("button", name=back, exact=True).click(timeout=SOON_MS)
        plot = page.locator(".chart .plot").first
        expect(plot).to_have_attribute("aria-label", re.compile(f"the last {back}"), timeout=SOON_MS)
        read = []
        for key in ("Home", "End"):
            plot.focus()
            page.keyboard.press(key)
            read.append(page.locator(".chart .legend b").first.inner_text())
        return read[0], read[1]

    def minute_of_answer() -> int:
        return int(seen.asked["/v1/live/history"]["from_ms"][0]) // 60_000

    first, last = first_and_last("24 h")
    assert (first, last) == (str(viewers_at(minute_of_answer())), "800")
    assert seen.asked["/v1/live/history"]["step_ms"] == ["60000"]
    first, last = first_and_last("1 h")
    assert (first, last) == (str(viewers_at(minute_of_answer())), "800")
    assert seen.asked["/v1/live/history"]["step_ms"] == ["5000"]
    # The same of one slice, by one click.
    page.locator("#slice-cdn").get_by_role("link", name="fastly").click()
    expect(page.locator("#tile-viewers .value")).to_have_text("200", timeout=SOON_MS)
    first, last = first_and_last("6 h")
    assert (first, last) == (str(round(viewers_at(minute_of_answer()) * 0.25)), "200")
    page.locator("#customer").select_option("*")
    expect(page.locator("#one-customer")).to_be_visible(timeout=SOON_MS)


def test_a_start_up_time_of_several_clients_says_so_and_shows_each_alone(seen: Seen, looked: Looked) -> None:
    seen.open("explore?customer=acme&metrics=startup_ms_p50&range=7d")
    notice = seen.page.locator("#mixed-clients")
    expect(notice).to_contain_text("Start-up times of 2 clients are in this figure", timeout=SOON_MS)
    bounds = seen.range("/v1/breakdown")
    for line in notice.locator("li").all():
        source = line.get_by_role("link").inner_text()
        views = within(looked, bounds, customer_id="acme", source=source)
        shown = number(line.locator("b").inner_text())
        assert shown == pytest.approx(FIGURES["startup_ms_p50"](views), rel=0.006), source
    notice.get_by_role("link", name="cmcd").click()
    expect(seen.page.locator(".chip")).to_contain_text("cmcd", timeout=SOON_MS)
    expect(notice).to_have_count(0, timeout=SOON_MS)


def test_which_titles_rebuffer_most_this_week_against_last(seen: Seen, looked: Looked) -> None:
    seen.open("explore")
    page = seen.page
    page.locator("#range").select_option("7d")
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
        assert number(cells[2]) == pytest.approx(FIGURES["rebuffer_fraction"](before), rel=0.006, abs=6e-5)


def test_startup_by_country_over_thirty_days(seen: Seen, looked: Looked) -> None:
    for metric in ("startup_ms_p50", "startup_ms_p95"):
        seen.open(f"explore?range=30d&metrics={metric}&as=table")
        seen.page.locator("#by").select_option("country")
        rows = {head: cells for head, cells in seen.rows("#groups").items() if head in {"DE", "FR", "US", "BR"}}
        bounds = seen.range("/v1/breakdown")
        assert len(rows) == 4
        for country, cells in rows.items():
            views = within(looked, bounds, country=country)
            assert number(cells[0]) == pytest.approx(FIGURES[metric](views), rel=0.006)
            assert number(cells[2]) == sum(view.startup_ms is not None for view in views)


def test_exits_before_start_by_browser(seen: Seen, looked: Looked) -> None:
    seen.open("explore?range=30d&as=table")
    seen.page.locator("#metric").select_option("exit_before_start_fraction", timeout=SOON_MS)
    seen.page.locator("#by").select_option("browser")
    rows = {head: cells for head, cells in seen.rows("#groups").items() if head in BROWSERS}
    bounds = seen.range("/v1/breakdown")
    expect_rows(rows, lambda name: within(looked, bounds, browser=name), "exit_before_start_fraction", least=3)


def test_two_player_versions_beside_each_other(seen: Seen, looked: Looked) -> None:
    seen.open("explore?range=7d&metrics=playback_failure_fraction")
    page = seen.page
    page.locator("#by").select_option("player_version", timeout=SOON_MS)
    expect(page.locator(".chart .legend")).to_contain_text("2.4.0", timeout=SOON_MS)
    rows = {head: cells for head, cells in seen.rows("#groups").items() if head in VERSIONS}
    bounds = seen.range("/v1/breakdown")
    expect_rows(rows, lambda name: within(looked, bounds, player_version=name), "playback_failure_fraction", least=2)
    # The arrow keys read figures from the chart.
    page.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".chart .legend")).to_contain_text("n ")
    page.get_by_role("button", name="Small multiples").click()
    expect(page.locator("#multiples .plot")).to_have_count(len(VERSIONS) + 1, timeout=SOON_MS)
    page.locator("#multiples").get_by_role("link", name="2.4.0").click()
    expect(page.locator(".chip")).to_contain_text("Player version is 2.4.0")


def test_title_and_cdn_at_once(seen: Seen, looked: Looked) -> None:
    seen.open("explore?range=30d")
    page = seen.page
    page.locator("#by").select_option("video_title", timeout=SOON_MS)
    page.locator("#by-second").select_option("cdn")
    expect(page.locator("#groups thead th").nth(1)).to_have_text("CDN", timeout=SOON_MS)
    rows = {head: cells for head, cells in seen.rows("#groups").items() if "(" not in head}
    bounds = seen.range("/v1/breakdown")

    def of(head: str) -> list[View]:
        title, cdn = head.split(" / ")
        return within(looked, bounds, video_title=title, cdn=cdn)

    expect_rows(rows, of, "rebuffer_fraction", least=10)
    # The number of views leads to them.
    first = next(head for head in rows)
    page.locator("#groups tbody tr").first.locator("td").nth(1).get_by_role("link").click()
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#views tbody tr").first).to_contain_text(first.split(" / ")[0])
    page.go_back()
    # A click on a cell's head narrows to it.
    page.locator("#groups tbody tr").first.get_by_role("link").nth(1).click()
    expect(page.locator(".chip")).to_have_count(1)


def test_the_experience_score_and_the_number_in_ones_own_tool(seen: Seen, looked: Looked) -> None:
    seen.open("explore?customer=acme&range=30d&metrics=experience_score")
    value = seen.page.locator("#overall .value")
    expect(value).to_have_text(re.compile(r"\d"), timeout=SOON_MS)
    bounds = seen.range("/v1/overall")
    truth = FIGURES["experience_score"](within(looked, bounds, customer_id="acme"))
    assert float(value.inner_text()) == pytest.approx(truth, abs=0.06)
    request = urllib.request.Request(
        f"{looked.url}v1/overall?customer=acme&metrics=experience_score&from={bounds[0]}&to={bounds[1]}",
        headers={"Authorization": f"Bearer {looked.installation.token}"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        found = json.load(answer)
    assert found["metrics"]["experience_score"]["value"] == pytest.approx(truth)


def test_what_happened_to_a_viewer_at_an_hour(seen: Seen, looked: Looked) -> None:
    seen.open("views?customer=acme&range=7d")
    page = seen.page
    page.locator("#search input[name=viewer]").fill(VIEWER)
    page.get_by_role("button", name="Search").click()
    row = page.locator("#views tbody tr")
    expect(row).to_have_count(1, timeout=SOON_MS)
    expect(row).to_contain_text("MEDIA_ERR_NETWORK")
    row.get_by_role("link").click()
    expect(page.locator("#view-title")).to_contain_text("Cup final · mux · ended with an error", timeout=SOON_MS)
    life = page.locator("#view-life svg").first
    expect(life).to_have_attribute("aria-label", re.compile("rebuffering 8.00 s, playing 22.0 s, rebuffering 5.00 s"))
    expect(page.locator("#view-facts")).to_contain_text("2 × · 13.0 s (13.7%)")
    expect(page.locator("#view-facts")).to_contain_text("MEDIA_ERR_NETWORK: the segment never came")


def test_which_errors_are_new_since_a_release(seen: Seen, looked: Looked) -> None:
    seen.open(f"errors?customer=acme&range=7d&since={looked.now_ms - HOUR_MS}")
    rows = seen.page.locator("#errors tbody tr")
    new = rows.filter(has=seen.page.locator(".tag"))
    expect(new).to_have_count(1, timeout=SOON_MS)
    expect(new).to_contain_text(NEW_ERROR)
    bounds = seen.range("/v1/errors")
    codes = [view.error_code for view in within(looked, bounds, customer_id="acme") if view.error_code]
    shown = {row.locator("th a").inner_text(): row.locator("td").first.inner_text() for row in rows.all()}
    assert shown == {code: str(codes.count(code)) for code in set(codes)}
    new.get_by_role("link", name=NEW_ERROR).click()
    expect(seen.page.locator("#views tbody tr")).to_have_count(codes.count(NEW_ERROR), timeout=SOON_MS)


def test_viewers_at_a_time_of_yesterdays_match(seen: Seen, looked: Looked) -> None:
    seen.open("titles?customer=acme&range=24h")
    page = seen.page
    # Yesterday, by the clocks of the zone.
    today = datetime.fromtimestamp(looked.now_ms / 1_000, ZoneInfo(ZONE)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    page.locator("#range").select_option("own", timeout=SOON_MS)
    page.locator("#from").fill((today - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M"))
    page.locator("#to").fill(today.strftime("%Y-%m-%dT%H:%M"))
    page.locator("#to").press("Enter")
    with page.expect_response(re.compile("/v1/titles/id")) as found:
        page.locator("#titles").get_by_role("link", name=TITLES[0]).click(timeout=SOON_MS)
    expect(page.locator("#title-name")).to_contain_text(TITLES[0], timeout=SOON_MS)
    path = urlsplit(found.value.url).path
    assert seen.range(path)[0] == round((today - timedelta(days=1)).timestamp() * 1_000)
    times = [one["at_ms"] for one in found.value.json()["concurrency"]]
    match = [view for view in looked.views if view.customer_id == "acme" and view.video_title == TITLES[0]]
    audience = [sum(view.view_start_ms <= at < counts_at(view) for view in match) for at in times]
    assert max(audience) >= 3
    heading = page.get_by_role("heading", name="Viewers at a time: most")
    peak = datetime.fromtimestamp(times[audience.index(max(audience))] / 1_000, ZoneInfo(ZONE))
    expect(heading).to_contain_text(f"most {max(audience)} at {peak.day} {peak:%b, %H:%M}")
    # The arrow keys read the curve.
    curve = page.locator(".chart").first
    curve.locator(".plot").focus()
    for count in audience[:4]:
        page.keyboard.press("ArrowRight")
        expect(curve.locator(".legend b")).to_have_text(str(count))
    expect(curve.locator("figcaption")).to_contain_text(
        f"{datetime.fromtimestamp(times[3] / 1_000, ZoneInfo(ZONE)):%H:%M}"
    )
    assert page.locator(".chart").count() == 4


def test_an_alert_above_two_percent_in_one_cdn_for_five_minutes(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    page.locator("#slice-cdn").get_by_role("link", name="fastly").click(timeout=SOON_MS)
    page.locator("#finished").get_by_role("link", name="Rebuffer percentage").click(timeout=SOON_MS)
    page.get_by_role("link", name="Alert on it").click(timeout=SOON_MS)
    expect(page.locator("#rule-where")).to_contain_text("Within: cdn fastly", timeout=SOON_MS)
    form = page.locator("#new-rule")
    form.locator("input[name=name]").fill("Fastly waits")
    form.get_by_label("Figure (percent)").fill("2")
    form.get_by_label("For seconds").fill("300")
    form.get_by_role("button", name="Save").click()
    row = page.locator("#rules tbody tr", has_text="Fastly waits")
    expect(row).to_contain_text("Viewers rebuffering above 2.00 % for 5.0 min (cdn fastly)", timeout=SOON_MS)
    # What the alerting application gets.
    with psycopg.connect(looked.installation.postgres.dsn) as connection:
        found = connection.execute("SELECT body::text FROM alerts.rules WHERE deleted_at IS NULL").fetchall()
    (rule,) = [rule for (text,) in found if (rule := json.loads(text))["name"] == "Fastly waits"]
    wanted = {"customer": "acme", "metric": "rebuffering", "condition": "threshold", "direction": "above"}
    assert wanted.items() <= rule.items()
    assert (rule["threshold"], rule["for_seconds"], rule["filter"]) == (0.02, 300, {"cdn": "fastly"})


@pytest.mark.parametrize("form", ["CSV", "Parquet"])
def test_views_come_as_a_file(seen: Seen, looked: Looked, form: str) -> None:
    seen.open("views?customer=acme&range=24h")
    expect(seen.page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)
    truth = {view.view_id for view in within(looked, seen.range("/v1/views"), customer_id="acme")}
    with seen.page.expect_download(timeout=2 * SOON_MS) as download:
        seen.page.locator(".export").get_by_role("button", name=form).click()
    file = download.value.path()
    found = csv.read_csv(file) if form == "CSV" else parquet.read_table(file)
    assert set(found["view_id"].to_pylist()) == truth


def test_a_login_for_one_team_sees_its_customer_alone(browser: Browser, looked: Looked) -> None:
    make_tenant(
        looked.installation.postgres.dsn, organisation="Globex", email="a@globex.example", customers=("globex",)
    )
    context = logged_in(browser, looked, "a@globex.example")
    try:
        seen = Seen(context.new_page(), looked.url)
        seen.open("explore?range=30d&metrics=views&as=table")
        seen.page.locator("#by").select_option("customer", timeout=SOON_MS)
        rows = seen.rows("#groups")
        assert list(rows) == ["globex"]
        assert number(rows["globex"][0]) == len(within(looked, seen.range("/v1/breakdown"), customer_id="globex"))
        expect(seen.page.locator("#customer option")).to_have_text(["All customers", "globex"], timeout=SOON_MS)
        seen.open("explore?customer=acme")
        expect(seen.page.locator("main .notice").first).to_contain_text("no such customer", timeout=SOON_MS)
    finally:
        context.close()


def test_a_new_customer_is_led_to_its_first_beacon_and_sees_what_is_rejected(seen: Seen, looked: Looked) -> None:
    seen.open("")
    page = seen.page
    page.get_by_role("link", name="Integration").click(timeout=SOON_MS)
    page.locator("#choose-customer input").fill("fresh")
    page.get_by_role("button", name="Show its beacons").click()
    expect(page.locator("#verdict")).to_contain_text("No beacon in the last 10 minutes", timeout=SOON_MS)
    page.locator("#player").select_option("hls.js")
    page.locator("#collector").fill("collect.example.com")
    page.locator("#collector").press("Enter")
    expect(page.locator("#snippet")).to_contain_text("https://collect.example.com/cmcd/fresh")
    expect(page.locator("#none-finished")).to_be_visible(timeout=SOON_MS)
    # The first beacon shows as it comes; another customer's does not.
    arrives(looked.installation, "fresh", "view-1")
    arrives(looked.installation, "acme", "view-2")
    expect(page.locator("#verdict")).to_contain_text("Beacons arrive. The last one, playing by mux", timeout=SOON_MS)
    expect(page.locator("#beacons tbody tr")).to_have_count(1)
    expect(page.locator("#beacons")).to_contain_text("view-1")
    arrives(looked.installation, "fresh", "view-1", reason="invalid", detail="event is none that is known")
    arrives(looked.installation, "", "", reason="unknown_customer", detail="no key freshh")
    rejected = page.locator("#rejected tbody tr")
    expect(rejected).to_have_count(1, timeout=SOON_MS)
    expect(rejected).to_contain_text("event is none that is known")
    expect(page.locator("#nobodys")).to_contain_text("no key freshh")
    expect(page.locator("#verdict")).to_contain_text("1 of its inputs were rejected")
    # What finished views do not say.
    seen.open("integration?customer=acme")
    row = page.locator("#missing tbody tr", has_text="CDN")
    expect(row).to_contain_text("100.0%", timeout=SOON_MS)


def test_a_link_shows_a_colleague_the_same_and_back_undoes_a_step(seen: Seen, context: BrowserContext) -> None:
    seen.open("explore?range=30d&metrics=startup_ms_p50&as=table")
    page = seen.page
    page.locator("#by").select_option("country", timeout=SOON_MS)
    page.locator("#add-filter").click()
    page.locator("#filter-dimension").select_option("cdn")
    page.locator("#filter-value").fill("fastly | akamai")
    page.locator("#filter-value").press("Enter")
    expect(page.locator(".chip")).to_contain_text("CDN is fastly or akamai")
    page.locator("#tz").fill("Asia/Kathmandu")
    page.locator("#tz").press("Enter")
    rows = seen.rows("#groups")
    other = context.new_page()
    colleague = Seen(other, seen.url)
    other.goto(page.url)
    assert colleague.rows("#groups") == rows
    expect(other.locator("#tz")).to_have_value("Asia/Kathmandu")
    other.close()
    page.go_back()
    expect(page.locator("#tz")).to_have_value(ZONE)
    page.go_back()
    expect(page.locator(".chip")).to_have_count(0)
    page.go_forward()
    expect(page.locator(".chip")).to_have_count(1)


def test_a_percentile_of_few_views_is_not_shown(seen: Seen, looked: Looked) -> None:
    within_ms = looked.now_ms - 20 * DAY_MS
    seen.open(f"explore?metrics=startup_ms_p95&from={within_ms}&to={within_ms + 6 * HOUR_MS}")
    expect(seen.page.locator("#overall .value")).to_have_text("–", timeout=SOON_MS)
    expect(seen.page.locator("main")).to_contain_text("Not shown below 100 views.")


def test_a_figure_has_its_meaning_behind_its_name(seen: Seen) -> None:
    seen.open("explore")
    button = seen.page.get_by_role("button", name="What rebuffer percentage means", exact=False)
    button.click(timeout=SOON_MS)
    expect(seen.page.locator(".meaning")).to_contain_text("Σ rebuffer_ms / Σ watch_ms")
    seen.page.keyboard.press("Escape")
    expect(seen.page.locator(".meaning")).to_have_count(0)


@pytest.fixture(scope="module")
def incident(looked: Looked) -> AlertEvent:
    """An incident of this hour."""
    return page_alerts.landed(looked.installation.postgres.dsn, looked.now_ms)


def test_a_receiver_and_a_rule_are_made_tried_and_changed(seen: Seen, looked: Looked, incident: AlertEvent) -> None:
    seen.open(f"alerts?customer={page_alerts.CUSTOMER}")
    page = seen.page
    page.get_by_text("New receiver").click(timeout=SOON_MS)
    made = page.locator("#new-receiver")
    made.locator("[name=name]").fill("Video team")
    made.locator("[name=to]").fill("a@x.example, b@x.example")
    made.get_by_role("button", name="Save").click()
    page.locator("#receivers").get_by_role("button", name="Change").click(timeout=SOON_MS)
    page.locator("#change-receiver [name=name]").fill("On call")
    page.locator("#change-receiver").get_by_role("button", name="Save").click()
    expect(page.locator("#receivers")).to_contain_text("On call", timeout=SOON_MS)
    page.get_by_text("New rule").click()
    rule = page.locator("#new-rule")
    rule.locator("[name=name]").fill("A CDN waits")
    rule.locator("[name=condition]").select_option("threshold")
    rule.locator("[name=figure]").fill("5")
    rule.locator("[name=filter_dimension]").first.select_option("cdn")
    rule.locator("[name=filter_value]").first.fill("fastly")
    rule.locator("[name=receivers]").select_option(label="On call")
    rule.get_by_role("button", name="Try it").click()
    expect(page.locator("#new-rule-trial")).to_contain_text("It would have fired once", timeout=SOON_MS)
    expect(page.locator("#new-rule-trial li")).to_contain_text("20.00 % in cdn fastly")
    rule.locator("[name=time_zone]").select_option(ZONE)
    rule.get_by_role("button", name="Add quiet hours").click()
    rule.locator("[name=quiet_days_0]").last.uncheck()
    rule.get_by_role("button", name="Save").click()
    expect(page.locator("#rules")).to_contain_text(
        f"On call; quiet 22:00 to 06:00 Mon Tue Wed Thu Fri Sat ({ZONE})", timeout=SOON_MS
    )
    page.locator("#rules tr", has_text="A CDN waits").get_by_role("button", name="Change").click()
    page.locator("#change-rule [name=figure]").fill("7.5")
    page.locator("#change-rule").get_by_role("button", name="Save").click()
    expect(page.locator("#rules")).to_contain_text("above 7.50 %", timeout=SOON_MS)
    found = page_alerts.rules_of(looked.installation.postgres.dsn)
    (stored,) = [one for one in found if one.rule.name == "A CDN waits"]
    assert (stored.version, stored.rule.threshold, stored.rule.filter) == (2, 0.075, {"cdn": "fastly"})
    assert stored.rule.quiet.spans[0].days == [0, 1, 2, 3, 4, 5]


def test_an_incident_shows_its_course_and_what_people_do_with_it(
    seen: Seen, looked: Looked, incident: AlertEvent
) -> None:
    seen.open(f"alerts?customer={page_alerts.CUSTOMER}")
    page = seen.page
    page.locator("#incidents").get_by_role("link", name="Rebuffering").click(timeout=SOON_MS)
    expect(page.locator("#course canvas")).to_have_count(2, timeout=SOON_MS)
    expect(page.locator("#suspects li").first).to_contain_text("cdn fastly: 97 %")
    expect(page.locator("#incident-views b")).to_have_text(re.compile(r"\d"), timeout=SOON_MS)
    views = int(page.locator("#incident-views b").inner_text().replace(",", ""))
    begin, end = seen.range("/v1/overall")
    assert begin <= incident.opened_ms < end
    assert views == len(within(looked, (begin, end), customer_id=page_alerts.CUSTOMER, cdn="fastly"))
    page.get_by_role("button", name="Acknowledge").click()
    page.get_by_role("button", name="Mute for a day").click()
    facts = page.locator("#incident-facts")
    expect(facts).to_contain_text(f"by {WATCHER}", timeout=SOON_MS)
    expect(facts).to_contain_text(f"muted by {WATCHER}", timeout=SOON_MS)
    page.locator("#new-comment [name=text]").fill("We called the CDN.")
    page.locator("#new-comment").get_by_role("button", name="Save").click()
    expect(page.locator("#comments")).to_contain_text("We called the CDN.", timeout=SOON_MS)


def test_a_write_keys_origins_and_limits_are_changed_on_the_screen(seen: Seen, looked: Looked) -> None:
    seen.open("settings?part=environments&of=acme")
    page_settings.makes_changes_and_revokes_a_key(seen.page, looked.installation.postgres.dsn)


def test_somebody_of_two_organisations_goes_from_one_to_the_other(browser: Browser, looked: Looked) -> None:
    dsn, email = looked.installation.postgres.dsn, "both@initech.example"
    make_tenant(dsn, organisation="Initech", email=email, customers=("initech",))
    context = logged_in(browser, looked, email)
    try:
        seen = Seen(context.new_page(), looked.url)
        seen.open("settings")
        expect(seen.page.locator("main")).to_contain_text("Initech · owner", timeout=SOON_MS)
        page_settings.works_in_another_organisation(seen.page, dsn, email)
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen_is_accessible_and_fits_a_phone(
    seen: Seen, looked: Looked, incident: AlertEvent, scheme: str
) -> None:
    watch_now(looked.installation)
    axe = (PLAYERS / "axe-core" / "axe.min.js").read_text()
    page = seen.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    for screen in (*SCREENS, f"incident?id={incident.incident_id}"):
        page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
        seen.open(screen)
        expect(page.locator("main h2").first).to_be_visible(timeout=SOON_MS)
        expect(page.locator(".skeleton")).to_have_count(0, timeout=SOON_MS)
        # Forms that are folded are checked as well.
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        assert page.evaluate(_TOO_WIDE, PHONE["width"]) == [], screen
        # By the debugger's protocol, which no content policy holds up.
        page.evaluate(f"{axe}; undefined")
        found = page.evaluate("axe.run({resultTypes: ['violations']})")
        serious = [one for one in found["violations"] if one["impact"] in {"serious", "critical"}]
        assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in serious] == [], screen


def test_a_range_without_views_says_so_on_every_screen(seen: Seen, looked: Looked) -> None:
    long_ago = f"from={looked.now_ms - 300 * DAY_MS}&to={looked.now_ms - 299 * DAY_MS}"
    for screen in ("explore", "explore?by=cdn&as=table&", "errors", "views", "titles"):
        seen.open(f"{screen}{'' if '?' in screen else '?'}{long_ago}")
        expect(seen.page.locator("main .empty").first).to_contain_text(re.compile("^No view"), timeout=SOON_MS)
        expect(seen.page.locator(".skeleton, .notice")).to_have_count(0, timeout=SOON_MS)


def test_five_hundred_customers_and_the_longest_title_fit_a_phone(seen: Seen, looked: Looked) -> None:
    # Near the end: from here on customers are typed instead of chosen from a list.
    watched_by_many_customers(looked.installation, 500)
    page = seen.page
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    seen.open("")
    expect(page.locator("#customers-table tbody tr")).to_have_count(50, timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text(re.compile(r"4\d\d more customers are not listed"))
    expect(page.locator("#slices-note")).to_contain_text("too many customers")
    assert page.evaluate("document.querySelectorAll('*').length") < 2_500
    page.locator("input#customer").fill("customer-000")
    page.locator("input#customer").press("Enter")
    expect(page.locator("#slice-video_title")).to_contain_text(LONG_TITLE, timeout=SOON_MS)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_query_service_that_is_away_is_named_and_what_was_shown_stays_with_its_age(
    seen: Seen, looked: Looked
) -> None:
    # Last: it stops the service that answers questions.
    seen.open("explore?range=1h")
    value = seen.page.locator("#overall .value")
    expect(value).to_have_text(re.compile("%"), timeout=SOON_MS)
    shown = value.inner_text()
    looked.query.stop(30)
    expect(seen.page.locator("main .notice").first).to_contain_text(
        re.compile(r"What is shown is \d+ s old"), timeout=3 * SOON_MS
    )
    expect(value).to_have_text(shown)
