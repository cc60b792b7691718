"""The timeline of a view: all that draws its life, errors of every kind among it."""

from typing import Literal

import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, T0, Drive, cmcd, driver_of, mux, pipe, rows
from tests.unit.processor.applications.video_views.row import test_definitions
from tests.unit.processor.applications.video_views.test_real_players import row_of
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed


def events(drive: Drive, story: list[Beacon]) -> list[tuple[int, str]]:
    driver = driver_of(drive)
    for beacon in story:
        pipe(driver, beacon)
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    return [(event.at_ms, event.event) for event in row.events]


def test_an_error_that_the_player_does_not_call_fatal_is_reported(drive: Drive) -> None:
    story = [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(1, "playing", 500, sta="p"),
        cmcd(2, "error", 2_000, e="e", sta="p", ec=27),
        cmcd(3, "heartbeat", 3_000, sta="p"),
        cmcd(4, "error", 4_000, e="e", ec=28),
        cmcd(5, "ended", 6_000, sta="e"),
    ]
    assert events(drive, story) == [
        (0, "viewstart"),
        (500, "playing"),
        (2_000, "error"),
        (4_000, "error"),
        (6_000, "ended"),
    ]


def test_a_tab_that_failed_adds_one_error_until_something_plays_again(drive: Drive) -> None:
    story = [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(1, "playing", 500, sta="p"),
        cmcd(2, "error", 2_000, e="e", sta="f", ec=27),
        *(cmcd(3 + n, "heartbeat", 12_000 + n * 10_000, e="t", sta="f") for n in range(300)),
        cmcd(303, "heartbeat", 3_100_000, e="t", sta="p"),
        cmcd(304, "heartbeat", 3_110_000, e="t", sta="f"),
    ]
    assert events(drive, story) == [
        (0, "viewstart"),
        (500, "playing"),
        (2_000, "error"),
        (3_100_000, "playing"),
        (3_110_000, "error"),
    ]


def test_the_errors_of_a_real_player_that_calls_none_fatal_are_reported(drive: Drive) -> None:
    row = row_of(drive, "cmcd-dash.js-5.2.1-error.txt")
    assert [event.event for event in row.events].count("error") >= 1
    assert row.playback_failed


def test_a_second_fatal_error_is_reported_too(drive: Drive) -> None:
    story = [
        mux(1, "viewstart", 0),
        mux(2, "error", 900, player_error_code="2"),
        mux(3, "error", 1_900, player_error_code="3"),
    ]
    assert events(drive, story) == [(0, "viewstart"), (900, "error"), (1_900, "error")]


@pytest.mark.parametrize("source", ["mux", "native", "epas"])
def test_what_the_client_calls_a_warning_is_reported_as_one_and_fails_nothing(
    drive: Drive, source: Literal["mux", "native", "epas"]
) -> None:
    if source == "mux":
        story = [mux(1, "viewstart", 0), mux(2, "warning", 900, player_error_code="2"), mux(3, "playing", 1_900)]
    else:
        story = [timed(source, "viewstart", 0), timed(source, "warning", 900), timed(source, "playing", 1_900)]
    assert events(drive, story) == [(0, "viewstart"), (900, "warning"), (1_900, "playing")]


def test_a_seek_before_anything_else_was_reported_leads_back_to_nothing(drive: Drive) -> None:
    story = [
        timed("epas", "seekstart", 0),
        timed("epas", "seekend", 700),
        timed("epas", "viewstart", 1_000),
        timed("epas", "playing", 2_000),
    ]
    # Times count from the start of the view.
    assert events(drive, story) == [(-1_000, "seekstart"), (0, "viewstart"), (1_000, "playing")]


def test_the_timeline_is_the_beginning_of_a_life_without_end(drive: Drive) -> None:
    story = [mux(1, "viewstart", 0)]
    story += [mux(2 + n, "pause" if n % 2 else "playing", 1_000 * (n + 1)) for n in range(300)]
    row = test_definitions.row_of(drive, story)
    assert len(row.events) == 200
    assert [(event.at_ms, event.event) for event in row.events[:3]] == [
        (0, "viewstart"),
        (1_000, "playing"),
        (2_000, "pause"),
    ]
    assert row.beacon_count == 301
