"""The intake of Playhead's own format: one beacon or a batch as JSON, or one beacon as a query string.

`NativeBeacon` and `Batch` define the format: bodies are decoded with them, and the published JSON Schema is generated from them.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec

from services.collector.intake.body import unpacked
from services.collector.intake.json_format import check_items, decoded, schema_of
from services.collector.intake.offsets import Stamp, clock_offsets_ms
from services.collector.intake.post import (
    InvalidInput,
    ParsedBody,
    Post,
    Rejected,
    Rules,
    check_invalid,
    checked_customer,
    claimed_customer,
    claimed_view_id,
    commons,
    rejected_body,
)
from services.collector.intake.sender.client import sender_of, without_viewer
from services.collector.intake.sender.customers import Found
from services.collector.intake.values import (
    WHOLE_MAX,
    check_attrs,
    check_not_sampled,
    whole,
    whole_characters,
)
from shared.codec import NO_JSON
from shared.schemas.beacon import VIEW_ID_CHARS_MAX, Beacon, Event

T = TypeVar("T")

#: Far below what a record holds, so that whether a beacon is stored is known beacon by beacon.
BEACON_BYTES_MAX: Final = 256 * 1024

_Whole = Annotated[int, msgspec.Meta(ge=0, le=WHOLE_MAX)]
_TimeMs = Annotated[int, msgspec.Meta(ge=0, le=WHOLE_MAX, description="The client's clock, ms since 1970.")]


class NativeBeacon(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event of one view."""

    view_id: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=VIEW_ID_CHARS_MAX,
            # See `post.NUL`.
            pattern=r"^[^\x00]*$",
            description="One attempt to play one video: a random id, say a UUID.",
        ),
    ]
    event: Event
    time_ms: _TimeMs
    seq: Annotated[
        _Whole | None,
        msgspec.Meta(
            description="Number of the beacon in its view, from 1, without gaps: it shows what never came, and whether "
            "two equal beacons are one that was sent twice."
        ),
    ] = None
    playhead_ms: Annotated[_Whole | None, msgspec.Meta(description="Position in the video, ms.")] = None
    full_snapshot: Annotated[bool, msgspec.Meta(description="Whether attrs holds all there is, not what changed.")] = (
        False
    )
    attrs: Annotated[
        dict[str, Any],
        msgspec.Meta(description="What else is known, by the names in docs/clients.md; others are kept."),
    ] = {}


