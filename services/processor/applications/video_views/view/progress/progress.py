"""Progress: what the steps of a view amount to. Times in ms, bitrates in bps."""

from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Failure, Step
from services.processor.applications.video_views.bounds import STEP_MS_MAX
from services.processor.applications.video_views.view.progress.ads import Ads
from services.processor.applications.video_views.view.progress.delivery import Requests, Scale
from services.processor.applications.video_views.view.progress.errors import Errors
from services.processor.applications.video_views.view.progress.started import Started
from services.processor.applications.video_views.view.progress.timeline import NO_EVENTS, with_event
from services.processor.applications.video_views.view.timing.clock_state import Clock
from services.processor.applications.video_views.view.timing.silence import Unjudged

#: Codes of the timeline beside the states (step.STARTING ...).
ON_RENDITION: Final = 20
#: An error beside a change of state: one that the client does not call fatal, or one more after a fatal one; a warning.
ON_ERROR: Final = 21
ON_WARNING: Final = 22
ON_AD: Final = 30


class Progress(msgspec.Struct, array_like=True, gc=False):
    """What the steps folded so far amount to."""

    state: int = 0
    state_before_seek: int = 0
    #: The last timed step; 0 before the first.
    at_ms: int = 0
    begun_at_ms: int = 0
    last_at_ms: int = 0
    playing_at_ms: int = 0
    has_begun: bool = False
    #: How it has ended, of PLAYED_OUT and CLEAN_EXIT; 0: it has not.
    ended: int = 0
    playhead_ms: int = 0
    bitrate_bps: int = 0
    #: Our own integration of states; which of it counts is the row's business.
    playing_ms: int = 0
    watch_ms: int = 0
    rebuffer_ms: int = 0
    rebuffer_count: int = 0
    seek_ms: int = 0
    seek_count: int = 0
    longest_seek_ms: int = 0
    #: `seek_ms` when the last seek began.
    seek_ms_before: int = 0
    #: A row has `INTEGRAL_MAX` at the most. Here what `unjudged` may take back is beside it.
    bitrate_integral: int = 0
    bitrate_time_ms: int = 0
    rendition_up: int = 0
    rendition_down: int = 0
    #: The client's own counters, newest values.
    counters: dict[str, Any] = {}
    failure: Failure | None = None
    #: The state before the end: what the viewer saw last.
    state_before_end: int = 0
    latency_sum_ms: int = 0
    latency_count: int = 0
    requests: Requests | None = None
    ads: Ads | None = None
    scale: Scale | None = None
    cdn_trace: list[str] = []
    #: Packed: see `timeline`.
    timeline: msgspec.Raw = NO_EVENTS
    #: Stalls that the client reported one by one: their number and sum.
    stalls_reported: int = 0
    stalls_reported_ms: int = 0
    started: Started = msgspec.field(default_factory=Started)
    clock: Clock = msgspec.field(default_factory=Clock)
    errors: Errors = msgspec.field(default_factory=Errors)
    #: When the first frame of the content was shown (0: its beacon is not known), and whether any content has played.
    content_at_ms: int = 0
    content_has_played: bool = False
    #: SIGNED, NOT_SIGNED, or 0.
    signature: int = 0
    #: The smallest values of counters that may be a session's: they show whether the client counted again from 0.
    least_counters: dict[str, int] = {}
    #: Silences while it played before the client's rhythm is known.
    unjudged: list[Unjudged] = []


def note(progress: Progress, next_step: Step, code: int, at_ms: int | None = None) -> None:
    """Notes an event of the timeline, at its step's time or another one."""
    at_ms = next_step.at_ms if at_ms is None else at_ms
    progress.timeline = with_event(progress.timeline, at_ms, code, next_step.playhead or 0, progress.bitrate_bps)


def note_least(least: dict[str, int], counters: dict[str, int]) -> None:
    """Keeps the smallest value of each counter in `least`."""
    for name, value in counters.items():
        least[name] = min(value, least.get(name, value))


def longest_seek_ms(progress: Progress) -> int:
    """The longest time in one seek, also of a seek that has not ended."""
    if progress.state != step.SEEKING:
        return progress.longest_seek_ms
    return max(progress.longest_seek_ms, min(progress.seek_ms - progress.seek_ms_before, STEP_MS_MAX))


def last_seen(progress: Progress) -> int:
    """The state that the viewer saw last."""
    return progress.state_before_end if progress.state == step.ENDED else progress.state


def copied(progress: Progress) -> Progress:
    """A deep copy."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(progress), type=Progress)
