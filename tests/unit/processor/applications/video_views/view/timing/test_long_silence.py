"""A view that goes on after a long silence: a gap in its row, or beacons of topic `late` (docs/view.md, "Views that go on")."""

import pytest

from services.processor.applications.video_views.app import application
from services.processor.engine.driver import Driver
from shared import topics
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, RULES, SKEW_MS, T0, pipe
from tests.unit.processor.applications.video_views.counted import assert_each_is_counted_once, newest
from tests.unit.processor.applications.video_views.view.timing.stories import (
    CLIENTS,
    RATE,
    Client,
    Event,
    beats,
    story,
)

#: Playing for a minute before the silence, and for a minute after it.
BEFORE: list[Event] = [(0, "viewstart", None, {}), (1_000, "playing", None, RATE), *beats(11_000, 61_000)]
PAUSED: list[Event] = [*BEFORE, (61_500, "pause", None, {})]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("before", "minutes", "is_late"),
    [(BEFORE, 64, False), (BEFORE, 66, True), (PAUSED, 119, False), (PAUSED, 121, True)],
)
def test_a_silence_of_more_than_65_minutes_ends_the_row_and_the_rest_is_late(
    client: Client, before: list[Event], minutes: int, is_late: bool
) -> None:
    from_ms = before[-1][0] + minutes * MINUTE_MS
    after: list[Event] = [
        (from_ms, "playing", None, {}),
        *beats(from_ms + 10_000, from_ms + 50_000),
        (from_ms + 60_000, "viewend", None, {}),
    ]
    beacons = story(client, [*before, *after])
    driver = Driver(application(RULES))
    for beacon in beacons:
        pipe(driver, beacon, beacon.recv_time_ms - T0)
    driver.advance_to(T0 + SKEW_MS + from_ms + 2 * HOUR_MS)
    assert_each_is_counted_once(driver, len(beacons), len(beacons))
    (row,) = newest(driver).values()
    assert len(driver.outputs(topics.LATE)) == (len(after) if is_late else 0)
    assert (row.end_reason, row.complete) == (("timeout", False) if is_late else ("clean", row.complete))
    assert row.beacon_count == len(before) + (0 if is_late else len(after))
    assert row.bitrate_time_ms == 60_000 + 500 * (before is PAUSED) + (0 if is_late else 60_000)
    assert row.gap_ms == (0 if is_late or before is PAUSED else minutes * MINUTE_MS)
