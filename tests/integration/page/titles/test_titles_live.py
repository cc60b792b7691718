"""The live viewers of titles below the curves of finished views, in a real browser."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest
from playwright.sync_api import expect

from shared.schemas.live_minute import MINUTE_MS, STEPS
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import PHONE, TOO_WIDE, Seen
from tests.integration.page.parts.page_views import TITLES
from tests.integration.parts.browsing import SOON_MS, inaccessible
from tests.unit.query.parts.recounting import DAY_MS

pytestmark = pytest.mark.integration

#: Titles that figures name, and what each has more than `viewers_at`.
NAMED: Final = {"Cup final": 400, "Sintel": 30}
FASTLY: Final = quote(json.dumps({"dimension": "cdn", "in": ["fastly"]}))
GERMAN: Final = quote(json.dumps({"dimension": "country", "in": ["DE"]}))


def viewers_at(minute: int, title: str) -> int:
    """Of a title in a minute."""
    return NAMED[title] + minute % 60


@contextmanager
def watched_titles(looked: Looked) -> Iterator[None]:
    """Viewers of titles in the last hours, as `services/serving` lands them: of all, and of those over one CDN a tenth."""
    until = int(time.time() * 1_000) // MINUTE_MS
    rows = []
    for minute in range(until - 400, until):
        of_all = {title: viewers_at(minute, title) for title in NAMED}
        of_pair = {f"fastly\x1f{title}": count // 10 for title, count in of_all.items()}
        # Without figures of the whole nothing is known of a minute.
        for dimension, values in (("", {"": 1_000}), ("video_title", of_all), ("cdn,video_title", of_pair)):
            figures = {value: {"viewers_now": STEPS * count, "viewers_max": count} for value, count in values.items()}
            rows.append((dimension, minute, json.dumps({"steps": STEPS, "values": figures})))
    with psycopg.connect(looked.installation.postgres.dsn, autocommit=True) as connection:
        cursor = connection.cursor()
        # Whatever other tests have landed is theirs.
        cursor.execute("CREATE TEMPORARY TABLE before AS SELECT * FROM serving.live_minutes WHERE customer_id = 'acme'")
        cursor.execute("DELETE FROM serving.live_minutes WHERE customer_id = 'acme'")
        try:
            cursor.executemany("INSERT INTO serving.live_minutes VALUES ('acme', %s, %s, %s)", rows)
            yield
        finally:
            cursor.execute("DELETE FROM serving.live_minutes WHERE customer_id = 'acme'")
            cursor.execute("INSERT INTO serving.live_minutes SELECT * FROM before")


def test_viewers_of_a_title_that_is_watched_now_are_drawn_below_its_finished_views(seen: Seen, looked: Looked) -> None:
    page = seen.page
    live = page.locator("#live-viewers")
    figure = live.locator(".legend b")

    def drawn(address: str) -> int:
        """Opens a title, reads the first live figure by keys, and returns its minute."""
        with page.expect_response(lambda one: "/v1/live/history" in one.url) as found:
            seen.open(address)
        expect(live).to_be_visible(timeout=SOON_MS)
        live.locator(".plot").focus()
        page.keyboard.press("Home")
        return int(parse_qs(urlsplit(found.value.url).query)["from_ms"][0]) // MINUTE_MS

    with watched_titles(looked):
        # The hours in which views may be open still; of a shorter range all of it.
        for within, minutes in (("24h", 360), ("1h", 61)):
            first = drawn(f"titles?customer=acme&range={within}&video=id+of+Cup+final")
            assert time.time() // 60 + 1 - first in (minutes, minutes + 1)
            for minute in range(first, first + 3):
                expect(figure).to_have_text(str(viewers_at(minute, "Cup final")))
                page.keyboard.press("ArrowRight")
        expect(page.locator("#still-open")).to_be_visible()
        live.get_by_role("button", name="What Live viewers means").click()
        expect(live.locator(".meaning")).to_contain_text("75 s")
        page.keyboard.press("Escape")
        assert inaccessible(page) == []
        page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
        assert page.evaluate(TOO_WIDE, PHONE["width"]) == []
        # Under one filter they are of that as well.
        first = drawn(f"titles?customer=acme&range=1h&video=id+of+Sintel&filter={FASTLY}")
        expect(figure).to_have_text(str(viewers_at(first, "Sintel") // 10))


def test_live_viewers_of_several_titles_have_the_colours_of_their_curves(seen: Seen, looked: Looked) -> None:
    page = seen.page
    with watched_titles(looked):
        seen.open("titles?customer=acme&range=24h")
        live, finished = page.locator("#live-viewers .legend li"), page.locator(".chart").first.locator(".legend li")
        expect(live).to_have_count(len(TITLES), timeout=SOON_MS)
        expect(finished).to_have_count(len(TITLES))
        page.locator("#live-viewers .plot").focus()
        page.keyboard.press("Home")
        for above, line in zip(finished.all(), live.all(), strict=True):
            title = line.locator(".name").inner_text()
            assert above.get_by_role("link").inner_text() == title
            assert above.get_attribute("class") == line.get_attribute("class")
            figure = line.locator("b").inner_text()
            # Those that are not among the ones with the most viewers are not known.
            assert figure.isdigit() if title in NAMED else figure == "–"


def test_live_viewers_are_not_drawn_where_they_are_not_known_or_long_over(seen: Seen, looked: Looked) -> None:
    page = seen.page
    asked = []
    page.on("request", lambda one: asked.append(one.url) if "/v1/live/history" in one.url else None)
    title = "video=id+of+Cup+final"
    days = f"from={looked.now_ms - 3 * DAY_MS}&to={looked.now_ms - 2 * DAY_MS}"
    with watched_titles(looked):
        for address in (f"{days}&{title}", f"range=24h&{title}&filter={FASTLY}&filter={GERMAN}"):
            seen.open(f"titles?customer=acme&{address}")
            expect(page.locator("#title-figures")).to_be_visible(timeout=SOON_MS)
            expect(page.locator("#live-viewers")).to_have_count(0)
        assert asked == []
    with page.expect_response(lambda one: "/v1/live/history" in one.url) as found:
        seen.open(f"titles?customer=acme&range=24h&{title}")
    assert all(set(one["series"]["viewers_now"]) == {None} for one in found.value.json()["values"])
    expect(page.locator("#title-figures")).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#live-viewers")).to_have_count(0)
    expect(page.locator("#still-open").get_by_role("link", name="Its viewers now")).to_be_visible()
