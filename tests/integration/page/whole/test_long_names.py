"""Names as clients send them, long or of blanks alone: figures stay in sight beside them, and they lead on."""

import json
from typing import Any, Final

import pytest
from playwright.sync_api import Page, Route, expect

from tests.integration.page.parts.looking import PHONE, TOO_WIDE, Seen, in_time
from tests.integration.parts.browsing import SOON_MS, inaccessible

pytestmark = pytest.mark.integration

LONG: Final = "a_name_without_any_blank_in_it_" * 6
TEXT: Final = "the decoder could not go on with this part of the video " * 17
#: How much of a box that scrolls is left beside its first column.
BESIDE: Final = """(id) => { const box = document.querySelector(`#${id}`).closest(".scroll").getBoundingClientRect();
    const head = document.querySelector(`#${id} tbody th`).getBoundingClientRect();
    return (box.width - head.width) / box.width; }"""


def answered_with(page: Page, path: str, **named: Any) -> None:
    """The first of the list that the API answers has these values from now on."""

    def change(route: Route) -> None:
        answer = route.fetch()
        said = json.loads(answer.text())
        one = next(found for found in (said.get(key) for key in ("errors", "titles", "groups", "views")) if found)[0]
        one.update(named)
        route.fulfill(response=answer, json=said)

    page.route(f"**/v1/{path}?*", change)


@pytest.mark.parametrize(
    ("address", "path", "table", "named"),
    [
        ("errors?", "errors", "errors", {"code": LONG, "texts": [{"value": LONG, "views": 3}]}),
        ("titles?", "titles", "titles", {"title": LONG * 3}),
        ("explore?as=table&by=video_title&", "breakdown", "groups", {"key": [LONG], "labels": [LONG]}),
    ],
)
def test_a_long_name_leaves_room_for_its_figures_on_a_phone(
    seen: Seen, address: str, path: str, table: str, named: dict[str, Any]
) -> None:
    page = seen.page
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    answered_with(page, path, **named)
    seen.open(f"{address}customer=acme&range=24h")
    link = page.locator(f"#{table} tbody th a").first
    expect(link).to_contain_text(LONG, timeout=SOON_MS)
    expect(link.locator("[title]")).to_have_attribute("title", named.get("title") or LONG)
    assert page.evaluate(BESIDE, table) > 0.4
    assert page.evaluate(TOO_WIDE, PHONE["width"]) == []
    assert inaccessible(page) == []


def test_a_blank_name_has_a_word_and_leads_to_its_views(seen: Seen) -> None:
    page = seen.page
    answered_with(page, "breakdown", key=["  "], labels=["  "])
    answered_with(page, "views", video_title="  ")
    seen.open("explore?as=table&by=video_title&customer=acme&range=24h")
    page.locator("#groups tbody th a", has_text="(blank)").click(timeout=SOON_MS)
    expect(page.locator(".chip")).to_contain_text("Video title is (blank)", timeout=SOON_MS)

    def is_asked_for() -> None:
        filters = [json.loads(one) for one in seen.asked["/v1/overall"].get("filter", [])]
        assert filters == [{"dimension": "video_title", "in": ["  "]}]

    # The chip is drawn before the question is sent.
    in_time(is_asked_for)
    seen.open("views?customer=acme&range=24h")
    expect(page.locator("#views tbody tr").first).to_contain_text("(blank)", timeout=SOON_MS)


def test_a_long_message_is_folded_and_a_click_shows_all(seen: Seen) -> None:
    page = seen.page
    answered_with(page, "errors", texts=[{"value": TEXT.strip(), "views": 3}])
    seen.open("errors?customer=acme&range=24h")
    texts = page.locator("#errors tbody tr").first.locator("details.texts")
    expect(texts).to_contain_text(TEXT.strip(), timeout=SOON_MS)
    folded = texts.bounding_box()
    assert folded is not None
    assert folded["height"] < 70
    texts.locator("summary").click()
    whole = texts.bounding_box()
    assert whole is not None
    assert whole["height"] > 2 * folded["height"]
    assert inaccessible(page) == []


def test_a_long_title_leaves_the_list_of_views_as_wide_as_it_is(seen: Seen) -> None:
    page = seen.page
    answered_with(page, "views", video_title=LONG * 3, error_code=LONG)
    seen.open("views?customer=acme&range=24h")
    title = page.locator("#views tbody tr").first.locator("td.text", has_text=LONG * 3)
    expect(title).to_have_attribute("title", LONG * 3, timeout=SOON_MS)
    box = title.bounding_box()
    assert box is not None
    assert box["width"] < 400
