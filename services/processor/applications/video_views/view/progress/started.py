"""Whether and when a view played, from the signs of it: the beacon of the first frame may be lost. Client times in ms.

docs/view.md, "Whether and when a view played", has the rules.
"""

from typing import Final

import msgspec

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.timing.clock import RATE_MAX

#: Less is a player that goes to its first frame, not one that plays.
ADVANCE_MS_MIN: Final = 250

_FROM_THE_BEGINNING: Final = frozenset({step.STARTING, step.WANTED, step.REBUFFERING})
_HAS_NOT_PLAYED: Final = frozenset({step.STARTING, step.REBUFFERING})
_MAY_HAVE_PLAYED: Final = frozenset({step.REBUFFERING, step.PAUSED, step.SEEKING})


class Started(msgspec.Struct, array_like=True, gc=False):
    """What the steps show of the view's start."""

    has_played: bool = False
    #: The smallest time of a sign of playing.
    played_at_ms: int = 0
    #: Of the first frame of anything, an ad's too; 0 where its beacon is not known to be the first sign of playing.
    first_frame_at_ms: int = 0
    #: The beacon that begins the view gives a later state than that of a beginning.
    is_begun_late: bool = False
    #: Until it played: the newest number, and whether one is missing since the view began.
    last_seq: int = 0
    misses_numbers: bool = False
    #: Until it played: the newest playhead that was not sought, and when.
    playhead_ms: int | None = None
    playhead_at_ms: int = 0


def begin(started: Started, first: Step) -> None:
    """Takes in the step that begins the view."""
    started.is_begun_late = first.state not in _FROM_THE_BEGINNING
    started.last_seq = first.seq
    started.misses_numbers = False
    if started.playhead_ms is None and first.playhead is None:
        # The client may send a single playhead: it has come from the beginning, or is a start position.
        started.playhead_ms, started.playhead_at_ms = 0, first.at_ms


def count(started: Started, next_step: Step) -> None:
    """Takes in the number of a step of a view that has not played."""
    if next_step.seq > started.last_seq + 1:
        started.misses_numbers = True
    started.last_seq = max(started.last_seq, next_step.seq)


def advanced_ms(started: Started, next_step: Step, state: int) -> int:
    """How far the playhead has advanced by itself up to this timed step of a view that has not played; 0 where it has not."""
    if next_step.playhead is None or started.playhead_ms is None:
        return 0
    if state not in _HAS_NOT_PLAYED or next_step.state == step.SEEKING:
        return 0
    advance_ms = next_step.playhead - started.playhead_ms
    elapsed_ms = next_step.at_ms - started.playhead_at_ms
    return advance_ms if ADVANCE_MS_MIN <= advance_ms <= RATE_MAX * elapsed_ms else 0


def see_playhead(started: Started, next_step: Step, state: int) -> None:
    """Takes in the playhead of a timed step; `state` is the one after it."""
    if state == step.SEEKING:
        started.playhead_ms = None
    elif next_step.playhead is not None:
        started.playhead_ms, started.playhead_at_ms = next_step.playhead, next_step.at_ms


def show(started: Started, at_ms: int, *, is_first_frame: bool = False, state_before: int = 0) -> None:
    """Takes in a sign of playing; the beacon of the first frame is one, too."""
    if not started.has_played:
        started.has_played = True
        started.played_at_ms = at_ms
        may_be_a_later_one = started.misses_numbers and state_before in _MAY_HAVE_PLAYED
        if is_first_frame and not may_be_a_later_one:
            started.first_frame_at_ms = at_ms
    elif at_ms < started.played_at_ms:
        started.played_at_ms = at_ms
