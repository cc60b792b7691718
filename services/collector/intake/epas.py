"""The intake of EPAS (Eyevinn Player Analytics Specification 0.2 and 0.3): one event a POST; the key is in the path.

An event has no sequence number: the events of a session are ordered by their time. Source of names and units: the specification and
`@eyevinn/player-analytics-client-sdk-web` 0.2.0.
"""

import math
from typing import Any, Final

import msgspec

from services.collector.intake.body import unpacked
from services.collector.intake.json_format import check_items, parsed
from services.collector.intake.post import (
    InvalidInput,
    ParsedBody,
    Post,
    Rejected,
    Rules,
    checked_customer,
    checked_event,
    checked_view_id,
    claimed_customer,
    claimed_view_id,
    commons,
    rejected_body,
)
from services.collector.intake.sender.client import sender_of, without_viewer
from services.collector.intake.sender.customers import Found
from services.collector.intake.values import check_attrs, checked_time_ms, whole
from shared.schemas.beacon import Beacon

#: `loading` is the first event after the viewer, or autoplay, asked for the video. `stopped` is always the last.
_CANONICAL: Final = {
    "loading": "viewstart",
    "playing": "playing",
    "paused": "pause",
    "buffering": "rebufferstart",
    "buffered": "rebufferend",
    "seeking": "seekstart",
    "seeked": "seekend",
    "bitrate_changed": "rendition",
    "heartbeat": "heartbeat",
    "error": "error",
    "warning": "warning",
    "stopped": "viewend",
}
INIT: Final = "init"


class ParsedEvent(msgspec.Struct, frozen=True):
    """What one POST holds, and what its answer has: the session's id (None where none is known), whether it began."""

    parsed: ParsedBody
    session_id: str | None = None
    begins: bool = False


def parse_event(post: Post, rules: Rules, new_session_id: str) -> ParsedEvent:
    """The POST's beacon, or the rejected body. A session that begins without an id gets `new_session_id`."""
    try:
        customer = checked_customer(post.key, post, rules)
    except InvalidInput as invalid:
        return ParsedEvent(rejected_body(post, invalid, claimed_customer(post.key, rules)))
    try:
        body = unpacked(post, rules)
        check_items(body, rules)
        event = _event(body)
    except InvalidInput as invalid:
        return ParsedEvent(rejected_body(post, invalid, customer.id))
    session_id = event.get("sessionId")
    begins = event.get("event") == INIT
    if begins and not session_id:
        session_id = new_session_id
    try:
        beacon = _beacon(event, session_id, post, rules, customer)
    except InvalidInput as invalid:
        rejected = Rejected(
            reason=invalid.reason,
            detail=invalid.detail,
            value=body,
            customer_id=customer.id,
            view_id=claimed_view_id(session_id),
        )
        return ParsedEvent(ParsedBody([], [rejected]), claimed_view_id(session_id))
    return ParsedEvent(ParsedBody([beacon], []), beacon.view_id, begins)


def _event(body: bytes) -> dict[str, Any]:
    event = parsed(body)
    if not isinstance(event, dict):
        raise InvalidInput("invalid", "the body is JSON, but no object")
    return event


def _beacon(fields: dict[str, Any], session_id: object, post: Post, rules: Rules, customer: Found) -> Beacon:
    sender = sender_of(post.client, customer.terms)
    event = checked_event(fields.get("event"))
    time_ms = checked_time_ms(fields.get("timestamp"), "timestamp")
    attrs = _attrs(fields, post)
    check_attrs(attrs, rules, values=True)
    if sender.is_private:
        without_viewer(attrs)
    return Beacon(
        source="epas",
        view_id=checked_view_id(session_id),
        event=_CANONICAL.get(event, "custom"),
        source_event=event,
        client_time_ms=time_ms,
        clock_offset_ms=post.recv_time_ms - time_ms,
        playhead_ms=_ms(fields.get("playhead"), post),
        attrs=attrs,
        **commons(post, post.key, customer.id, sender, rules),
    )


def _attrs(fields: dict[str, Any], post: Post) -> dict[str, Any]:
    """The payload's fields, the fields beside it, and the duration in ms."""
    payload = fields.get("payload")
    attrs = {
        name: value
        for name, value in fields.items()
        if name not in {"event", "sessionId", "timestamp", "playhead", "duration", "payload"}
    }
    if isinstance(payload, dict):
        attrs |= payload
    elif payload is not None:
        attrs["payload"] = payload
    duration_ms = _ms(fields.get("duration"), post)
    if duration_ms is not None:
        attrs["duration"] = duration_ms
    return attrs


def _ms(value: object, post: Post) -> int | None:
    """A playhead or duration in ms; None where it is unknown (-1) or no number."""
    if post.in_seconds and isinstance(value, int | float) and not isinstance(value, bool):
        value = value * 1000.0 if math.isfinite(value) else None
    number = whole(value)
    return number if number is not None and number >= 0 else None
