"""The cards of Now, and the n of its chart, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.integration.page.looking import Seen, settled
from tests.integration.page.page_parts import Looked, watch_now
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
