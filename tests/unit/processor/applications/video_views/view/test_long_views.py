"""Views that go on for more than a day: finished by their own end, all of them in one row, written once a day until then."""

from dataclasses import replace

import pytest

from services.processor.applications.video_views.app import application
from services.processor.engine.driver import Driver
from shared import topics
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    T0,
    cmcd,
    live,
    mux,
    pipe,
    rows,
)

WATCHED_MS = 50 * HOUR_MS


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["mux", "cmcd"])
def test_50_hours_watched_are_50_hours_in_one_row(source: str) -> None:
    driver = Driver(application(RULES))
    number = 0
    for at_ms in range(0, WATCHED_MS, MINUTE_MS):
        number = at_ms // MINUTE_MS
        if source == "mux":
            event = {0: "viewstart", 1: "playing"}.get(number, "heartbeat")
            pipe(driver, mux(number + 1, event, at_ms, view_watch_time=at_ms, video_source_bitrate=1_000))
        else:
            event = {0: "viewstart"}.get(number, "heartbeat")
            pipe(driver, cmcd(number, event, at_ms, sta="p", pb=1))
    end = mux if source == "mux" else cmcd
    more = {"view_watch_time": WATCHED_MS} if source == "mux" else {"sta": "q"}
    pipe(driver, end(number + 1 + (source == "mux"), "viewend", WATCHED_MS, **more))
    driver.advance_to(T0 + WATCHED_MS + 30 * MINUTE_MS)
    found: list[View] = rows(driver)
    assert [row.revision for row in found] == [1, 2, 3]
    assert [(row.end_reason, row.complete) for row in found] == [("timeout", False)] * 2 + [("clean", True)]
    last = found[-1]
    assert (last.watch_ms, last.gap_count, last.clock_step_count, last.late_count) == (WATCHED_MS, 0, 0, 0)
    assert last.bitrate_time_ms == WATCHED_MS - (MINUTE_MS if source == "mux" else 0)
    assert last.beacon_count == number + 2
    assert len(driver.outputs(topics.LATE)) == 0
    buckets = live(driver)
    assert [sum(getattr(one, name) for one in buckets) for name in ("views_finished", "views_revised")] == [1, 2]
    assert buckets[-1].open_now == 0


def test_a_view_that_goes_on_is_revised_once_a_minute_at_the_most() -> None:
    often = replace(RULES, view_max_ms=1_000)
    driver = Driver(application(often))
    pipe(driver, mux(1, "viewstart", 0))
    for number in range(1, 601):
        pipe(driver, mux(number + 1, "heartbeat", 1_000 * number, view_watch_time=1_000 * number))
    found: list[View] = rows(driver)
    assert [row.revision for row in found] == [*range(1, len(found) + 1)]
    assert 9 <= len(found) <= 10
