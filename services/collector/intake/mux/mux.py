"""The intake of mux-embed and the other Mux SDKs: `{"metadata": {...}, "events": [{...}, ...]}` with short field names.

The customer is in each event (`env_key`; on Roku `property_key`), and one POST may hold two views. Every event but the first,
`viewstart` and `viewend` carries only what changed.
"""

import contextlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from services.collector.intake.body import unpacked
from services.collector.intake.json_format import check_items, parsed, with_whole_characters
from services.collector.intake.mux.names import FullNames
from services.collector.intake.mux.shapes import FLAT_BODY, RAW_BODY
from services.collector.intake.mux.texts import read_texts
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
from services.collector.intake.sender.client import sender_of, without_viewer
from services.collector.intake.values import (
    WHOLE_MAX,
    check_attrs,
    check_not_sampled,
    checked_sequence,
    checked_time_ms,
    promoted_whole,
    whole,
)
from shared.codec import NO_JSON
from shared.schemas.beacon import Beacon

_CANONICAL: Final = {
    "viewstart": "viewstart",
    "play": "play",
    "playing": "playing",
    "pause": "pause",
    "rebufferstart": "rebufferstart",
    "rebufferend": "rebufferend",
    "seeking": "seekstart",
    "seeked": "seekend",
    "renditionchange": "rendition",
    "requestcompleted": "request",
    "requestfailed": "request",
    "requestcanceled": "request",
    "error": "error",
    "hb": "heartbeat",
    "ended": "ended",
    "viewend": "viewend",
    "devicesleep": "background",
    "devicewake": "background",
}
_FULL_SNAPSHOTS: Final = frozenset({"viewstart", "viewend"})

#: Equal to nothing that a client can send.
_NONE_YET: Final = object()

_full_names: Final = FullNames()


def parse_beacons(post: Post, rules: Rules) -> ParsedBody:
    """The POST's beacons; an invalid event is rejected alone, an invalid body as a whole."""
    try:
        body = unpacked(post, rules)
        check_items(body, rules)
        metadata, events, flat = _opened(body)
        if len(events) > rules.batch_beacons_max:
            raise InvalidInput("too_large", f"{len(events)} events in one body; {rules.batch_beacons_max} are the most")
    except InvalidInput as invalid:
        return rejected_body(post, invalid)
    # A body shorter than the longest string allowed holds none that is too long.
    trusted = flat and len(body) <= rules.attrs_string_chars_max
    reader = _Reader(post, rules, metadata, events, trusted=trusted)
    accepted: list[Beacon] = []
    rejected: list[Rejected] = []
    rejected_places: list[int] = []
    written: Sequence[msgspec.Raw] | None = None
    pause, read, accept = post.pause, reader.beacon, accepted.append
    for place, event in enumerate(events):
        pause()
        try:
            accept(read(event, place))
        except InvalidInput as invalid:
            if written is None:
                written = _as_written(body)
            as_it_came = bytes(written[place]) if len(written) == len(events) else None
            rejected.append(_rejected_event(event, as_it_came, post, rules, invalid))
            rejected_places.append(place)
            check_invalid(len(rejected), post)
    by_key = _by_key(reader.keys, len(events), rejected_places) if rules.customers.has_limited_keys else ()
    return ParsedBody(accepted, rejected, by_key)


def _by_key(keys: list[tuple[int, str]], events: int, rejected_places: list[int]) -> tuple[tuple[str, int], ...]:
    """How many events were accepted under each key, by the places at which keys begin."""
    counts: Counter[str] = Counter()
    for (begin, key), (end, _) in pairwise([*keys, (events, "")]):
        counts[key] += end - begin - (bisect_left(rejected_places, end) - bisect_left(rejected_places, begin))
    return tuple(counts.items())


def _opened(body: bytes) -> tuple[dict[str, Any], list[Any], bool]:
    """The body's metadata and events, and whether all events are known to be flat objects."""
    try:
        flat = FLAT_BODY.decode(body)
    except NO_JSON:
        document = parsed(body)
    else:
        return flat.metadata, flat.events, True
    if not isinstance(document, dict) or not isinstance(document.get("events"), list):
        raise InvalidInput("invalid", 'the body is JSON, but not {"events": [...]}')
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}, document["events"], False


def _as_written(body: bytes) -> Sequence[msgspec.Raw]:
    """The events byte for byte, except halves of characters; an empty result if they cannot be separated."""
    for text in (body, with_whole_characters(body)):
        with contextlib.suppress(*NO_JSON):
            return RAW_BODY.decode(text).events
    return ()


