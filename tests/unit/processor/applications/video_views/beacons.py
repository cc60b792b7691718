"""Beacons for stories: short to write, real in shape. Times are ms after `T0` of the player's clock."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

import msgspec

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.schemas.live import BUCKET_MS, Live
from shared.schemas.view import View

T0 = 1_790_000_000_000
#: The broker's clock is two seconds ahead of the player's.
SKEW_MS = 2_000
RULES = FinishRules()
#: Stories with long silences run on a faster clock: each 5 s of it make a live bucket, which costs more than a beacon.
FASTER = 60
#: `RULES` for such stories.
FAST_RULES = FinishRules(**{name: ms // FASTER for name, ms in asdict(RULES).items()})
MINUTE_MS = 60_000
HOUR_MS = 3_600_000

Drive = Callable[..., Driver]


def mux(
    seq: int, event: str, at_ms: int, *, view_id: str = "v1", playhead_ms: int | None = None, **attrs: object
) -> Beacon:
    """A mux beacon with long attribute names."""
    return Beacon(
        schema_version=1,
        source="mux",
        customer_id="acme",
        view_id=view_id,
        event=event,
        source_event=event,
        recv_time_ms=T0 + at_ms + SKEW_MS,
        client_time_ms=T0 + at_ms,
        clock_offset_ms=SKEW_MS,
        seq=seq,
        playhead_ms=playhead_ms,
        attrs=dict(attrs),
    )


def cmcd(seq: int, event: str, at_ms: int, *, view_id: str = "s1", **attrs: object) -> Beacon:
    """A CMCD beacon; `event` is the canonical name."""
    return Beacon(
        schema_version=1,
        source="cmcd",
        customer_id="acme",
        view_id=view_id,
        event=event,
        source_event=event,
        recv_time_ms=T0 + at_ms + SKEW_MS,
        client_time_ms=T0 + at_ms,
        clock_offset_ms=SKEW_MS,
        seq=seq,
        attrs=dict(attrs),
    )


def stepped(beacon: Beacon, by_ms: int) -> Beacon:
    """The beacon after the client's clock was set forward by so much; back, if it is negative."""
    client_time_ms, offset_ms = beacon.client_time_ms + by_ms, (beacon.clock_offset_ms or 0) - by_ms
    return msgspec.structs.replace(beacon, client_time_ms=client_time_ms, clock_offset_ms=offset_ms)


def watch() -> list[Beacon]:
    """A whole mux view: start 400 ms, one rebuffering of 2 s, a seek, a switch up, clean end."""
    return [
        mux(1, "viewstart", 0, view_start=T0, video_id="film", video_source_is_live=False, player_name="main"),
        mux(2, "rendition", 10, video_source_bitrate=1_000_000),
        mux(3, "playing", 400, view_time_to_first_frame=400, view_watch_time=400),
        mux(4, "rebufferstart", 5_400, view_rebuffer_count=1, view_watch_time=5_400),
        mux(5, "rebufferend", 7_400, view_rebuffer_duration=2_000, view_watch_time=7_400),
        mux(6, "rendition", 8_400, video_source_bitrate=3_000_000),
        mux(7, "seekstart", 9_400, view_watch_time=9_400),
        mux(8, "seekend", 9_900, view_seek_count=1, view_seek_duration=500, view_max_seek_time=500),
        mux(9, "heartbeat", 12_900, view_watch_time=12_900, view_max_playhead_position=9_500),
        mux(10, "viewend", 13_900, view_watch_time=13_900, view_playing_time_ms_cumulative=11_000),
    ]


def pipe(driver: Driver, beacon: Beacon, at_ms: int | None = None) -> None:
    """Appends the beacon at broker time `at_ms` (ms after T0; its own time where not given)."""
    key = view_key(beacon.customer_id, beacon.view_id)
    append_ms = beacon.client_time_ms + SKEW_MS if at_ms is None else T0 + at_ms
    driver.pipe(topics.BEACONS, key, codec.BEACON.encode(beacon), at_ms=append_ms)


def folded_fast(
    beacons: Sequence[Beacon], silent: Sequence[tuple[float, int]], rules: FinishRules = FAST_RULES
) -> Driver:
    """The beacons as they come, until all views have finished. `silent`: after which share of them nothing comes for so many ms
    of `RULES`.
    """
    driver = Driver(application(rules))
    records, at_ms = [], 0
    for number, beacon in enumerate(beacons):
        waited_ms = sum(pause_ms for share, pause_ms in silent if share * len(beacons) < number)
        at_ms = T0 + 20_000 + number + waited_ms // FASTER
        key = view_key(beacon.customer_id, beacon.view_id)
        records.append((topics.BEACONS, key, codec.BEACON.encode(beacon), at_ms))
    driver.pipe_all(records, commit_every=4)
    driver.advance_to(at_ms + rules.paused_ms + BUCKET_MS)
    return driver


def rows(driver: Driver) -> list[View]:
    """The rows that were emitted, in order."""
    return [codec.VIEW.decode(output.value) for output in driver.outputs(topics.VIEWS)]


def live(driver: Driver) -> list[Live]:
    """The live buckets that were emitted, in order."""
    return [codec.LIVE.decode(output.value) for output in driver.outputs(topics.LIVE)]


def driver_of(drive: Drive, rules: FinishRules = RULES) -> Driver:
    """A driver of video_views."""
    return drive(application(rules))
