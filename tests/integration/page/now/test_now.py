"""Now, in a real browser, beside the truth of the views."""

import json
import re
from typing import Any, Final
from urllib.parse import urlencode

import psycopg
import pytest
from playwright.sync_api import expect

from shared.schemas.alerts.event import AlertEvent
from shared.schemas.live import BUCKET_MS
from shared.schemas.view import View
from tests.integration.page.parts.installation import Looked, viewers_at, watch_now, watched_before
from tests.integration.page.parts.looking import ONE_LOOK_MS, Seen, in_time, number, settled, within
from tests.integration.page.parts.page_views import INCIDENT
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import FIGURES, HOUR_MS

pytestmark = pytest.mark.integration

#: 150 kB is promised; a bundle of all screens takes less.
FIRST_LOAD_BYTES_MAX: Final = 150_000
#: What the page took of the server's files, compressed, from the network or from what the browser kept.
LOADED_BYTES: Final = """() => performance.getEntries()
    .filter((one) => one.entryType === "navigation" || one.name.includes("/static/"))
    .reduce((sum, one) => sum + one.encodedBodySize, 0)"""

#: Of `watch_now`, by dimension: viewers and rebuffering of each value, those with the most viewers first.
CARDS: Final = {
    "asn": {"3320": ("420", "15.0%"), "3215": ("380", "3.42%")},
    "device": {"phone": ("480", "10.0%"), "tv": ("320", "8.75%")},
    "player_version": {"2.3.0": ("440", "2.73%"), "2.4.0": ("360", "17.8%")},
}


