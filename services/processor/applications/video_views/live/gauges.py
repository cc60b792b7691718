"""Keeps the live gauges' idea of each view current: started, open, watching, rebuffering, failed, and in which cohort."""

from collections.abc import Sequence
from typing import Any, Final

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.live.buckets import LiveBuckets
from services.processor.applications.video_views.live.rows import CohortRow, LiveRow
from services.processor.applications.video_views.row.startup import startup_ms_of
from services.processor.applications.video_views.view.dimensions import stated_of
from services.processor.applications.video_views.view.finish import has_begun
from services.processor.applications.video_views.view.state import ViewState, complete_progress, since
from services.processor.engine.application.application import Context
from shared.schemas.view import View
from shared.sources import SOURCES

#: The tally of views that have begun and not finished.
OPEN_VIEWS: Final = "open_views"

_NOT_WATCHED: Final = frozenset({step.PAUSED, step.ENDED, step.FAILED})
#: The dimension that is no attribute of a beacon.
_SOURCE: Final = "source"
_NOT_SHOWN: Final = 0
_WATCHING: Final = 1
REBUFFERING: Final = 2


class Gauges:
    """Counts views into their customers' open buckets; what a view counts as stands in its own row."""

    def __init__(self, context: Context, buckets: LiveBuckets, dimensions: tuple[str, ...]) -> None:
        self._context = context
        self._buckets = buckets
        self._dimensions = dimensions

    def note(
        self, view: ViewState, dimensions: dict[str, Any], row: LiveRow, *, dimensions_changed: bool = True
    ) -> None:
        """The view has changed by a beacon."""
        progress, shown = view.folded.progress, view.shown
        # Of most beacons nothing changes: the view has begun, and is counted as started and open.
        if not (progress.has_begun and shown.is_started and shown.is_open) or view.finished_ms:
            self.count(view, row, dimensions)
        state = progress.state
        is_watched = shown.is_open and not view.play.is_superseded and state not in _NOT_WATCHED
        if not is_watched:
            self._note_outcome(view, row, dimensions)
            self._show(view, row, _NOT_SHOWN, 0, [])
            return
        viewer = REBUFFERING if state == step.REBUFFERING else _WATCHING
        bitrate_bps = progress.bitrate_bps if state == step.PLAYING else 0
        known = shown.slices
        if dimensions_changed or not known or not self._buckets.is_cohort(known[0]):
            known = self._cohort(row, view, dimensions)
        self._show(view, row, viewer, bitrate_bps, known)
        # Of most beacons the outcome stays: the start-up time is counted, and nothing has failed.
        if shown.startup_ms is None or shown.has_failed or progress.errors.is_fatal:
            self._note_outcome(view, row, dimensions)

    def hide(self, view: ViewState, row: LiveRow) -> None:
        """The view is not being watched any more, or has sent nothing for long."""
        self._show(view, row, _NOT_SHOWN, 0, [])

    def count(self, view: ViewState, row: LiveRow, dimensions: dict[str, Any]) -> None:
        """Counts the view as started (in the cohort it began in) and open, or no longer."""
        begun, shown = has_begun(view), view.shown
        if begun != shown.is_started:
            # What waits for a gap to close has begun all the same: its cohort is of what waits, too.
            named = self._cohort(row, view, complete_progress(view, dimensions)[1]) if begun else shown.started_in
            if SOURCES[view.source].has_plays:
                # A play may turn out to be part of another one: what was counted for it must be known then.
                shown.started_in = named if begun else []
            self._start(row, named, 1 if begun else -1)
            shown.is_started = begun
        is_open = begun and not view.finished_ms
        if is_open != shown.is_open:
            self._count_open(row, 1 if is_open else -1)
            shown.is_open = is_open

    def close(self, view: ViewState, row: LiveRow) -> None:
        """The view is given up without a finish."""
        self.hide(view, row)
        self._count_open(row, -int(view.shown.is_open))
        view.shown.is_open = False

    def forget(self, view: ViewState, row: LiveRow) -> None:
        """The view turned out to be none: what was counted for it is taken back."""
        self.hide(view, row)
        shown = view.shown
        if shown.is_started:
            self._start(row, shown.started_in, -1)
        for counts in self._both(row, shown.started_in):
            counts.startups -= shown.startup_ms is not None
            counts.startup_ms -= shown.startup_ms or 0
            counts.failures -= shown.has_failed
        self._count_open(row, -int(shown.is_open))
        row.dropped -= view.dropped_count

    def _count_open(self, row: LiveRow, change: int) -> None:
        row.open_now += change
        self._context.tally(OPEN_VIEWS, change)

    def finish(self, row: LiveRow, finished: View) -> None:
        """The view has finished for the first time."""
        for counts in self._both(row, self._named(row, {name: getattr(finished, name) for name in self._dimensions})):
            counts.views_finished += 1
            counts.playback_failures += finished.playback_failed
            counts.startup_failures += finished.startup_failed
            counts.exits_before_start += finished.ebvs
            counts.finished_watch_ms += finished.watch_ms
            counts.finished_rebuffer_ms += finished.rebuffer_ms
            counts.finished_rated += finished.spi_good is not None
            counts.finished_bad += finished.spi_good is False

    def _note_outcome(self, view: ViewState, row: LiveRow, dimensions: dict[str, Any]) -> None:
        """Counts a start-up time once it is known, and a failure when it is reported; takes one back if playback goes on."""
        shown, progress = view.shown, view.folded.progress
        startup_ms = None
        if shown.startup_ms is None and progress.started.has_played:
            counters = since(progress, view.play.counters_before)
            startup_ms = startup_ms_of(progress, counters, counts_itself=SOURCES[view.source].counts_itself)
        # An error that is not called fatal is no failure yet: most players go on.
        failed = progress.errors.is_fatal and not (progress.failure is not None and progress.failure.business)
        if not shown.is_started or (startup_ms is None and failed == shown.has_failed):
            return
        for counts in self._both(row, shown.slices or self._cohort(row, view, dimensions)):
            if startup_ms is not None:
                counts.startups += 1
                counts.startup_ms += startup_ms
            counts.failures += failed - shown.has_failed
        shown.startup_ms = shown.startup_ms if startup_ms is None else startup_ms
        shown.has_failed = failed

    def _start(self, row: LiveRow, named: list[str], change: int) -> None:
        for counts in self._both(row, named):
            counts.views_started += change

    def _cohort(self, row: LiveRow, view: ViewState, dimensions: dict[str, Any]) -> list[str]:
        return self._named(row, {**stated_of(dimensions, self._dimensions), _SOURCE: view.source})

    def _named(self, row: LiveRow, values: dict[str, Any]) -> list[str]:
        return [self._buckets.cohort_name(row, values)] if self._dimensions else []

    def _both(self, row: LiveRow, named: list[str]) -> list[LiveRow | CohortRow]:
        """The customer's counts and those of the cohort, if one is named that is of the present dimensions."""
        return [row, *[self._buckets.cohort(row, name) for name in named if self._buckets.is_cohort(name)]]

    def _show(self, view: ViewState, row: LiveRow, viewer: int, bitrate_bps: int, named: list[str]) -> None:
        shown = view.shown
        if viewer == shown.viewer and bitrate_bps == shown.bitrate_bps and named == shown.slices:
            return
        before, after = _part(shown.viewer, shown.bitrate_bps), _part(viewer, bitrate_bps)
        if named == shown.slices:
            self._add(row, named, [new - old for new, old in zip(after, before, strict=True)])
        else:
            self._add(row, shown.slices, [-old for old in before])
            self._add(row, named, after)
        shown.viewer, shown.bitrate_bps, shown.slices = viewer, bitrate_bps, named

    def _add(self, row: LiveRow, named: list[str], part: Sequence[int]) -> None:
        viewers, stalled, bitrate_bps, rated = part
        for counts in self._both(row, named):
            counts.viewers_now += viewers
            counts.rebuffering_now += stalled
            counts.bitrate_bps_now += bitrate_bps
            counts.bitrate_viewers_now += rated


def _part(viewer: int, bitrate_bps: int) -> Sequence[int]:
    """What a view adds to the gauges of its customer and cohort, as `_add` takes it."""
    return (viewer > 0, viewer == REBUFFERING, bitrate_bps, bitrate_bps > 0)
