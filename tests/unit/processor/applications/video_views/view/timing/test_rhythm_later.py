"""A sleep while it plays, before the client's rhythm is known: the heartbeats after it show that it was a gap."""

import itertools
from typing import Any, Literal

import msgspec
import pytest

from tests.unit.processor.applications.video_views.beacons import MINUTE_MS
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import RATE, Event, beats, story

Client = Literal["cmcd", "epas", "native"]
CLIENTS: tuple[Client, ...] = ("cmcd", "epas", "native")
SIZES = {"player_width": 1280, "player_height": 720, "source_width": 640, "source_height": 360}


def slept(sleep_ms: int, beats_before: int, beats_after: int, event: str = "pause") -> list[Event]:
    """Plays, sleeps, and pauses before it plays and sends heartbeats again."""
    before = beats(11_000, 10_000 * beats_before + 1_000)
    at_ms = 10_000 * beats_before + 5_000 + sleep_ms
    after = beats(at_ms + 12_000, at_ms + 2_000 + 10_000 * beats_after)
    return [
        (0, "viewstart", None, SIZES),
        (1_000, "playing", None, RATE),
        *before,
        (at_ms, event, None, {}),
        (at_ms + 2_000, "playing", None, {}),
        *after,
        (at_ms + 100_000, "viewend", None, {}),
    ]


def played(row: dict[str, Any]) -> tuple[int, int, int, int]:
    return row["playing_ms"], row["bitrate_time_ms"], row["gap_ms"], row["gap_count"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("event", ["pause", "rebufferstart"])
def test_one_heartbeat_after_a_long_sleep_shows_that_it_was_a_gap(client: Client, event: str) -> None:
    sleep_ms = 20 * MINUTE_MS
    events = slept(sleep_ms, 0, 1, event)
    events[-1] = (sleep_ms + 60_000, "viewend", None, {})
    row = row_of(story(client, events))
    assert played(row) == (53_000, 53_000, sleep_ms + 4_000, 1)
    assert row["bitrate_integral"] == 53_000 * 2_000_000
    if client == "native":
        assert (row["scale_time_ms"], row["upscale_integral"]) == (53_000, 53_000.0)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("beats_before", "beats_after"), [(0, 4), (1, 4), (2, 4)])
def test_three_intervals_show_that_a_shorter_sleep_was_a_gap(
    client: Client, beats_before: int, beats_after: int
) -> None:
    awake = slept(0, beats_before, beats_after)
    plain = played(row_of(story(client, awake)))
    asleep = played(row_of(story(client, slept(3 * MINUTE_MS, beats_before, beats_after))))
    # Playing went on for some seconds, at most a heartbeat, before the device slept.
    assert asleep[3] == 1
    assert 0 <= plain[0] - asleep[0] <= 10_000
    assert asleep[0] + asleep[2] == plain[0] + 3 * MINUTE_MS


@pytest.mark.parametrize("client", CLIENTS)
def test_a_slow_rhythm_shows_that_nobody_slept(client: Client) -> None:
    events = slept(150_000, 0, 0)[:-1]
    at_ms = events[-1][0]
    events += [*beats(at_ms + 60_000, at_ms + 240_000, 60_000), (at_ms + 250_000, "viewend", None, {})]
    row = row_of(story(client, events))
    assert (row["gap_count"], row["playing_ms"]) == (0, 154_000 + 250_000)


@pytest.mark.parametrize("client", CLIENTS)
def test_without_any_heartbeat_no_rhythm_is_known(client: Client) -> None:
    row = row_of(story(client, slept(20 * MINUTE_MS, 0, 0)))
    assert row["gap_count"] == 0


def test_the_contents_startup_time_holds_no_gap_that_the_rhythm_shows_later() -> None:
    """An ad plays, the device sleeps behind its end, and the content begins; then heartbeats come."""
    ads = [
        (1_000, "adbreakstart", "abs"),
        (1_100, "adplaying", "as"),
        (6_000, "adended", "ae"),
        (6_100, "adbreakend", "abe"),
    ]
    at_ms = 7_000 + 20 * MINUTE_MS
    events: list[Event] = [
        (0, "viewstart", None, {}),
        *((ad_ms, "ad", None, {"ad_event": kind, "name": name}) for ad_ms, kind, name in ads),
        (at_ms, "playing", None, {**RATE, "name": "ps:p", "e": "ps"}),
        *beats(at_ms + 10_000, at_ms + 50_000),
    ]
    # From its first frame on, records of an ad say that it plays.
    beacons = [
        msgspec.structs.replace(one, attrs=one.attrs | {"sta": "p"}) if one.source_event in ("as", "ae", "abe") else one
        for one in story("cmcd", events)
    ]
    row = row_of(beacons)
    assert (row["gap_count"], row["gap_ms"], row["content_startup_ms"]) == (1, at_ms - 6_100, 1_000)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_row_is_the_same_in_any_order(client: Client) -> None:
    beacons = story(client, slept(20 * MINUTE_MS, 0, 2))
    assert (
        len({str(row_of(list(order))) for order in itertools.islice(itertools.permutations(beacons), 0, 5_000, 250)})
        == 1
    )
