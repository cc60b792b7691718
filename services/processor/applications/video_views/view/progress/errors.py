"""Whether errors were fatal. What follows an error shows it (docs/view.md, "Failures of a CMCD play"). Times in ms."""

from typing import Final

import msgspec

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Step
from shared.requests.request import COMPLETED

#: States that follow playing because the viewer wants it, not because playback cannot go on.
_LEFT_BY_THE_VIEWER: Final = frozenset({step.PAUSED, step.SEEKING, step.ENDED})


class Errors(msgspec.Struct, array_like=True, gc=False):
    """What is known of the errors of a view."""

    #: The client called an error fatal, and nothing since shows that it was not.
    is_fatal: bool = False
    #: An error that was not called fatal, and no sign of playing since; and nothing but errors since.
    is_open: bool = False
    is_last: bool = False
    #: When the newest error was, and whether what was loaded played on when it was called fatal.
    at_ms: int = 0
    plays_on: bool = False
    #: Whether the client has sent any state.
    has_state: bool = False


def judge(errors: Errors, next_step: Step, before: int) -> None:
    """Takes in a step that is an error, or follows one; `before` is the state before the step."""
    errors.has_state = errors.has_state or next_step.reports_state
    if next_step.is_error or next_step.state == step.FAILED:
        errors.at_ms = next_step.at_ms
        errors.is_last = True
        if next_step.is_error:
            errors.is_open = True
        else:
            errors.is_fatal = True
            errors.plays_on = next_step.shows_playing
        return
    if not _is_after(errors, next_step):
        return
    errors.is_last = False
    has_played_out = next_step.ends == step.PLAYED_OUT
    is_left = next_step.state in _LEFT_BY_THE_VIEWER and before == step.PLAYING
    if next_step.shows_playing or has_played_out or is_left:
        errors.is_open = False
        if not errors.plays_on or next_step.is_first_frame or has_played_out:
            errors.is_fatal = False


def _is_after(errors: Errors, next_step: Step) -> bool:
    """Whether a step can show what came of the last error: of requests, one that was made after it and succeeded.

    A player that has given up asks for a segment once more, and repeats the code of its error.
    """
    request = next_step.request
    if request is None or next_step.is_timed:
        return True
    return next_step.at_ms > errors.at_ms and request.outcome == COMPLETED and not next_step.reports_error


def has_failed(errors: Errors) -> bool:
    """Whether an error ended playback: it was called fatal, or no sign of playing followed it."""
    return errors.is_fatal or (errors.is_open if errors.has_state else errors.is_last)