class Batch(msgspec.Struct, Generic[T], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Beacons of one customer, of one view or several, in their order."""

    beacons: list[T]
    sent_time_ms: _TimeMs | None = None


class _Either(msgspec.Struct):
    beacons: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Named(msgspec.Struct):
    """The field of a rejected beacon that names its view. All else is passed over, not built."""

    view_id: str | None = None


_named: Final = msgspec.json.Decoder(_Named)
_either: Final = msgspec.json.Decoder(_Either)
_batch: Final = msgspec.json.Decoder(Batch[msgspec.Raw])
_beacon: Final = msgspec.json.Decoder(NativeBeacon)

#: Query parameters that are fields of a beacon and not attributes; `key` and `sent_time_ms` are the request's.
_QUERY_NUMBERS: Final = frozenset({"time_ms", "seq", "playhead_ms"})
_QUERY_TEXTS: Final = frozenset({"view_id", "event"})


@cache
def json_schema() -> bytes:
    """The JSON Schema (2020-12) of a body."""
    return schema_of("Playhead beacons", NativeBeacon, Batch[NativeBeacon])


def parse_beacons(post: Post, rules: Rules) -> ParsedBody:
    """The POST's beacons; an invalid item is rejected with its index in the batch, an invalid body as a whole."""
    try:
        customer = checked_customer(post.key, post, rules)
    except InvalidInput as invalid:
        return rejected_body(post, invalid, claimed_customer(post.key, rules))
    try:
        body = unpacked(post, rules)
        check_items(body, rules)
        raws, sent_time_ms = _opened(body)
        if len(raws) > rules.batch_beacons_max:
            raise InvalidInput("too_large", f"{len(raws)} beacons in one body; {rules.batch_beacons_max} are the most")
    except InvalidInput as invalid:
        return rejected_body(post, invalid, customer.id)
    read: list[tuple[NativeBeacon | InvalidInput, bytes]] = []
    invalid_count = 0
    for raw in map(bytes, raws):
        post.pause()
        one = _read(raw, rules)
        read.append((one, raw))
        invalid_count += isinstance(one, InvalidInput)
        check_invalid(invalid_count, post)
    return _parsed_beacons(read, sent_time_ms, post, rules, customer)


def parse_query(query: Iterable[tuple[str, str]], post: Post, rules: Rules) -> ParsedBody:
    """The one beacon of a GET: fields by their names, everything else an attribute. `post.body` is the query string."""
    try:
        customer = checked_customer(post.key, post, rules)
    except InvalidInput as invalid:
        return rejected_body(post, invalid, claimed_customer(post.key, rules))
    pairs = {whole_characters(name): whole_characters(value) for name, value in query}
    pairs.pop("key", None)
    pairs.pop("token", None)
    sent_time_ms = whole(pairs.pop("sent_time_ms", None))
    fields: dict[str, Any] = {name: pairs.pop(name) for name in _QUERY_TEXTS & pairs.keys()}
    for name in _QUERY_NUMBERS & pairs.keys():
        text = pairs.pop(name)
        number = whole(text)
        fields[name] = text if number is None else number
    read: NativeBeacon | InvalidInput
    try:
        read = msgspec.convert(fields | {"attrs": pairs}, NativeBeacon)
        _check(read, rules)
    except msgspec.ValidationError as error:
        read = InvalidInput("invalid", str(error))
    except InvalidInput as invalid:
        read = invalid
    return _parsed_beacons([(read, post.body)], sent_time_ms, post, rules, customer)


def _opened(body: bytes) -> tuple[list[msgspec.Raw], int | None]:
    if decoded(_either, body, "body").beacons is msgspec.UNSET:
        return [msgspec.Raw(body)], None
    batch = decoded(_batch, body, "body")
    return batch.beacons, batch.sent_time_ms


def _read(raw: bytes, rules: Rules) -> NativeBeacon | InvalidInput:
    if len(raw) > BEACON_BYTES_MAX:
        return InvalidInput("too_large", f"the beacon takes {len(raw)} bytes; {BEACON_BYTES_MAX} are the most")
    try:
        beacon = decoded(_beacon, raw, "beacon")
        _check(beacon, rules)
    except InvalidInput as invalid:
        return invalid
    return beacon


def _check(beacon: NativeBeacon, rules: Rules) -> None:
    check_attrs(beacon.attrs, rules, values=True)
    check_not_sampled(beacon.attrs.get("sample_rate"), "sample_rate")


def _parsed_beacons(
    read: list[tuple[NativeBeacon | InvalidInput, bytes]],
    sent_time_ms: int | None,
    post: Post,
    rules: Rules,
    customer: Found,
) -> ParsedBody:
    sender = sender_of(post.client, customer.terms)
    common = commons(post, post.key, customer.id, sender, rules)
    times_ms = [beacon.time_ms if isinstance(beacon, NativeBeacon) else None for beacon, _ in read]
    offsets = clock_offsets_ms(times_ms, post.recv_time_ms, lambda: _stamps(read), sent_time_ms=sent_time_ms)
    accepted: list[Beacon] = []
    rejected: list[Rejected] = []
    for place, ((beacon, raw), offset) in enumerate(zip(read, offsets, strict=True)):
        if isinstance(beacon, InvalidInput):
            rejected.append(_rejected(beacon, raw, customer.id, place))
        else:
            if sender.is_private:
                without_viewer(beacon.attrs)
            accepted.append(_canonical(beacon, sent_time_ms, offset, common))
    return ParsedBody(accepted, rejected)


def _stamps(read: Sequence[tuple[NativeBeacon | InvalidInput, bytes]]) -> list[Stamp]:
    """Beacons without numbers are in the order of their batch."""
    return [
        Stamp(beacon.view_id, place if beacon.seq is None else beacon.seq, beacon.time_ms)
        if isinstance(beacon, NativeBeacon)
        else Stamp(None, None, None)
        for place, (beacon, _) in enumerate(read, 1)
    ]


def _canonical(
    beacon: NativeBeacon,
    sent_time_ms: int | None,
    clock_offset_ms: int | None,
    common: dict[str, Any],
) -> Beacon:
    return Beacon(
        source="native",
        view_id=beacon.view_id,
        event=beacon.event,
        source_event=beacon.event,
        client_time_ms=beacon.time_ms,
        seq=beacon.seq,
        sent_time_ms=sent_time_ms,
        clock_offset_ms=clock_offset_ms,
        playhead_ms=beacon.playhead_ms,
        full_snapshot=beacon.full_snapshot,
        attrs=beacon.attrs,
        **common,
    )


def _rejected(invalid: InvalidInput, value: bytes, customer_id: str, place: int) -> Rejected:
    return Rejected(
        reason=invalid.reason,
        detail=invalid.detail,
        value=value,
        customer_id=customer_id,
        view_id=_claimed_view_id(value),
        place=place,
    )


def _claimed_view_id(value: bytes) -> str | None:
    try:
        return claimed_view_id(_named.decode(value).view_id)
    except NO_JSON:
        return None
