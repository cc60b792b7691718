"""The intake of CMCD version 2 in event mode (CTA-5004-B): one record a line; the customer is in the path.

A record's session id is its view id: the fold separates the plays within one session.
"""

from typing import Any, Final

from services.collector.intake.body import unpacked
from services.collector.intake.cmcd.syntax import CmcdSyntaxError, parsed_dictionary
from services.collector.intake.offsets import Stamp, clock_offsets_ms
from services.collector.intake.post import (
    InvalidInput,
    ParsedBody,
    Post,
    Rejected,
    Rules,
    check_invalid,
    checked_customer,
    checked_event,
    checked_view_id,
    claimed_customer,
    claimed_view_id,
    commons,
    rejected_body,
)
from services.collector.intake.sender.client import sender_of
from services.collector.intake.values import check_attrs, checked_sequence, checked_time_ms, promoted_whole, whole
from shared.schemas.beacon import Beacon

#: The newest version of CMCD understood; a record of a newer one must not be read as if it were of this.
VERSION_MAX: Final = 2

#: Characters of one record; players send some 300.
RECORD_CHARS_MAX: Final = 256 * 1024
#: Members, items and parameters of one body. A full batch of 3,600 records holds some 90,000.
ITEMS_MAX: Final = 131_072
STATE_CHARS_MAX: Final = 8
#: What is no part of a record, a byte order mark among it: a client may join bodies that each begin with one.
_BETWEEN_RECORDS: Final = " \t\r\ufeff"

#: The prefix of the name (`cen`) of Playhead's custom event: a fatal error, its code follows. For players that report no fatal
#: errors.
FATAL_ERROR: Final = "playhead-error:"

_CANONICAL: Final = {
    "bc": "rendition",
    "rr": "request",
    "e": "error",
    "t": "heartbeat",
    "abs": "ad",
    "abe": "ad",
    "as": "ad",
    "ae": "ad",
    "sk": "ad",
    "b": "background",
}
#: Event `ps` (the play state changed) by the new state.
_CANONICAL_STATES: Final = {
    "s": "viewstart",
    "p": "playing",
    "a": "pause",
    "r": "rebufferstart",
    "k": "seekstart",
    "f": "error",
    "e": "ended",
    "q": "viewend",
}


def parse_records(post: Post, rules: Rules) -> ParsedBody:
    """The POST's beacons; an invalid line is rejected alone, an invalid body as a whole."""
    try:
        customer = checked_customer(post.key, post, rules)
    except InvalidInput as invalid:
        return rejected_body(post, invalid, claimed_customer(post.key, rules))
    try:
        text = _text(_checked_items(unpacked(post, rules), rules))
        lines = [line for raw in text.split("\n") if (line := raw.strip(_BETWEEN_RECORDS))]
        if len(lines) > rules.batch_beacons_max:
            raise InvalidInput("too_large", f"{len(lines)} records in one body; {rules.batch_beacons_max} are the most")
        if not lines:
            raise InvalidInput("invalid", "the body holds no record")
    except InvalidInput as invalid:
        return rejected_body(post, invalid, customer.id)
    records: list[tuple[str, dict[str, Any]]] = []
    rejected: list[Rejected] = []
    for line in lines:
        post.pause()
        try:
            records.append((line, _parsed(line)))
        except InvalidInput as invalid:
            rejected.append(_rejected_line(line, {}, customer.id, invalid))
            check_invalid(len(rejected), post)
    common = commons(post, post.key, customer.id, sender_of(post.client, customer.terms), rules)
    # No field holds when the request was sent.
    times_ms = [whole(record.get("ts")) for _, record in records]
    offsets = clock_offsets_ms(times_ms, post.recv_time_ms, lambda: [_stamp(record) for _, record in records])
    # A body shorter than the longest string allowed holds none that is too long.
    may_be_long = len(text) > rules.attrs_string_chars_max
    accepted: list[Beacon] = []
    for (line, record), offset in zip(records, offsets, strict=True):
        post.pause()
        try:
            accepted.append(_beacon(dict(record), rules, common, offset, may_be_long=may_be_long))
        except InvalidInput as invalid:
            rejected.append(_rejected_line(line, record, customer.id, invalid))
            check_invalid(len(rejected), post)
    return ParsedBody(accepted, rejected)


def _checked_items(body: bytes, rules: Rules) -> bytes:
    """The body; raises `InvalidInput` when it may hold more than it may. What separates lines, members and items is counted."""
    lines = body.count(b"\n")
    # Each line may end with two such characters, or be empty.
    if lines > 2 * rules.batch_beacons_max:
        raise InvalidInput("too_large", f"{lines} lines in one body; {rules.batch_beacons_max} records are the most")
    items = body.count(b",") + body.count(b";") + body.count(b" ") + body.count(b"\t")
    if items > ITEMS_MAX:
        raise InvalidInput("too_large", f"the body may hold {items} values; {ITEMS_MAX} are the most")
    return body


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("undecodable", f"the body is not UTF-8: {error.reason}") from error


def _parsed(line: str) -> dict[str, Any]:
    if len(line) > RECORD_CHARS_MAX:
        raise InvalidInput("too_large", f"the record takes {len(line)} characters; {RECORD_CHARS_MAX} are the most")
    try:
        return parsed_dictionary(line)
    except CmcdSyntaxError as error:
        raise InvalidInput("undecodable", f"the record is no structured dictionary: {error}") from error


def _stamp(record: dict[str, Any]) -> Stamp:
    # The time of a response report is the start of its request.
    return Stamp(str(record.get("sid")), whole(record.get("sn")), whole(record.get("ts")), record.get("e") != "rr")


def _beacon(
    attrs: dict[str, Any], rules: Rules, common: dict[str, Any], clock_offset_ms: int | None, *, may_be_long: bool
) -> Beacon:
    version = attrs.get("v", 1)
    if not isinstance(version, int) or version > VERSION_MAX:
        raise InvalidInput("unknown_version", f"CMCD version {version!r} is newer than {VERSION_MAX}")
    check_attrs(attrs, rules, values=may_be_long)
    view_id = checked_view_id(attrs.pop("sid", None))
    event = checked_event(attrs.get("e"))
    client_time_ms = checked_time_ms(attrs.pop("ts", None), "ts")
    seq = checked_sequence(attrs.pop("sn", None), "sn")
    if seq is None:
        raise InvalidInput(
            "unnumbered", "the record has no sn: without sequence numbers no view can be made of a session"
        )
    playhead_ms = promoted_whole(attrs, "pt")
    state = attrs.get("sta")
    if not isinstance(state, str) or len(state) > STATE_CHARS_MAX:
        state = ""
    return Beacon(
        source="cmcd",
        view_id=view_id,
        event=_canonical(event, state, attrs),
        source_event=f"{event}:{state}" if state else event,
        client_time_ms=client_time_ms,
        seq=seq,
        clock_offset_ms=clock_offset_ms,
        playhead_ms=playhead_ms,
        attrs=attrs,
        **common,
    )


def _canonical(event: str, state: str, attrs: dict[str, Any]) -> str:
    if event == "ce" and str(attrs.get("cen")).startswith(FATAL_ERROR):
        return "error"
    if event == "ps":
        return _CANONICAL_STATES.get(state, "custom")
    return _CANONICAL.get(event, "custom")


def _rejected_line(line: str, record: dict[str, Any], customer_id: str, invalid: InvalidInput) -> Rejected:
    return Rejected(
        reason=invalid.reason,
        detail=invalid.detail,
        value=line.encode(),
        customer_id=customer_id,
        view_id=claimed_view_id(record.get("sid")),
    )
