"""A record that deletes what is held of its key: state, quarantined state, and nothing of another key."""

import dataclasses
from collections.abc import Callable

import pytest

from services.processor.applications.video_views.app import application as video_views
from services.processor.applications.video_views.stores import Stores
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared.codec import BEACON, VIEW
from shared.topics import BEACONS, LATE, REJECTED, VIDEO_VIEWS_CHANGELOG, VIEWS
from tests.unit.processor.applications.video_views.beacons import T0, cmcd, mux, watch
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


def play(driver: Driver, session: str, first_seq: int, at_ms: int, *, is_over: bool) -> None:
    """A play of a CMCD session, with content of its own."""
    stages = (("viewstart", "s"), ("playing", "p"), ("heartbeat", "p"), *((("viewend", "q"),) if is_over else ()))
    for number, (event, sta) in enumerate(stages):
        beacon = cmcd(first_seq + number, event, at_ms + number * 1_000, view_id=session, sta=sta, cid=f"film {at_ms}")
        driver.pipe(BEACONS, f"acme:{session}".encode(), BEACON.encode(beacon), at_ms=beacon.client_time_ms + 2_000)


@pytest.mark.parametrize("are_named", [True, False])
def test_all_plays_of_a_session_are_deleted_also_those_that_have_finished_or_closed(
    drive: Drive, monkeypatch: pytest.MonkeyPatch, *, are_named: bool
) -> None:
    """Where the session's row cannot be read, its plays are looked for."""
    if not are_named:
        monkeypatch.delattr(Stores, "play_keys")
    rules = FinishRules()
    driver = drive(video_views(rules))
    for session in ("s1", "s10"):
        play(driver, session, 0, 0, is_over=True)
        play(driver, session, 4, 100_000, is_over=True)
    driver.advance_to(T0 + 100_000 + rules.lateness_ms + 2 * rules.clean_ms)
    assert driver.rows["closed"] == 4
    late_ms = rules.lateness_ms + 3 * rules.clean_ms
    for session in ("s1", "s10"):
        play(driver, session, 0, 200_000 + late_ms, is_over=True)
        play(driver, session, 4, 300_000 + late_ms, is_over=False)
    of_one = {"views": 2, "dimensions": 2, "closed": 2, "sessions": 1}
    assert {name: driver.rows[name] for name in of_one} == {name: 2 * number for name, number in of_one.items()}
    rows = len(driver.outputs(VIEWS))
    forget(driver, b"acme:s1", T0 + 310_000 + late_ms)
    assert {name: driver.rows[name] for name in of_one} == of_one
    driver.advance_to(T0 + 10 * 86_400_000)
    assert {VIEW.decode(output.value or b"").view_id for output in driver.outputs(VIEWS)[rows:]} == {"s10.3", "s10.4"}
    assert driver.tallies == {"open_views": 0}
    assert not driver.outputs(REJECTED)


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
