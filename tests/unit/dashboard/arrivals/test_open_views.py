"""Views that are still open: which are looked up, and which of them are shown."""

from typing import Any

import msgspec
import pytest

from services.dashboard.arrivals.open_views import (
    LOOKED_UP_MAX,
    AskedOpenViews,
    Candidates,
    Search,
    candidates,
    cursor_behind,
    matches,
    row_of,
    understood,
)  # fmt: skip
from services.dashboard.arrivals.picture import Read
from services.query.core.calendar import Range
from services.query.core.cursors import closed, name_of
from services.query.core.problems import Wrong


def read(key: str, at_ms: int, value: bytes = b"") -> Read:
    return Read(at_ms, key.encode(), value, {})


def search(**given: Any) -> Search:
    return understood(msgspec.convert({"customer": "acme", **given}, AskedOpenViews, strict=False))


def ids(found: Candidates) -> list[str]:
    return [one.view_id for one in found.listed]


def test_those_with_the_newest_beacons_are_looked_up_each_once_and_no_other_customers() -> None:
    came = [read("acme:a", 5), read("acme:b", 9), read("acme:a", 12), read("acme-tv:c", 20), Read(30, None, b"", {})]
    found = candidates(search(), [*came, read("acme:nul\0", 40)])
    assert (ids(found), found.has_more, found.count, found.until_ms) == (["a", "b"], False, 2, 12)
    many = [read(f"acme:{number}", number) for number in range(LOOKED_UP_MAX + 1)]
    found = candidates(search(), many)
    assert (ids(found)[0], len(ids(found)), found.has_more) == (str(LOOKED_UP_MAX), LOOKED_UP_MAX, True)
    assert found.count == LOOKED_UP_MAX + 1


def test_a_view_whose_beacons_have_what_is_looked_for_comes_before_newer_ones() -> None:
    came = [read("acme:old", 1, b'{"viewer_user_id":"x","video_title":"Cup FINAL"}'), read("acme:old", 2)]
    came += [read(f"acme:{number}", 10 + number) for number in range(LOOKED_UP_MAX)]
    for asked in ({"viewer": "x"}, {"title": "final"}, {"viewer": "x", "title": "cup"}):
        assert ids(candidates(search(**asked), came))[0] == "old"
    assert "old" not in ids(candidates(search(viewer="y"), came))


