"""What a client states of its viewer wins over what the collector derives, and the first derived value over later ones."""

from typing import Any

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    T0,
    Drive,
    cmcd,
    live,
    mux,
    pipe,
    rows,
)
from tests.unit.processor.applications.video_views.row.test_definitions import row_of
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed

TV = {"browser": "MyTVApp", "os": "Tizen", "country": "FR", "asn": 64_501}
GUESS = {"browser": "Chrome", "os": "Linux", "device": "TV", "country": "DE", "asn": 64_496}
OTHER_GUESS = {"browser": "Safari", "os": "iOS", "device": "Phone", "country": "US", "asn": 64_497}


def derived(beacon: Beacon, guess: dict[str, Any]) -> Beacon:
    return msgspec.structs.replace(beacon, **guess)


def known(row: View) -> dict[str, Any]:
    return {name: getattr(row, name) for name in GUESS}


@pytest.mark.parametrize("later", ["play", "playing"])
def test_what_a_native_client_states_at_its_start_is_not_overwritten(drive: Drive, later: str) -> None:
    story = [derived(timed("native", "viewstart", 0, **TV), GUESS), derived(timed("native", later, 500), GUESS)]
    assert known(row_of(drive, story)) == TV | {"device": "TV"}
    # Nor is it where the statement comes after the guess.
    story = [derived(timed("native", "play", 0), GUESS), derived(timed("native", "playing", 500, **TV), OTHER_GUESS)]
    assert known(row_of(drive, story)) == TV | {"device": "TV"}


def test_what_an_epas_client_states_of_its_device_is_not_overwritten(drive: Drive) -> None:
    told = derived(timed("epas", "custom", 100, payload={"deviceModel": "MyTV 55"}), GUESS)
    story = [derived(timed("epas", "viewstart", 0), GUESS), told, derived(timed("epas", "playing", 500), OTHER_GUESS)]
    assert known(row_of(drive, story)) == GUESS | {"device": "MyTV 55"}


@pytest.mark.parametrize("source", ["native", "epas"])
def test_the_first_derived_values_stay(drive: Drive, source: Any) -> None:
    story = [derived(timed(source, "viewstart", 0), GUESS), derived(timed(source, "playing", 500), OTHER_GUESS)]
    assert known(row_of(drive, story)) == GUESS
    assert known(row_of(drive, story[::-1])) == GUESS
    # Where the first derived nothing, the next one may.
    story = [
        derived(timed(source, "viewstart", 0), {"os": "Linux"}),
        derived(timed(source, "playing", 500), OTHER_GUESS),
    ]
    assert known(row_of(drive, story)) == OTHER_GUESS | {"os": "Linux"}


def test_an_empty_statement_is_none(drive: Drive) -> None:
    story = [
        derived(mux(1, "viewstart", 0, viewer_device_name="Roku", viewer_os_family=""), GUESS),
        mux(2, "playing", 500, viewer_device_name=None),
    ]
    row = row_of(drive, story)
    assert (row.device, row.os, row.browser) == ("Roku", "Linux", "Chrome")


@pytest.mark.parametrize("later_count", [0, 3, 80])
@pytest.mark.parametrize("source", ["mux", "cmcd", "native", "epas"])
def test_of_a_beacon_that_came_twice_the_copy_received_first_decides(
    drive: Drive, source: Any, later_count: int
) -> None:
    if source == "mux":
        view = [mux(1, "viewstart", 0), *(mux(2 + n, "heartbeat", 500 + n) for n in range(later_count))]
    elif source == "cmcd":
        # Each record shows that there is a view; only the first one's derived values count.
        view = [cmcd(n, "heartbeat", n * 500, sta="p") for n in range(1 + later_count)]
    else:
        view = [timed(source, "viewstart", 0), *(timed(source, "heartbeat", 500 + n) for n in range(later_count))]
    first, *rest = [derived(one, OTHER_GUESS) for one in view]
    earlier = msgspec.structs.replace(derived(first, GUESS), recv_time_ms=first.recv_time_ms - 1)
    later = msgspec.structs.replace(derived(first, TV), recv_time_ms=first.recv_time_ms + 1)
    assert known(row_of(drive, [first, *rest, earlier, later])) == GUESS
    assert known(row_of(drive, [earlier, later, *rest, first])) == GUESS
    # Where the row was written before, it is revised.
    driver = drive(application(RULES))
    pipe(driver, first, 0)
    for beacon in (earlier, later):
        driver.advance_to(T0 + 10 * MINUTE_MS)
        pipe(driver, beacon, 10 * MINUTE_MS)
    driver.advance_to(T0 + HOUR_MS)
    assert [known(row) for row in rows(driver)] == [OTHER_GUESS, GUESS]


def test_the_live_gauges_know_what_is_derived(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("country", "os")))
    pipe(driver, derived(timed("native", "viewstart", 0, os="Tizen"), GUESS))
    pipe(driver, derived(timed("native", "playing", 500), OTHER_GUESS))
    driver.advance_to(driver.clock_ms + 10_000) if hasattr(driver, "clock_ms") else driver.advance_to(1_790_000_020_000)
    slices = {name for bucket in live(driver) for name in bucket.slices}
    assert slices == {"country=DE", "os=Tizen", "country,os=DE\x1fTizen"}
