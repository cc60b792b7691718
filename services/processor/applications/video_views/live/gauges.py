"""Keeps the live gauges' idea of each view current: started, open, watching, rebuffering, and in which slices."""

from typing import Any, Final

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.live.board import LiveBoard, LiveRow, SliceRow
from services.processor.applications.video_views.view.dimensions import stated
from services.processor.applications.video_views.view.finish import has_begun
from services.processor.applications.video_views.view.state import ViewState, complete_progress
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
_REBUFFERING: Final = 2


class Gauges:
    """Counts views into their customers' open buckets; what a view counts as stands in its own row."""

    def __init__(self, context: Context, board: LiveBoard, dimensions: tuple[str, ...]) -> None:
        self._context = context
        self._board = board
        self._dimensions = dimensions

    def note(self, view: ViewState, dimensions: dict[str, Any], row: LiveRow) -> None:
        """The view has changed by a beacon."""
        self.count(view, row, dimensions)
        progress = view.folded.progress
        state = progress.state
        if not view.shown.is_open or view.play.is_superseded or state in _NOT_WATCHED:
            self._show(view, row, _NOT_SHOWN, 0, [])
        else:
            shown = _REBUFFERING if state == step.REBUFFERING else _WATCHING
            bitrate_bps = progress.bitrate_bps if state == step.PLAYING else 0
            self._show(view, row, shown, bitrate_bps, self._slices(row, view, dimensions) if self._dimensions else [])

    def hide(self, view: ViewState, row: LiveRow) -> None:
        """The view is not being watched any more, or has sent nothing for long."""
        self._show(view, row, _NOT_SHOWN, 0, [])

    def count(self, view: ViewState, row: LiveRow, dimensions: dict[str, Any]) -> None:
        """Counts the view as started (in the slices it began in) and open, or no longer."""
        begun, shown = has_begun(view), view.shown
        if begun != shown.is_started:
            # What waits for a gap to close has begun all the same: its slices are of what waits, too.
            named = self._slices(row, view, complete_progress(view, dimensions)[1]) if begun else shown.started_in
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
        if view.shown.is_started:
            self._start(row, view.shown.started_in, -1)
        self._count_open(row, -int(view.shown.is_open))
        row.dropped -= view.dropped_count

    def _count_open(self, row: LiveRow, change: int) -> None:
        row.open_now += change
        self._context.tally(OPEN_VIEWS, change)

    def finish(self, row: LiveRow, finished: View) -> None:
        """The view has finished for the first time."""
        named = self._named(row, {name: getattr(finished, name) for name in self._dimensions})
        both: list[LiveRow | SliceRow] = [row, *self._board.slices_of(row, named)]
        for counts in both:
            counts.views_finished += 1
            counts.playback_failures += finished.playback_failed
            counts.startup_failures += finished.startup_failed
            counts.exits_before_start += finished.ebvs

    def _start(self, row: LiveRow, named: list[str], change: int) -> None:
        row.views_started += change
        for one in self._board.slices_of(row, named):
            one.views_started += change

    def _slices(self, row: LiveRow, view: ViewState, dimensions: dict[str, Any]) -> list[str]:
        return self._named(row, {**stated(dimensions), _SOURCE: view.source})

    def _named(self, row: LiveRow, values: dict[str, Any]) -> list[str]:
        found = ((name, values.get(name)) for name in self._dimensions)
        return [self._board.slice_name(row, name, str(value)) for name, value in found if value not in (None, "")]

    def _show(self, view: ViewState, row: LiveRow, viewer: int, bitrate_bps: int, slices: list[str]) -> None:
        shown = view.shown
        if viewer == shown.viewer and bitrate_bps == shown.bitrate_bps and slices == shown.slices:
            return
        before: list[LiveRow | SliceRow] = [row, *self._board.slices_of(row, shown.slices)]
        for counts in before:
            counts.viewers_now -= shown.viewer > 0
            counts.rebuffering_now -= shown.viewer == _REBUFFERING
            counts.bitrate_bps_now -= shown.bitrate_bps
            counts.bitrate_viewers_now -= shown.bitrate_bps > 0
        after: list[LiveRow | SliceRow] = [row, *self._board.slices_of(row, slices)]
        for counts in after:
            counts.viewers_now += viewer > 0
            counts.rebuffering_now += viewer == _REBUFFERING
            counts.bitrate_bps_now += bitrate_bps
            counts.bitrate_viewers_now += bitrate_bps > 0
        shown.viewer, shown.bitrate_bps, shown.slices = viewer, bitrate_bps, slices