def test_each_view_is_on_one_page_whatever_beacons_come_between_two() -> None:
    # Two of each time, and an id with a space.
    came = [read(f"acme:view {number}", 10 + number // 2) for number in range(3 * LOOKED_UP_MAX)]
    whole, cursor = list[str](), ""
    for page in range(4):
        found = candidates(search(title="cup", cursor=cursor), came)
        assert found.count == 3 * LOOKED_UP_MAX
        whole += ids(found)[:90]
        cursor = cursor_behind(search(title="cup"), found.listed[:90][-1], found.until_ms)
        # The last of the list would be the first of a new one, and views that had no beacon begin.
        came += [read("acme:view 0", 1_000 + page), read(f"acme:new {page}", 1_000 + page)]
    assert sorted(whole) == sorted(f"view {number}" for number in range(3 * LOOKED_UP_MAX))
    assert whole[:2] == ["view 298", "view 299"]
    assert candidates(search(title="cup", cursor=cursor), came).listed == []


@pytest.mark.parametrize(
    "given",
    [
        {"from": "2026-02-02", "to": "2026-02-01"},
        {"from": "soon"},
        {"tz": "Nowhere"},
        {"filter": "{}"},
        {"filter": '{"dimension":"nothing","in":["a"]}'},
        {"cursor": "x"},
        {"cursor": closed(name_of(AskedOpenViews(customer="acme"), limit=1), Range(1, 2), [5, 0, "x", "view"])},
        {"cursor": closed(name_of(AskedOpenViews(customer="globex"), limit=1), Range(1, 2), [5, 0, 5, "view"])},
        {
            "cursor": closed(name_of(AskedOpenViews(customer="acme"), limit=1), Range(1, 2), [5, 0, 5, "v"]),
            "to": "2026-02-02",
        },
    ],
)
def test_a_wrong_question_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(Wrong) as raised:
        search(**given)
    assert raised.value.faults[0].parameter in given


def test_a_view_that_is_over_has_no_row_here_and_one_that_is_open_comes_without_its_events() -> None:
    row = {"view_id": "a", "viewer_user_id": None, "viewer_id": "v", "events": [1]}
    answers = {state: msgspec.json.encode({"found": {"state": state, "row": row}}) for state in ("open", "finished")}
    is_over, found = row_of(answers["open"])
    assert found is not None
    assert (is_over, found["view_id"], found["viewer"], "events" in found) == (False, "a", "v", False)
    assert row_of(answers["finished"]) == (True, None)
    assert row_of(b'{"found":{"state":"closed","row":null}}') == (True, None)


def test_an_open_view_has_what_its_row_leaves_out_and_every_dimension_by_its_name() -> None:
    row = {"customer_id": "acme", "view_id": "a", "custom": {"plan": "gold"}, "rebuffer_ms": 7}
    _, found = row_of(msgspec.json.encode({"found": {"state": "open", "row": row}}))
    assert found is not None
    # Else filters by these would hide it, and columns be empty.
    named = ("customer", "custom.plan", "playback_failed", "rebuffer_ms", "rebuffer_count")
    assert [found[name] for name in named] == ["acme", "gold", False, 7, 0]
    assert "country" not in found


def test_what_only_the_end_of_a_view_decides_is_not_said_of_an_open_one_and_no_filter_finds_it_by_that() -> None:
    decided = {"end_reason": "timeout", "view_dropped": True, "complete": False, "ebvs": True, "spi_good": False}
    row = {"customer_id": "acme", "view_id": "a", **decided, "startup_unknown": "not_started"}
    _, found = row_of(msgspec.json.encode({"found": {"state": "open", "row": row}}))
    assert found is not None
    assert not found.keys() & {*decided, "startup_unknown", "exit_before_start"}
    for dimension, value in (("end_reason", "timeout"), ("exit_before_start", "true"), ("complete", "false")):
        of_value = search(filter=f'{{"dimension":"{dimension}","in":["{value}"]}}')
        of_unknown = search(filter=f'{{"dimension":"{dimension}","in":[null]}}')
        assert (matches(of_value, found), matches(of_unknown, found)) == (False, True)
    # That its beginning was lost is certain already.
    _, lost = row_of(msgspec.json.encode({"found": {"state": "open", "row": {**row, "startup_unknown": "start_lost"}}}))
    assert lost is not None
    assert lost["startup_unknown"] == "start_lost"


@pytest.mark.parametrize(
    ("asked", "is_found"),
    [
        ({}, True),
        ({"viewer": "x"}, True),
        ({"viewer": "X"}, False),
        ({"title": "CUP"}, True),
        ({"title": "cups"}, False),
        ({"error": "E1"}, True),
        ({"error": "E"}, False),
        ({"score_at_least": 50.0}, True),
        ({"score_at_least": 51.0}, False),
        ({"score_below": 51.0}, True),
        ({"score_below": 50.0}, False),
        ({"from": "1970-01-01T00:16:40Z"}, True),
        ({"from": "1970-01-01T00:16:41Z"}, False),
        ({"to": "1970-01-01T00:16:41Z"}, True),
        ({"to": "1970-01-01T00:16:40Z"}, False),
        ({"to": "1970-01-01T01:10", "tz": "Europe/Berlin"}, False),
        ({"filter": '{"dimension":"cdn","in":["fastly"]}'}, True),
        ({"filter": '{"not":{"dimension":"cdn","in":["fastly",null]}}'}, False),
        ({"filter": '{"and":[{"dimension":"custom.plan","in":["gold"]},{"number":"rebuffer_ms","at_least":7}]}'}, True),
        ({"filter": '{"dimension":"playback_failed","in":["true"]}'}, False),
    ],
)
def test_a_row_is_searched_as_finished_views_are(asked: dict[str, str], *, is_found: bool) -> None:
    row = {
        "viewer": "x", "video_title": "Cup final", "error_code": "E1", "score_view": 50.0, "view_start_ms": 1_000_000,
        "cdn": "fastly", "custom": {"plan": "gold"}, "rebuffer_ms": 7, "playback_failed": False,
    }  # fmt: skip
    assert matches(search(**asked), row) == is_found
    nothing = dict.fromkeys(row) | {"view_start_ms": 1_000_000}
    assert matches(search(**asked), nothing) == (asked.keys() <= {"from", "to"} and is_found)
