"""Players whose clock counts from their own start: the first beacon has the time 0."""

from typing import Any

import msgspec
import pytest

from services.processor.applications.video_views.whole_timeline import Refolding
from shared import codec
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import T0, cmcd, folded_fast, rows
from tests.unit.processor.applications.video_views.view.timing.stories import CLIENTS, RATE, Client, Event, story

AD = {"ad_event": "adplaying", "name": "adplaying"}
PLAYED: list[Event] = [
    (0, "viewstart", 0, {}),
    (0, "playing", 0, RATE),
    (5_000, "rebufferstart", 5_000, {}),
    (9_000, "rebufferend", 5_000, {}),
    (11_000, "heartbeat", 7_000, {}),
    (20_000, "viewend", 16_000, {}),
]
#: Stories in which something else than the beginning is at the time 0.
STORIES: dict[str, list[Event]] = {
    "played": PLAYED,
    "started": [(0, "viewstart", None, {}), (700, "playing", None, RATE), *PLAYED[2:]],
    "by the playhead": [(0, "viewstart", 0, {}), (5_000, "heartbeat", 4_000, RATE), *PLAYED[3:]],
    "ad": [(0, "viewstart", None, {}), (0, "ad", None, AD), (3_000, "playing", None, RATE), *PLAYED[2:]],
    "failed": [(0, "viewstart", None, {}), (0, "error", None, {"error_code": "7"}), *PLAYED[4:]],
}


def from_zero(beacons: list[Beacon]) -> list[Beacon]:
    """The same beacons by a clock that shows 0 at the first of them."""
    return [
        msgspec.structs.replace(
            one,
            client_time_ms=one.client_time_ms - T0,
            sent_time_ms=None if one.sent_time_ms is None else one.sent_time_ms - T0,
            clock_offset_ms=(one.clock_offset_ms or 0) + T0,
        )
        for one in beacons
    ]


def row_of(beacons: list[Beacon]) -> View:
    return rows(folded_fast(beacons, ()))[-1]


def is_same(field: str, one: Any, other: Any) -> bool:
    """Whether two values of a field are equal, to within the millisecond by which a time of 0 is off."""
    if isinstance(one, bool) or not isinstance(one, int | float) or other is None:
        return bool(one == other)
    return abs(one - other) <= (RATE["bitrate_bps"] if field == "bitrate_integral" else 1)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", STORIES)
def test_a_view_that_begins_at_time_0_has_its_row(client: Client, name: str) -> None:
    beacons = story(client, STORIES[name])
    by_epoch, by_zero = (msgspec.to_builtins(row_of(one)) for one in (beacons, from_zero(beacons)))
    events, others = by_epoch.pop("events"), by_zero.pop("events")
    fields = by_epoch | by_zero
    assert {field for field in fields if not is_same(field, by_epoch.get(field), by_zero.get(field))} == set()
    assert [one["event"] for one in events] == [one["event"] for one in others]
    assert all(abs(one["at_ms"] - other["at_ms"]) <= 1 for one, other in zip(events, others, strict=True))


def test_what_a_native_view_from_time_0_says() -> None:
    """Nothing had played, and its stall was none."""
    row = row_of(from_zero(story("native", PLAYED)))
    assert (row.startup_ms, row.playing_ms, row.rebuffer_count, row.rebuffer_ms) == (0, 15_999, 1, 4_000)
    assert (row.complete, row.bitrate_time_ms, row.view_end_ms - row.view_start_ms) == (True, 15_999, 19_999)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_whole_timeline_of_a_view_from_time_0_is_that_of_its_row(client: Client) -> None:
    beacons = from_zero(story(client, PLAYED))
    refolding = Refolding(client)
    for number, one in enumerate(beacons):
        refolding.take(T0 + number, codec.BEACON.encode(one))
    (whole,) = refolding.timelines(are_all=True)
    row = row_of(beacons)
    assert ([one.event for one in whole.events], whole.start_ms) == (row.events, row.view_start_ms)


def test_a_request_that_began_at_time_0_shows_that_it_played() -> None:
    """The end of a request counts from its time, and is a sign of playing."""
    beacons = from_zero(
        [
            cmcd(0, "viewstart", 0, sta="s"),
            cmcd(1, "request", 0, sta="p", rc=200, ttfb=40, ttlb=120, name="rr"),
            cmcd(2, "heartbeat", 10_000, sta="p"),
        ]
    )
    row = row_of(beacons)
    assert (row.startup_unknown, row.startup_ms_max, row.req_time_ms) == ("first_frame_lost", 120, 120)
