"""Views that are still open: which are looked up, and which of them are shown."""

import msgspec
import pytest

from services.dashboard.arrivals.open_views import LOOKED_UP_MAX, AskedOpenViews, candidates, matches, row_of
from services.dashboard.arrivals.picture import Read


def read(key: str, at_ms: int, value: bytes = b"") -> Read:
    return Read(at_ms, key.encode(), value, {})


def test_those_with_the_newest_beacons_are_looked_up_each_once_and_no_other_customers() -> None:
    came = [read("acme:a", 5), read("acme:b", 9), read("acme:a", 12), read("acme-tv:c", 20), Read(30, None, b"", {})]
    assert candidates(AskedOpenViews(customer="acme"), came) == (["a", "b"], False)
    many = [read(f"acme:{number}", number) for number in range(LOOKED_UP_MAX + 1)]
    ids, is_cut = candidates(AskedOpenViews(customer="acme"), many)
    assert (ids[0], len(ids), is_cut) == (str(LOOKED_UP_MAX), LOOKED_UP_MAX, True)


def test_a_view_whose_beacons_have_what_is_looked_for_comes_before_newer_ones() -> None:
    came = [read("acme:old", 1, b'{"viewer_user_id":"x","video_title":"Cup FINAL"}'), read("acme:old", 2)]
    came += [read(f"acme:{number}", 10 + number) for number in range(LOOKED_UP_MAX)]
    for asked in ({"viewer": "x"}, {"title": "final"}, {"viewer": "x", "title": "cup"}):
        assert candidates(msgspec.convert({"customer": "acme", **asked}, AskedOpenViews), came)[0][0] == "old"
    assert "old" not in candidates(AskedOpenViews(customer="acme", viewer="y"), came)[0]


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
    named = ("customer", "custom.plan", "exit_before_start", "playback_failed", "rebuffer_ms", "rebuffer_count")
    assert [found[name] for name in named] == ["acme", "gold", False, False, 7, 0]
    assert "country" not in found


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
        ({"score_below": 51.0}, True),
        ({"score_below": 50.0}, False),
    ],
)
def test_a_row_is_searched_as_finished_views_are(asked: dict[str, str], *, is_found: bool) -> None:
    row = {"viewer": "x", "video_title": "Cup final", "error_code": "E1", "score_view": 50.0}
    assert matches(msgspec.convert({"customer": "acme", **asked}, AskedOpenViews), row) == is_found
    nothing = {"viewer": None, "video_title": None, "error_code": None, "score_view": None}
    assert matches(msgspec.convert({"customer": "acme", **asked}, AskedOpenViews), nothing) == (asked == {})
