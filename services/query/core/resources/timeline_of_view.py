"""The whole timeline of one view, made from the beacons behind it: a row keeps the first events alone. Pure.

What beacons mean is the processor's fold, which this asks (`whole_timeline`): a second fold could say something else.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final

import msgspec

from services.processor.applications.video_views.whole_timeline import Refolding, Told, WholeTimeline
from services.query.core.resources.one_view import Row
from shared.schemas.view import TimelineEvent
from shared.sources import SOURCES

#: Events of one answer; and characters of what a beacon says of an error.
EVENTS_MAX: Final = 5_000
TEXT_CHARS_MAX: Final = 300
#: What a fold may take, seconds of CPU time: beacons that came in order take half of it at the most.
FOLD_SECONDS_MAX: Final = 4.0


_FIELDS: Final = TimelineEvent.__struct_fields__


class ToldEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An event as a row has it. `code` and `message` are what the beacon of an error or a warning says, where that is known."""

    at_ms: int
    event: str
    playhead_ms: int | None = None
    bitrate_bps: int | None = None
    code: str | None = None
    message: str | None = None


class TimelineOfView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The timeline of a view, of the first `beacons_n` of its beacons; `is_cut`: there is more, which was not read.

    It is whole if it is not cut, and `beacons_n` is the `beacon_count` of the row: others are not in the warehouse. What the view
    did after `known_to_ms`, from its start, is not known. `agrees`: the events that the row has are the first ones of these.
    If they are not, beacons from before are missing, and `events` is empty.
    """

    view_id: str
    events: list[ToldEvent]
    beacons_n: int
    known_to_ms: int
    is_cut: bool
    agrees: bool


def timeline(row: Row, may_go_on: Callable[[], bool], rows: Sequence[Row], is_cut: bool) -> TimelineOfView:
    """The timeline of the row's view in these beacons, in the order of their append. `is_cut`: there are more.

    Stops as soon as `may_go_on` says so, which it asks before each beacon.
    """
    if row.get("source") not in SOURCES:
        return TimelineOfView(row["view_id"], [], 0, 0, is_cut, agrees=False)
    refolding = Refolding(row["source"])
    for one in rows:
        # What came after its last beacon is of another view, or came too late.
        if one["appended_ms"] > row["last_append_ms"]:
            is_cut = False
            break
        if not may_go_on():
            is_cut = True
            break
        refolding.take(one["appended_ms"], bytes(one["value"] or b""))
    stored = [TimelineEvent(**{name: one.get(name) for name in _FIELDS}) for one in row.get("events") or ()]
    timelines = refolding.timelines(are_all=False)
    if not timelines:
        return TimelineOfView(row["view_id"], [], 0, 0, is_cut, agrees=True)
    place = max(range(len(timelines)), key=lambda at: _alike(stored, timelines[at]))
    found = timelines[place]
    if not is_cut and found.beacon_count >= row["beacon_count"]:
        found = refolding.timelines(are_all=True)[place]
    if _alike(stored, found) < min(len(stored), len(found.events)):
        return TimelineOfView(row["view_id"], [], found.beacon_count, 0, is_cut, agrees=False)
    events = [_told(one) for one in found.events[:EVENTS_MAX]]
    is_long = len(found.events) > EVENTS_MAX
    known_to_ms = max(0, events[-1].at_ms) if is_long else found.known_to_ms
    return TimelineOfView(row["view_id"], events, found.beacon_count, known_to_ms, is_cut or is_long, agrees=True)


def _alike(stored: Sequence[TimelineEvent], found: WholeTimeline) -> int:
    """How many events are the same from the first one on: of the plays of a session that of the row has them all."""
    pairs = zip(stored, found.events, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1].event, pairs))


def _told(one: Told) -> ToldEvent:
    code, message = (None, None) if one.said is None else (one.said.code, one.said.message)
    return ToldEvent(
        **msgspec.structs.asdict(one.event),
        code=(code or "")[:TEXT_CHARS_MAX] or None,
        message=(message or "")[:TEXT_CHARS_MAX] or None,
    )
