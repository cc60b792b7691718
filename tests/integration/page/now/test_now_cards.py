"""The cards of Now, and the n of its chart, in a real browser."""

import re
from typing import Final

import pytest
from playwright.sync_api import Route, expect

from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import Seen, settled
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


def test_the_worst_of_a_card_comes_first_by_keys_and_a_link_shows_it_so(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    settled(page)
    card = page.locator("#slice-cdn")
    names = card.locator("tbody th").get_by_role("link")
    expect(names).to_have_text(["akamai", "fastly"], timeout=SOON_MS)
    expect(card.locator("th[aria-sort=descending]")).to_contain_text("Viewers")
    for head, order in (("Rebuffering", "descending"), ("Failures", "descending"), ("Failures", "ascending")):
        card.locator("thead").locator("button:not(.what)", has_text=head).press("Enter")
        expect(card.locator(f"th[aria-sort={order}]")).to_contain_text(head)
        expect(card.locator("th[aria-sort]")).to_have_count(1)
        expect(names).to_have_text(["akamai", "fastly"] if order == "ascending" else ["fastly", "akamai"])
    # The other cards stay as they are.
    expect(page.locator("#slice-country th[aria-sort]")).to_contain_text("Viewers")
    expect(page.locator("#slice-country tbody th").get_by_role("link")).to_have_text(["DE", "FR"])
    card.locator("thead").locator("button:not(.what)", has_text="Rebuffering").click()
    expect(names).to_have_text(["fastly", "akamai"])
    page.reload()
    expect(names).to_have_text(["fastly", "akamai"], timeout=SOON_MS)
    expect(card.locator("th[aria-sort=descending]")).to_contain_text("Rebuffering")
    page.go_back()
    expect(card.locator("th[aria-sort=ascending]")).to_contain_text("Failures", timeout=SOON_MS)


def test_the_chart_of_a_live_share_has_its_n(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("?customer=acme")
    page = seen.page
    settled(page)
    read = page.locator(".chart .legend li").first
    for tile, figure in (("rebuffering", "9.50% n 800"), ("bitrate", "3.25 Mbps n 800")):
        page.locator(f"#tile-{tile} .pick-tile").click()
        plot = page.locator(".chart .plot").first
        expect(plot).to_have_attribute("aria-label", re.compile("now, the last"), timeout=SOON_MS)
        plot.press("End")
        expect(read).to_contain_text(figure, timeout=SOON_MS)
    # A count of viewers is its own n.
    page.locator("#tile-viewers .pick-tile").click()
    plot = page.locator(".chart .plot").first
    expect(plot).to_have_attribute("aria-label", re.compile("^Viewers, the last"), timeout=SOON_MS)
    plot.press("End")
    expect(read.locator("b")).to_have_text("800", timeout=SOON_MS)
    expect(read.locator(".note")).to_have_count(0)


#: Thresholds by which the figures of `watch_now` are bad, or good: worse when, good, bad.
JUDGED: Final = {
    "live_rebuffering_fraction": ("higher", 0.2, 0.3),
    "live_bitrate_bps": ("lower", 5e6, 4e6),
    "playback_failure_fraction": ("higher", 0.001, 0.005),
    "exit_before_start_fraction": ("higher", 0.001, 0.005),
}


def test_live_figures_are_good_or_bad_by_their_thresholds(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    page = seen.page
    chosen = [
        {"metric": name, "worse": worse, "good": good, "bad": bad, "n": 20, "of": "customer"}
        for name, (worse, good, bad) in JUDGED.items()
    ]
    page.route("**/v1/thresholds*", lambda route: route.fulfill(json={"thresholds": chosen}))
    seen.open("?customer=acme")
    settled(page)
    for tile, level in {
        "viewers": "",
        "starts": "",
        "startup": "",
        "rebuffering": "is-good",
        "bitrate": "is-bad",
        "failures": "is-bad",
        "exits": "is-bad",
    }.items():
        expect(page.locator(f"#tile-{tile} .value")).to_have_class(f"value {level}", timeout=SOON_MS)
    fastly, akamai = (page.locator("#slice-cdn tbody tr", has_text=cdn).locator("td") for cdn in ("fastly", "akamai"))
    # 48 of 60 failed; of the other nothing is known.
    for cell, level in ((fastly.nth(2), "is-warm"), (fastly.nth(3), "is-warm"), (akamai.nth(3), "")):
        expect(cell).to_have_class(level)
    # A link in a cell has the colour of the cell.
    for cell in (fastly.nth(2), fastly.nth(3)):
        link = cell.locator("a").first
        assert link.evaluate("of => getComputedStyle(of).color") == cell.evaluate("of => getComputedStyle(of).color")
    page.locator("#customer").select_option("*", timeout=SOON_MS)
    acme, globex = (
        page.locator("#customers-table tbody tr", has_text=name).locator("td") for name in ("acme", "globex")
    )
    for place, level in enumerate(("", "", "is-warm", "", "is-warm", "is-warm")):
        expect(acme.nth(place)).to_have_class(level, timeout=SOON_MS)
        expect(globex.nth(place)).to_have_class("")


def test_thresholds_of_one_customer_colour_no_figure_of_another(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    page = seen.page
    bad = {"metric": "live_bitrate_bps", "worse": "lower", "good": 5e6, "bad": 4e6, "n": 20, "of": "customer"}
    held: list[Route] = []

    def answer(route: Route) -> None:
        if "customer=acme" in route.request.url:
            route.fulfill(json={"thresholds": [bad]})
        else:
            held.append(route)

    page.route("**/v1/thresholds*", answer)
    seen.open("?customer=acme")
    settled(page)
    value = page.locator("#tile-bitrate .value")
    expect(value).to_have_class("value is-bad", timeout=SOON_MS)
    page.locator("#customer").select_option("*", timeout=SOON_MS)
    expect(page.locator("#customers-table")).to_be_visible(timeout=SOON_MS)
    expect(value).to_have_class("value ")
    for route in held:
        route.fulfill(json={"thresholds": []})


def test_each_head_of_a_live_figure_and_of_suspects_says_what_it_means(seen: Seen, looked: Looked) -> None:
    watch_now(looked.installation)
    seen.open("")
    page = seen.page
    settled(page)
    for table, count in (("#slice-cdn", 4), ("#slice-country", 4), ("#customers-table", 6)):
        expect(page.locator(f"{table} thead .what")).to_have_count(count, timeout=SOON_MS)
    meaning = page.get_by_role("note")
    page.locator("#slice-cdn thead").get_by_role("button", name="What Failures means").click()
    # In words, and for readers of the API in its fields.
    expect(meaning).to_contain_text("views that failed / all views")
    expect(meaning).to_contain_text("playback_failed / V")
    page.keyboard.press("Escape")
    expect(meaning).to_have_count(0)
    suspects = page.locator(".suspects[data-metric=rebuffer_fraction] thead")
    suspects.get_by_role("button", name="What Rebuffer percentage means").click()
    expect(meaning).to_contain_text("sum of rebuffering time / sum of watch time")
