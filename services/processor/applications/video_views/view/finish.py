"""When a view is over: by its end, or by silence, on the partition's clock. Times in ms."""

from typing import Final

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.view.finish_rules import MINUTE_MS, FinishRules
from services.processor.applications.video_views.view.progress.errors import has_failed
from services.processor.applications.video_views.view.progress.progress import Progress, last_seen
from services.processor.applications.video_views.view.state import ViewState
from shared.schemas.view import EndReason

#: Rebuffering in all after which a view that ends in it ended for that reason; mux-embed gives up then, too.
LONG_REBUFFER_MS: Final = 5 * MINUTE_MS


#: States after which little can come.
_IS_OVER: Final = frozenset({step.ENDED, step.FAILED})


def finishes_at_ms(view: ViewState, rules: FinishRules) -> int:
    """The clock time at which an open view finishes if nothing more comes."""
    progress = view.folded.progress
    ended, state, has_begun = progress.ended, progress.state, progress.has_begun
    # Steps that wait for a gap to close count, too.
    for held in view.order.waiting:
        ended |= held.ends
        state = held.state or state
        has_begun = has_begun or held.begins
    if ended & step.CLEAN_EXIT or view.play.is_superseded:
        quiet_ms = rules.clean_ms
    elif state in _IS_OVER:
        quiet_ms = rules.ended_ms
    elif state == step.PAUSED or not has_begun:
        quiet_ms = rules.paused_ms
    else:
        quiet_ms = rules.silent_ms
    return view.last_append_ms + quiet_ms


def writes_at_ms(view: ViewState, rules: FinishRules) -> int:
    """The clock time at which the row of an open view is written although the view continues."""
    return (view.written_ms or view.first_append_ms) + max(rules.view_max_ms, MINUTE_MS)


def has_begun(view: ViewState) -> bool:
    """Whether the key is a view at all: pages that only load send beacons too."""
    return view.folded.progress.has_begun or any(held.begins for held in view.order.waiting)


def due_ms(view: ViewState, rules: FinishRules) -> int:
    """The next clock time at which something happens to the view without a beacon."""
    if view.finished_ms:
        return view.finished_ms + rules.lateness_ms
    finishes_ms = min(finishes_at_ms(view, rules), writes_at_ms(view, rules))
    return min(finishes_ms, view.last_append_ms + rules.live_silence_ms) if view.shown.viewer else finishes_ms


def end_reason(progress: Progress, *, rebuffer_ms: int, is_superseded: bool) -> EndReason:
    """Why the view ended, from its beacons alone. `rebuffer_ms` is what the client itself counted, 0 where it does not."""
    if last_seen(progress) == step.REBUFFERING and max(progress.rebuffer_ms, rebuffer_ms) >= LONG_REBUFFER_MS:
        # Players that give up after so long end the view; the viewer did not.
        return "long_rebuffer"
    if progress.ended:
        return "clean"
    if has_failed(progress.errors):
        return "error"
    return "superseded" if is_superseded else "timeout"
