"""The state of a view, and what changes with it (docs/view.md, "State"). Times in ms."""

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.progress import started
from services.processor.applications.video_views.view.progress.progress import ON_ERROR, Progress, longest_seek_ms, note


def enter(progress: Progress, next_step: Step) -> None:
    """Takes in the state that a step gives."""
    before, after = progress.state, _led_to(progress, next_step.state)
    if after == step.PLAYING:
        # A record of CMCD that says that an ad's first frame was shown says the state, too.
        is_first = next_step.is_first_frame or next_step.ad == step.AD_PLAYING
        started.show(progress.started, next_step.at_ms, is_first_frame=is_first, state_before=before)
    if after == before:
        if next_step.state == step.FAILED and next_step.reports_error:
            note(progress, next_step, ON_ERROR)
        return
    if before == step.SEEKING:
        progress.longest_seek_ms = longest_seek_ms(progress)
    if after == step.SEEKING:
        progress.seek_count += 1
        progress.seek_ms_before = progress.seek_ms
        progress.state_before_seek = before
    elif after == step.REBUFFERING and progress.playing_at_ms and next_step.state == step.REBUFFERING:
        # A seek within it ends no stall: the same one goes on.
        progress.rebuffer_count += 1
    elif after == step.PLAYING and not progress.playing_at_ms:
        progress.playing_at_ms = next_step.at_ms
    elif after == step.FAILED:
        progress.errors.is_fatal = True
    if after == step.ENDED and before:
        progress.state_before_end = before
    progress.state = after
    # If the client sent nothing before its seek, there is no state to go back to.
    if after:
        note(progress, next_step, after)


def _led_to(progress: Progress, given: int) -> int:
    """The state after a step that gives the state `given`."""
    before = progress.state
    if given == step.BEFORE_SEEK:
        return progress.state_before_seek if before == step.SEEKING else before
    if given == step.WANTED:
        return before if before and progress.playing_at_ms else step.STARTING
    if given == step.STALL_OVER:
        return step.PLAYING if progress.playing_at_ms else step.STARTING
    if given == step.REBUFFERING and before in (step.SEEKING, step.FAILED):
        # Players report the wait for what the viewer sought: it is the seek's, which lasts until something plays. What
        # failed is waited for in vain.
        return before
    return given
