"""A view's timeline: whatever it holds, its bytes are those of all events packed together, and it gives them back."""

import msgspec
import pytest

from services.processor.applications.video_views.bounds import BITRATE_BPS_MAX, TIMELINE_EVENTS_MAX
from services.processor.applications.video_views.view.progress.progress import Progress, copied
from services.processor.applications.video_views.view.progress.timeline import (
    NO_EVENTS,
    events_of,
    with_event,
)
from shared.schemas.view import NUMBER_MAX

SMALL = (0, 1, 0, 0)
LARGE = (NUMBER_MAX, 37, NUMBER_MAX, BITRATE_BPS_MAX)
BEFORE_1970 = (-1, 2, 300, 4_500_000)


# 15 and 16 are the largest array of the short form and the smallest of the long one.
@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, TIMELINE_EVENTS_MAX])
def test_its_bytes_are_those_of_all_events_packed_together(count: int) -> None:
    events = [(SMALL, LARGE, BEFORE_1970)[at % 3] for at in range(count)]
    timeline = NO_EVENTS
    for event in events:
        timeline = with_event(timeline, *event)
    assert bytes(memoryview(timeline)) == msgspec.msgpack.encode(events)
    assert events_of(timeline) == events


def test_the_first_events_are_kept() -> None:
    timeline = NO_EVENTS
    for at_ms in range(TIMELINE_EVENTS_MAX + 3):
        timeline = with_event(timeline, at_ms, 1, 0, 0)
    assert [event[0] for event in events_of(timeline)] == [*range(TIMELINE_EVENTS_MAX)]


def test_one_that_was_stored_goes_on() -> None:
    stored = Progress(timeline=with_event(NO_EVENTS, *SMALL))
    again = copied(stored)
    again.timeline = with_event(again.timeline, *LARGE)
    assert events_of(again.timeline) == [SMALL, LARGE]
    # The copy's event is its own.
    assert events_of(stored.timeline) == [SMALL]
    assert events_of(Progress().timeline) == []
