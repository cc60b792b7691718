"""The whole timeline of one view, made from the beacons behind it: a row keeps the first events alone. Pure.

What beacons mean is the processor's fold, which this asks (`whole_timeline`): a second fold could say something else.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from services.processor.applications.video_views.bounds import TIMELINE_EVENTS_MAX
from services.processor.applications.video_views.whole_timeline import Refolding, Told, WholeTimeline
from services.query.core.resources.view.one_view import Row
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
    If they are not, or if these beacons are more than the row counts, or if it is not sure which play of a session the row is of,
    then others are missing, and `events` is empty.
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
    timelines = refolding.timelines(are_all=False)
    if not timelines:
        return TimelineOfView(row["view_id"], [], 0, 0, is_cut, agrees=True)
    place = _place(row, timelines)
    if place is None:
        return TimelineOfView(row["view_id"], [], 0, 0, is_cut, agrees=False)
    found = timelines[place]
    is_all = not is_cut and found.beacon_count == row["beacon_count"]
    if is_all:
        found = refolding.timelines(are_all=True)[place]
    if found.beacon_count > row["beacon_count"] or not _agree(row, found, is_all=is_all):
        return TimelineOfView(row["view_id"], [], found.beacon_count, 0, is_cut, agrees=False)
    events = [_told(one) for one in found.events[:EVENTS_MAX]]
    is_long = len(found.events) > EVENTS_MAX
    known_to_ms = max(0, events[-1].at_ms) if is_long else found.known_to_ms
    return TimelineOfView(row["view_id"], events, found.beacon_count, known_to_ms, is_cut or is_long, agrees=True)


def _place(row: Row, timelines: Sequence[WholeTimeline]) -> int | None:
    """Which of these is of the play that the row is of; None if it is none of them, or may be several.

    The number of the play does not say it: beacons of plays long before are not read. Its first beacon came when the row's did.
    """
    if not SOURCES[row["source"]].has_plays:
        return 0
    alike = [at for at, one in enumerate(timelines) if one.first_append_ms == row["first_append_ms"]]
    if len(alike) > 1:
        # They came in one body.
        alike = [at for at in alike if timelines[at].start_ms == row["view_start_ms"]]
    return alike[0] if len(alike) == 1 else None


def _agree(row: Row, found: WholeTimeline, *, is_all: bool) -> bool:
    """Whether the row has what it keeps of these events, and no others if they are of all its beacons."""
    stored = [TimelineEvent(**{name: one.get(name) for name in _FIELDS}) for one in row.get("events") or ()]
    kept = [one.event for one in found.events[:TIMELINE_EVENTS_MAX]]
    return kept == (stored if is_all else stored[: len(kept)])


def _told(one: Told) -> ToldEvent:
    code, message = (None, None) if one.said is None else (one.said.code, one.said.message)
    return ToldEvent(
        **msgspec.structs.asdict(one.event),
        code=(code or "")[:TEXT_CHARS_MAX] or None,
        message=(message or "")[:TEXT_CHARS_MAX] or None,
    )