class _Reader:
    """Reads the events of one POST, with what they have in common worked out once."""

    def __init__(self, post: Post, rules: Rules, metadata: dict[str, Any], events: list[Any], *, trusted: bool) -> None:
        self._post = post
        self._rules = rules
        self._attrs_max = rules.attrs_max
        self._trusted = trusted
        self._sent_time_ms = whole(metadata.get("transmission_timestamp"))
        #: Clients without a send time (Roku, Android) may write numbers and flags as text.
        self._loose = self._sent_time_ms is None
        #: The last customer and view that were found in order: nearly always the next event's too.
        self._key: object = _NONE_YET
        #: The keys, each with the place of the event at which it begins.
        self.keys: list[tuple[int, str]] = []
        self._view_id: object = _NONE_YET
        self._is_private = False
        #: The fields of the beacon being read: shared fields stay, the others are set again for each.
        self._fields: dict[str, Any] = {
            "source": "mux",
            "sent_time_ms": self._sent_time_ms,
            "rtt_ms": whole(metadata.get("rtt_ms")),
            "clock_offset_ms": None if self._sent_time_ms is None else post.recv_time_ms - self._sent_time_ms,
        }
        #: By place of the event, of clients without a send time.
        self._offsets_ms: Sequence[int | None] = ()
        if self._loose:
            times_ms = [whole(event.get("uti")) if isinstance(event, dict) else None for event in events]
            self._offsets_ms = clock_offsets_ms(times_ms, post.recv_time_ms, lambda: [_stamp(one) for one in events])

    def beacon(self, event: Any, place: int) -> Beacon:
        """The beacon in `event`, which is at this place of the body; raises `InvalidInput` when it is not a beacon."""
        if event.__class__ is not dict:
            raise InvalidInput("invalid", "the event is not an object")
        if len(event) > self._attrs_max:
            # Before its names are looked at: spelling out invented ones takes long, and other threads wait meanwhile.
            check_attrs(event, self._rules, values=False)
        attrs = _full_names.spelled_out(event)
        if not self._trusted or len(attrs) > self._attrs_max:
            check_attrs(attrs, self._rules, values=True)
        pop = attrs.pop
        key = pop("env_key", None) or pop("property_key", None)
        view_id = pop("view_id", None)
        if key != self._key or view_id != self._view_id:
            customer = checked_customer(key, self._post, self._rules)
            self._view_id = checked_view_id(view_id)
            if key != self._key:
                self.keys.append((place, str(key)))
            self._key = key
            sender = sender_of(self._post.client, customer.terms)
            self._is_private = sender.is_private
            self._fields |= commons(self._post, str(key), customer.id, sender, self._rules)
            self._fields["view_id"] = view_id
        source_event = pop("event", None)
        # Names that are known need no check, and nearly all are.
        event = _CANONICAL.get(source_event) if source_event.__class__ is str else None
        if event is None or event == "error":
            event = _other_event(checked_event(source_event), attrs)
        # Whole numbers need no check but of their size, and nearly all are such.
        seq = pop("view_sequence_number", None)
        if seq.__class__ is not int or not 0 <= seq <= WHOLE_MAX:
            seq = checked_sequence(seq, "view_sequence_number")
        client_time_ms = pop("viewer_time", None)
        if client_time_ms.__class__ is not int or not 0 <= client_time_ms <= WHOLE_MAX:
            client_time_ms = checked_time_ms(client_time_ms, "viewer_time")
        if self._loose:
            read_texts(attrs)
            self._fields["clock_offset_ms"] = self._offsets_ms[place]
        if "mux_sample_rate" in attrs:
            check_not_sampled(attrs["mux_sample_rate"], "mux_sample_rate")
        if self._is_private:
            without_viewer(attrs)
        fields = self._fields
        fields["event"] = event
        fields["source_event"] = source_event
        fields["client_time_ms"] = client_time_ms
        fields["seq"] = seq
        fields["player_seq"] = (
            promoted_whole(attrs, "player_sequence_number") if "player_sequence_number" in attrs else None
        )
        fields["playhead_ms"] = (
            promoted_whole(attrs, "player_playhead_time") if "player_playhead_time" in attrs else None
        )
        fields["full_snapshot"] = source_event in _FULL_SNAPSHOTS
        fields["attrs"] = attrs
        return Beacon(**fields)


def _stamp(event: Any) -> Stamp:
    if not isinstance(event, dict):
        return Stamp("", None, None)
    return Stamp(str(event.get("xid")), whole(event.get("xsqno")), whole(event.get("uti")))


def _other_event(source_event: str, attrs: dict[str, Any]) -> str:
    """The canonical name of an event whose own name is not sufficient."""
    if source_event == "error":
        return "warning" if attrs.get("player_error_severity") == "warning" else "error"
    return "ad" if source_event.startswith("ad") else "custom"


def _rejected_event(event: Any, as_it_came: bytes | None, post: Post, rules: Rules, invalid: InvalidInput) -> Rejected:
    key = view_id = None
    if isinstance(event, dict):
        key, view_id = event.get("ake") or event.get("property_ke"), event.get("xid")
    return Rejected(
        reason=invalid.reason,
        detail=invalid.detail,
        value=post.body if as_it_came is None else as_it_came,
        customer_id=claimed_customer(key, rules),
        view_id=claimed_view_id(view_id),
        encoded=as_it_came is None,
    )