def test_what_is_wrong_now_and_where(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    fastly = page.locator("#slice-cdn tbody tr", has_text="fastly")
    expect(fastly.locator("td").nth(1)).to_have_text("35.0% n 200", timeout=SOON_MS)
    for name, values in CARDS.items():
        rows = page.locator(f"#slice-{name} tbody tr")
        expect(rows.locator("th")).to_have_text([re.compile(f"^\\s*{re.escape(value)}\\s*$") for value in values])
        viewers = [one for one, _ in values.values()]
        expect(rows.locator("td:nth-of-type(1)")).to_have_text(viewers)
        expect(rows.locator("td:nth-of-type(2)")).to_have_text([f"{share} n {n}" for n, share in values.values()])
    suspect = page.locator(".suspects[data-metric=rebuffer_fraction] tbody tr").first
    expect(suspect).to_contain_text("CDN fastly", timeout=SOON_MS)
    expect(suspect).to_contain_text("Player version 2.4.0")
    suspect.locator("th").get_by_role("link").click()
    expect(page.locator(".chip", has_text="Player version is 2.4.0")).to_be_visible(timeout=SOON_MS)
    chips = page.locator(".chip").all_inner_texts()
    assert {"CDN is fastly", "Player version is 2.4.0"} <= {chip.split("\n")[0].strip(" ×") for chip in chips}
    named = {key: value for key, value in INCIDENT.items() if any(str(value) in chip for chip in chips)}
    fact = page.locator("#finished li").first

    def cohort(hours_before: int = 0) -> list[View]:
        """Those of the hour that was asked for last, or of one before it."""
        from_ms, to_ms = (one - hours_before * HOUR_MS for one in seen.range("/v1/overall"))
        return within(looked, (from_ms, to_ms), customer_id="acme", **named)

    def shows_the_cohort() -> None:
        expect(fact).to_contain_text(f"n {len(cohort())} · hour before", timeout=ONE_LOOK_MS)
        expect(fact).to_contain_text(re.compile(rf", n {len(cohort(hours_before=1))}$"), timeout=ONE_LOOK_MS)
        shown = number(fact.locator("b").inner_text())
        assert shown == pytest.approx(FIGURES["rebuffer_fraction"](cohort()), rel=0.006)

    def draws_the_cohort() -> None:
        expect(page.locator("#overall")).to_contain_text(f"n {len(cohort())}", timeout=ONE_LOOK_MS)

    in_time(shows_the_cohort)
    # Of this moment what is counted of the filters is shown, and says what it is of.
    expect(page.locator("#live-part option:checked")).to_have_text(
        "CDN is fastly and Network (ASN) is 3320", timeout=SOON_MS
    )
    left_out = page.locator("#live-of [role=status]")
    expect(left_out).to_contain_text("Player version is 2.4.0")
    expect(left_out).not_to_contain_text("CDN")
    expect(page.locator("#tile-viewers .value")).to_have_text("110", timeout=SOON_MS)
    cards = page.locator("section", has=page.locator("#slices"))
    expect(cards).to_contain_text("of CDN is fastly alone")
    expect(page.locator("#slice-country tbody td:nth-of-type(1)")).to_have_text(["120", "80"])
    # One CDN, by one click on its slice, and back.
    page.go_back()
    # The suspect's figure over time: the same metric, cohort and hour.
    suspect.get_by_title("over time").click()
    in_time(draws_the_cohort)
    expect(page.locator("#metric")).to_have_value("rebuffer_fraction")
    page.go_back()
    fastly.get_by_role("link", name="fastly").click()
    expect(page.locator("#tile-viewers .value")).to_have_text("200", timeout=SOON_MS)
    page.go_back()
    expect(page.locator("#tile-viewers .value")).to_have_text("800", timeout=SOON_MS)
    # And so for the other dimensions.
    for name, values in CARDS.items():
        value, (viewers, _) = next(iter(values.items()))
        page.locator(f"#slice-{name}").get_by_role("link", name=value, exact=True).click()
        expect(page.locator("#tile-viewers .value")).to_have_text(viewers, timeout=SOON_MS)
        page.go_back()
        expect(page.locator("#tile-viewers .value")).to_have_text("800", timeout=SOON_MS)


def test_viewers_within_three_filters_are_shown_by_any_two_of_them(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    chosen = {"cdn": "fastly", "country": "DE", "video_title": "Cup final"}
    filters = [("filter", json.dumps({"dimension": name, "in": [value]})) for name, value in chosen.items()]
    seen.open(f"?{urlencode([('customer', 'acme'), *filters])}")
    page = seen.page
    viewers, part = page.locator("#tile-viewers .value"), page.locator("#live-part")
    expect(viewers).to_have_text("120", timeout=SOON_MS)
    expect(part.locator("option")).to_have_text(
        [
            "CDN is fastly and Country is DE",
            "CDN is fastly and Video title is Cup final",
            "Country is DE and Video title is Cup final",
        ]
    )
    expect(page.locator("#live-of")).to_contain_text("Left out: Video title is Cup final")
    part.select_option(index=2)
    expect(viewers).to_have_text("410", timeout=SOON_MS)
    expect(page.locator("#live-of")).to_contain_text("Left out: CDN is fastly")
    # A link shows the same two.
    page.reload()
    expect(viewers).to_have_text("410", timeout=SOON_MS)
    # A filter that no live figure has: they are of all viewers, and say so.
    seen.open(f"?{urlencode([('customer', 'acme'), ('filter', json.dumps({'dimension': 'cdn', 'in': ['a', 'b']}))])}")
    expect(page.locator("#live-of")).to_contain_text("Live figures are of all viewers", timeout=SOON_MS)
    expect(viewers).to_have_text("800", timeout=SOON_MS)
    expect(page.locator("section", has=page.locator("#slices"))).to_contain_text("without the filters above")


def test_the_map_comes_when_it_is_seen_and_a_click_on_a_country_is_a_filter(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    settled(page)
    expect(page.locator("#slice-country")).to_contain_text("DE", timeout=SOON_MS)
    assert page.evaluate(LOADED_BYTES) < FIRST_LOAD_BYTES_MAX
    assert not [path for path in seen.asked if re.search("countries|codes|feature|core/map", path)]
    room = page.locator(".map-place")
    height = room.bounding_box()["height"]  # type: ignore[index] - it is in the document
    # As a person does who has no mouse wheel at hand.
    page.locator("main").click(position={"x": 2, "y": 2})
    page.keyboard.press("End")
    most = page.locator("#map [data-country][fill-opacity='1']")
    expect(most).to_have_attribute("data-country", "DE", timeout=SOON_MS)
    assert room.bounding_box()["height"] == pytest.approx(height, abs=1)  # type: ignore[index] - it is in the document
    expect(page.locator("#map [data-country]")).to_have_count(2)
    expect(most.locator("title")).to_have_text("Germany: 500 viewers, 14.4% rebuffering")
    # Its colours are explained: from one viewer to most, and those that are marked.
    expect(page.locator("#map-legend")).to_contain_text("1 viewer500 viewers")
    expect(page.locator("#map-legend")).to_contain_text("Rebuffering is bad there")
    # Each country of the map is in the table that the map names, as a link.
    expect(page.locator("#map")).to_have_attribute("aria-label", re.compile("The table below has the same countries"))
    expect(page.locator("#slice-country tbody th").get_by_role("link")).to_have_text(["DE", "FR"])
    most.click()
    expect(page.locator(".chip")).to_contain_text("Country is DE", timeout=SOON_MS)
    expect(page.locator("#tile-viewers .value")).to_have_text("500", timeout=SOON_MS)


def test_a_map_that_cannot_be_loaded_says_so_and_is_tried_again(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    page = seen.page
    # What draws it comes with the page.
    lost = "**/vendor/countries-110m.json"
    page.route(lost, lambda route: route.abort())
    seen.open("?customer=acme")
    page.locator(".map-place").scroll_into_view_if_needed(timeout=SOON_MS)
    missing = page.locator("#map-missing")
    expect(missing).to_contain_text("The table below has the same figures", timeout=SOON_MS)
    missing.get_by_role("button", name="Try again").click()
    expect(missing).to_be_visible(timeout=SOON_MS)
    page.unroute(lost)
    missing.get_by_role("button", name="Try again").click()
    expect(page.locator("#map [data-country]")).to_have_count(2, timeout=SOON_MS)
    expect(missing).to_have_count(0)


def test_a_percentile_of_few_views_says_from_how_many_on_it_is_shown(seen: Seen, looked: Looked) -> None:
    seen.open("?customer=globex")
    facts = seen.page.locator("#finished li")
    expect(facts.first).to_be_visible(timeout=SOON_MS)
    p95 = facts.filter(has_text="p95")

    def says_so() -> None:
        views = within(looked, seen.range("/v1/overall"), customer_id="globex")
        n = sum(view.startup_ms is not None for view in views)
        assert 0 < n < 100
        expect(p95).to_contain_text(re.compile(rf"–\s*not shown below 100 views\s*n {n} "), timeout=ONE_LOOK_MS)

    in_time(says_so)
    expect(facts.filter(has_text="median")).not_to_contain_text("not shown")
    # Each client alone has fewer still.
    lines = seen.page.locator("#mixed-clients li")
    expect(lines).to_have_count(2, timeout=SOON_MS)
    for line in lines.all():
        expect(line).to_contain_text(re.compile(r"p95\s+not shown below 100 views\s+n \d+"))


def test_every_live_figure_has_its_n_and_leads_to_the_views_behind_it(
    seen: Seen, looked: Looked, incident: AlertEvent
) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    settled(page)
    # Viewers are counted at each step: as many as there are on average.
    worst = incident.slices[0]
    viewers = round(worst.of * BUCKET_MS / (1_000 * worst.seconds))
    expect(page.locator("#recent-incidents")).to_contain_text(f"n {viewers:,}")
    fastly = page.locator("#slice-cdn tbody tr", has_text="fastly")
    # Of the last 60 s: twelve steps of four failures and five starts.
    expect(fastly.locator("td")).to_have_text(["200", "35.0% n 200", "1.00 Mbps n 190", re.compile(r"^\d+ n \d+$")])
    failed, started = map(int, fastly.locator("td").last.inner_text().split("n"))
    assert started == failed // 4 * 5 > 0

    def lists_the_views(**fields: Any) -> None:
        expect(page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)
        bounds = seen.range("/v1/views")
        views = within(looked, bounds, customer_id="acme", **fields)
        assert bounds[1] - bounds[0] == pytest.approx(HOUR_MS, abs=60_000)
        expect(page.locator("#views tbody tr")).to_have_count(min(50, len(views)), timeout=ONE_LOOK_MS)
        assert views

    page.locator("#tile-failures").get_by_role("link").click()
    expect(page.locator(".chip")).to_contain_text("Playback failed is true", timeout=SOON_MS)
    in_time(lambda: lists_the_views(playback_failed=True))
    page.go_back()
    fastly.get_by_role("link", name="200").click()
    expect(page.locator(".chip")).to_contain_text("CDN is fastly", timeout=SOON_MS)
    expect(page.locator("#show-open")).to_have_attribute("aria-expanded", "true")
    in_time(lambda: lists_the_views(cdn="fastly"))
    page.go_back()
    # Those of all customers are by customer, with n as well.
    page.locator("#customer").select_option("*", timeout=SOON_MS)
    acme = page.locator("#customers-table tbody tr", has_text="acme")
    expect(acme.locator("td").nth(2)).to_have_text("3.25 Mbps n 800", timeout=SOON_MS)
    failures, n, share = re.split(r" n | (?=[\d.]+%)", acme.locator("td").nth(4).inner_text())
    assert (int(failures) > 0, n) == (True, acme.locator("td").nth(3).inner_text())
    assert number(share) == pytest.approx(int(failures) / int(n), rel=0.006)
    acme.get_by_role("link", name="800").click()
    expect(page.locator("#show-open")).to_have_attribute("aria-expanded", "true", timeout=SOON_MS)
    expect(page.locator("#customer")).to_have_value("acme")


def test_a_live_title_leads_to_its_own_screen(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    settled(page)
    row = page.locator("#slice-video_title tbody tr", has_text="Cup final")
    row.get_by_role("link", name="Cup final: audience and quality").click(timeout=SOON_MS)
    expect(page.locator("#title-name")).to_contain_text("Cup final", timeout=SOON_MS)

    def says_its_views() -> None:
        (path,) = [one for one in seen.asked if one.startswith("/v1/titles/")]
        views = within(looked, seen.range(path), customer_id="acme", video_title="Cup final")
        expect(page.locator("main")).to_contain_text(f"n {len(views)} views ·", timeout=ONE_LOOK_MS)

    in_time(says_its_views)
    page.go_back()
    expect(row).to_be_visible(timeout=SOON_MS)


def test_viewers_of_the_last_day_by_minute_and_by_five_seconds_near_now(seen: Seen, looked: Looked) -> None:
    watched_before(looked.installation)
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page

    def first_and_last(back: str, *, of: str = "#back", title: str = "the last {}") -> tuple[str, str]:
        plot = page.locator(".chart .plot").first
        before = plot.get_attribute("aria-label", timeout=SOON_MS) or ""
        with page.expect_response(re.compile("/v1/live/history")):
            page.locator(of).get_by_role("button", name=back, exact=True).click(timeout=SOON_MS)
        # Not the one that is there still.
        expect(plot).not_to_have_attribute("aria-label", before, timeout=SOON_MS)
        expect(plot).to_have_attribute("aria-label", re.compile(title.format(back)), timeout=SOON_MS)
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
    # The hour before it, by the same steps, and without what is now.
    newest = minute_of_answer()
    first, last = first_and_last("← 1 h earlier", of="#back-steps", title=" – .* by 5 s")
    assert minute_of_answer() == newest - 60
    assert (first, last) == (str(viewers_at(newest - 60)), str(viewers_at(newest - 1)))
    assert seen.asked["/v1/live/history"]["step_ms"] == ["5000"]
    # And the one before that; then one step back towards now.
    first, last = first_and_last("← 1 h earlier", of="#back-steps", title=" – .* by 5 s")
    assert minute_of_answer() == newest - 120
    assert (first, last) == (str(viewers_at(newest - 120)), str(viewers_at(newest - 61)))
    first, last = first_and_last("1 h later →", of="#back-steps", title=" – .* by 5 s")
    assert minute_of_answer() == newest - 60
    assert (first, last) == (str(viewers_at(newest - 60)), str(viewers_at(newest - 1)))
    first, last = first_and_last("up to now", of="#back-steps", title="the last 1 h")
    assert (first, last) == (str(viewers_at(minute_of_answer())), "800")
    # The same of one slice, by one click.
    page.locator("#slice-cdn").get_by_role("link", name="fastly").click()
    expect(page.locator("#tile-viewers .value")).to_have_text("200", timeout=SOON_MS)
    first, last = first_and_last("6 h")
    assert (first, last) == (str(round(viewers_at(minute_of_answer()) * 0.25)), "200")
    # Keys mark a stretch, which Explore shows.
    page.locator(".chart .plot").first.focus()
    for key in ("Home", *["Shift+ArrowRight"] * 3, "Enter"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(r"/explore\?.*from=\d+&to=\d+&"), timeout=SOON_MS)
    page.go_back()


def test_viewers_of_all_customers_together_go_back_too(seen: Seen, looked: Looked) -> None:
    for customer in ("acme", "globex"):
        watched_before(looked.installation, customer)
    try:
        watch_now(looked.installation)
        seen.open("")
        plot = seen.page.locator(".chart .plot").first
        for back in ("1 h", "6 h", "24 h"):
            with seen.page.expect_response(re.compile(r"/v1/live/history\?customer=\*")):
                seen.page.locator("#back").get_by_role("button", name=back, exact=True).click(timeout=SOON_MS)
            expect(plot).to_have_attribute("aria-label", re.compile(f"the last {back}"), timeout=SOON_MS)
            plot.focus()
            seen.page.keyboard.press("Home")
            minute = int(seen.asked["/v1/live/history"]["from_ms"][0]) // 60_000
            expect(seen.page.locator(".chart .legend b").first).to_have_text(f"{2 * viewers_at(minute):,}")
        # The same of one slice, by one click: of both customers, and of nobody who watched it on another CDN.
        seen.page.locator("#slice-cdn").get_by_role("link", name="fastly").click()
        with seen.page.expect_response(re.compile(r"/v1/live/history\?customer=\*&dimension=cdn&value=fastly")):
            seen.page.locator("#back").get_by_role("button", name="6 h", exact=True).click(timeout=SOON_MS)
        expect(plot).to_have_attribute("aria-label", re.compile("the last 6 h"), timeout=SOON_MS)
        plot.focus()
        seen.page.keyboard.press("Home")
        minute = int(seen.asked["/v1/live/history"]["from_ms"][0]) // 60_000
        expect(seen.page.locator(".chart .legend b").first).to_have_text(f"{2 * round(viewers_at(minute) * 0.25):,}")
        seen.page.get_by_role("button", name="Remove the filter").click()
        # What is behind it is looked up for one of them, by another click.
        seen.page.locator("#tile-viewers .behind").click()
        seen.page.locator("#open-customers").get_by_role("link", name="globex", exact=True).click(timeout=SOON_MS)
        expect(seen.page.locator("#customer")).to_have_value("globex")
        expect(seen.page.locator("#show-open")).to_have_attribute("aria-expanded", "true")
        expect(seen.page.locator("#open-of-whom")).to_have_count(0)
    finally:
        with psycopg.connect(looked.installation.postgres.dsn) as connection:
            for table in ("live_minutes", "live_steps"):
                connection.execute(f"DELETE FROM serving.{table} WHERE customer_id = 'globex'".encode())


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
