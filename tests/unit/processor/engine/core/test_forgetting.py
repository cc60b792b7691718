"""A record that deletes what is held of its key: state, quarantined state, and nothing of another key."""

import dataclasses
from collections.abc import Callable

from services.processor.applications.video_views.app import application as video_views
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared.codec import BEACON, VIEW
from shared.topics import BEACONS, LATE, REJECTED, VIDEO_VIEWS_CHANGELOG, VIEWS
from tests.unit.processor.applications.video_views.beacons import T0, mux, watch
from tests.unit.processor.engine.core.test_quarantine import RULED, poison, reasons

Drive = Callable[[Application], Driver]
FORGETTING = dataclasses.replace(RULED, is_forgetting=True)


def forget(driver: Driver, key: bytes, at_ms: int) -> None:
    driver.pipe(BEACONS, key, None, at_ms=at_ms)


def test_an_open_view_is_deleted_without_a_row_and_others_stay(drive: Drive) -> None:
    driver = drive(video_views(FinishRules()))
    for one in watch():
        for view in ("hers", "another"):
            beacon = mux(one.seq or 0, one.event, one.client_time_ms - T0, view_id=view, **one.attrs)
            driver.pipe(BEACONS, f"acme:{view}".encode(), BEACON.encode(beacon), at_ms=one.client_time_ms + 2_000)
        if one.event == "playing":
            break
    assert driver.tallies == {"open_views": 2}
    forget(driver, b"acme:hers", T0 + 60_000)
    assert driver.tallies == {"open_views": 1}
    driver.advance_to(T0 + 10 * 86_400_000)
    assert [VIEW.decode(output.value or b"").view_id for output in driver.outputs(VIEWS)] == ["another"]
    assert not driver.outputs(REJECTED)
    assert not driver.outputs(LATE)


def test_a_quarantined_key_is_deleted_with_what_is_kept_aside(drive: Drive) -> None:
    driver = drive(FORGETTING)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    poison(driver, b"a", 3)
    assert set(driver.quarantined) == {b"a"}
    forget(driver, b"a", 1001)
    assert not driver.quarantined
    assert reasons(driver) == ["fold_failed"] * 3
    # What comes later is of a new key: nothing of the former count is left.
    driver.pipe(BEACONS, b"a", b"", at_ms=1002)
    driver.advance_to(5000)
    assert [(output.key, output.value) for output in driver.outputs(VIEWS)] == [(b"a", b"1")]


def test_a_key_that_nothing_is_held_of_costs_nothing_and_other_applications_reject_such_a_record(drive: Drive) -> None:
    driver = drive(video_views(FinishRules()))
    forget(driver, b"acme:unknown", 1000)
    assert not driver.outputs(REJECTED)
    changed = dataclasses.replace(video_views(FinishRules()), is_forgetting=False, changelog=VIDEO_VIEWS_CHANGELOG)
    driver = drive(changed)
    forget(driver, b"acme:unknown", 1000)
    assert reasons(driver) == ["undecodable"]
