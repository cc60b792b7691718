"""The view: one finished attempt to play one video. The value of topic `views` and one row of the warehouse.

Units: times in ms (ms since 1970 where the name says `_start_ms`, `_end_ms` or `append`), bitrates in bps, fractions 0..1, scale
integrals in ratio x ms. Integrals and counts are stored, not ratios, so that rollups are exact sums. None means that the source
does not provide the value.
"""

from typing import Annotated, Final, Literal

import msgspec

from shared.schemas.beacon import SourceName

SCHEMA_VERSION: Final = 1

#: What a client may claim: any longer time (ms since 1970 up to the year 2255) or larger count is no measurement.
NUMBER_MAX: Final = 9_000_000_000_000
#: More than 24 h at 10 Gbps. An integral that is larger is this in its row.
INTEGRAL_MAX: Final = 1 << 60

#: Every integer of a row has the bounds of its meaning: the processor keeps to them, the warehouse rejects what does not.
#: A count, or a time that lasts.
Amount = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
#: A time by a client's clock, corrected by an offset that is no better known.
CLIENT_TIME_MAX: Final = 2 * NUMBER_MAX
ClientTime = Annotated[int, msgspec.Meta(ge=-CLIENT_TIME_MAX, le=CLIENT_TIME_MAX)]
#: A time by the broker's clock.
AppendTime = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
#: A difference of two clocks.
Lag = Annotated[int, msgspec.Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)]
Integral = Annotated[int, msgspec.Meta(ge=0, le=INTEGRAL_MAX)]
#: Counted from 1.
Ordinal = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]

#: Why a start-up time is not known: nothing played; the view's beginning, or the beacon of its first frame, never came.
StartupUnknown = Literal["not_started", "start_lost", "first_frame_lost"]
#: The source of rebuffering: counters of the client, states that it reported, or single stalls that it reported.
RebufferSource = Literal["counters", "states", "stalls"]
EndReason = Literal["clean", "timeout", "error", "long_rebuffer", "superseded"]


class TimelineEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One event of a view's timeline; `at_ms` counts from the view's start."""

    at_ms: int
    event: str
    playhead_ms: int | None = None
    bitrate_bps: int | None = None


class View(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One row per view and revision; (generation, revision) orders the revisions of a view."""

    #: Always given and always written: an omitted value could not be distinguished from a later version's default.
    schema_version: Ordinal
    generation: Ordinal = 1
    revision: Ordinal
    customer_id: str
    view_id: str
    source: SourceName
    #: Which play of its key this is: 1, or 2, 3 ... where a client re-uses one session id.
    view_epoch: Ordinal = 1
    #: Days since 1970 (UTC) of the first beacon's append time; the same in every revision.
    day: Amount
    first_append_ms: AppendTime
    last_append_ms: AppendTime

    view_start_ms: ClientTime
    view_end_ms: ClientTime
    end_reason: EndReason
    view_dropped: bool
    truncated: bool = False

    session_id: str | None = None
    viewer_id: str | None = None
    viewer_user_id: str | None = None
    player_instance_id: str | None = None

    video_id: str | None = None
    video_title: str | None = None
    video_series: str | None = None
    stream_type: Literal["live", "vod"] | None = None
    video_duration_ms: Amount | None = None
    source_url: str | None = None
    source_host: str | None = None
    cdn: str | None = None
    cdn_trace: list[str] = []

    player_name: str | None = None
    player_software: str | None = None
    player_version: str | None = None
    player_width: Amount | None = None
    player_height: Amount | None = None
    autoplay: bool | None = None
    preload: str | None = None

    device: str | None = None
    os: str | None = None
    browser: str | None = None
    is_bot: bool = False
    connection: str | None = None
    country: str | None = None
    region: str | None = None
    city: str | None = None
    asn: Amount | None = None

    page_url: str | None = None
    custom: dict[str, str] = {}
    sub_property: str | None = None
    experiment: str | None = None

    startup_ms: Amount | None = None
    #: Why `startup_ms` is null; and where only the beacon of the first frame is missing, the most that it can have been.
    startup_unknown: StartupUnknown | None = None
    startup_ms_max: Amount | None = None
    content_startup_ms: Amount | None = None
    player_startup_ms: Amount | None = None
    page_load_ms: Amount | None = None
    aggregate_startup_ms: Amount | None = None

    watch_ms: Amount = 0
    playing_ms: Amount = 0
    content_playback_ms: Amount = 0
    max_playhead_ms: Amount = 0
    playback_ranges: list[list[int]] = []

    rebuffer_count: Amount = 0
    rebuffer_ms: Amount = 0
    rebuffer_source: RebufferSource | None = None
    #: Rebuffering / watch time (Mux); rebuffering / (rebuffering + playing) (CTA-2066). Of many views: ratios of sums.
    rebuffer_fraction: float | None = None
    rebuffer_ratio: float | None = None
    seek_count: Amount = 0
    seek_ms: Amount = 0
    max_seek_ms: Amount = 0

    #: The client's own counters minus our integration of its states: large ones mean that one of the two is wrong.
    watch_difference_ms: Lag | None = None
    playing_difference_ms: Lag | None = None
    rebuffer_difference_ms: Lag | None = None
    rebuffer_count_difference: Lag | None = None

    upscale_integral: float | None = None
    downscale_integral: float | None = None
    scale_time_ms: Amount | None = None
    max_upscale: float | None = None
    max_downscale: float | None = None

    #: bps x ms over the time in which playback ran at a known bitrate, and that time.
    bitrate_integral: Integral = 0
    bitrate_time_ms: Amount = 0
    avg_bitrate_bps: Amount | None = None
    rendition_up: Amount = 0
    rendition_down: Amount = 0

    live_latency_ms_avg: Lag | None = None

    req_count: Amount | None = None
    req_failed: Amount | None = None
    req_canceled: Amount | None = None
    req_bytes: Amount | None = None
    req_time_ms: Amount | None = None
    ttfb_sum_ms: Amount | None = None
    ttfb_max_ms: Amount | None = None
    dropped_frames: Amount | None = None

    error_code: str | None = None
    error_message: str | None = None
    error_context: str | None = None
    error_severity: str | None = None
    business_exception: bool = False
    playback_failed: bool = False
    startup_failed: bool = False
    #: Exit before video start: no first frame and no fatal error.
    ebvs: bool = False

    ad_breaks: Amount = 0
    ad_attempts: Amount = 0
    ad_impressions: Amount = 0
    ad_errors: Amount = 0
    ad_playing_ms: Amount = 0
    ad_preroll_breaks: Amount = 0
    ad_midroll_breaks: Amount = 0
    ad_postroll_breaks: Amount = 0
    ad_preroll_playing_ms: Amount = 0

    score_version: Amount | None = None
    score_startup: float | None = None
    score_smooth: float | None = None
    score_quality: float | None = None
    score_success: float | None = None
    score_view: float | None = None
    spi_good: bool | None = None

    #: Distinct beacons of this row; what came again;
    #: numbers of the sequence never seen; beacons that came too late to be put in their place.
    beacon_count: Amount
    duplicate_count: Amount = 0
    seq_gaps: Amount = 0
    late_count: Amount = 0
    #: Time without beacons in which the view should have sent some (the device slept), and how often that was.
    gap_ms: Amount = 0
    gap_count: Amount = 0
    #: How often the client's clock was seen to step (docs/view.md, "Time, gaps and clocks").
    clock_step_count: Amount = 0
    #: Whether the customer's server signed the view, so that all its beacons had a token; None: the customer signs none.
    signed: bool | None = None
    #: Whether the row rests on every beacon of the view: no number missing, not truncated, both ends seen.
    complete: bool = False

    #: Fields of this row that the player measured itself; the fold integrates the others from reported states.
    player_measured: list[str] = []

    events: list[TimelineEvent] = []

    #: A tombstone: the row was written for a view that does not exist. It replaces every older revision and counts nowhere.
    deleted: bool = False
