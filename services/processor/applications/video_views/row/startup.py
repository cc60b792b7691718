"""Start-up times of a view's row, and whether it started at all (docs/view.md, "Whether and when a view played"). Times in ms."""

from typing import Any, NamedTuple

from services.processor.applications.video_views.bounds import STEP_MS_MAX
from services.processor.applications.video_views.view.progress.progress import Progress
from shared.schemas.view import NUMBER_MAX, StartupUnknown


class Startup(NamedTuple):
    """The start-up time, or why it is not known and the most that it can have been."""

    has_started: bool
    startup_ms: int | None = None
    unknown: StartupUnknown | None = None
    ms_max: int | None = None


def startup_ms_of(progress: Progress, counters: dict[str, Any], *, counts_itself: bool) -> int | None:
    """The client's counter; else, of clients that do not count, the time from the beginning to the first frame."""
    startup_ms: int | None = counters.get("startup_ms")
    if startup_ms is None and not counts_itself and not progress.started.is_begun_late:
        return _since_begun(progress, progress.started.first_frame_at_ms, progress.clock.gap_ms_before_play)
    return startup_ms


def startup_of(progress: Progress, counters: dict[str, Any], *, counts_itself: bool) -> Startup:
    """The start-up time of a view, or what is known of it."""
    started = progress.started
    startup_ms = startup_ms_of(progress, counters, counts_itself=counts_itself)
    if startup_ms is not None:
        return Startup(has_started=True, startup_ms=startup_ms)
    played_at_ms = started.played_at_ms
    if not started.has_played:
        if not counters.get("rebuffer_count"):
            return Startup(has_started=False, unknown="not_started")
        # The client counted stalls, some time before its last beacon: it had played.
        played_at_ms = progress.at_ms
    if started.is_begun_late and not counts_itself:
        return Startup(has_started=True, unknown="start_lost")
    bound_ms = _since_begun(progress, played_at_ms, progress.clock.gap_ms_before_play)
    return Startup(has_started=True, unknown="first_frame_lost", ms_max=bound_ms)


def startup_fields(progress: Progress, counters: dict[str, Any], startup: Startup) -> dict[str, Any]:
    """Startup of content, player, page, and all together (Mux, understand metric definitions: startup time metrics).

    The content's start-up time is from the wish to play to its first frame, without ad breaks. The aggregate is page load +
    player startup + video startup, and only the first view of a page has one.
    """
    startup_ms = startup.startup_ms
    content_ms = counters.get("content_startup_ms")
    ads = progress.ads
    if content_ms is None and ads is None:
        content_ms = startup_ms
    elif content_ms is None and progress.content_at_ms and ads is not None and startup_ms is not None:
        begun_ms = _since_begun(progress, progress.content_at_ms, progress.clock.gap_ms_before_content) or 0
        content_ms = max(0, begun_ms - ads.before_content_ms)
    page_ms, player_ms = counters.get("page_load_ms"), counters.get("player_startup_ms")
    aggregate_ms = counters.get("aggregate_startup_ms")
    is_first = counters.get("player_view_count", 1) == 1
    if aggregate_ms is None and is_first and page_ms is not None and player_ms is not None and startup_ms is not None:
        aggregate_ms = min(page_ms + player_ms + startup_ms, NUMBER_MAX)
    return {
        "startup_unknown": startup.unknown,
        "startup_ms_max": startup.ms_max,
        "content_startup_ms": content_ms,
        "player_startup_ms": player_ms,
        "page_load_ms": page_ms,
        "aggregate_startup_ms": aggregate_ms,
    }


def _since_begun(progress: Progress, at_ms: int, gap_ms: int) -> int | None:
    """The time from the beginning to `at_ms`, less the gaps in it; None if `at_ms` is not known."""
    if not at_ms:
        return None
    # The client's clock may be set back between the two, or forward by years.
    return min(max(0, at_ms - progress.begun_at_ms - gap_ms), STEP_MS_MAX)
