"""From the beacons behind a view to its requests: each once, in the order in which they began. Pure."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from services.query.core.resources.view.one_view import beacons_key
from services.query.core.resources.view.request_texts import cmcd_kind, code_of, host_of, kind_of, place_of
from shared import codec
from shared.client_values import client_ms, scalar
from shared.requests import reading
from shared.requests.request import COMPLETED, FAILED, Request
from shared.schemas.beacon import SEQ_MAX, Beacon
from shared.schemas.view import NUMBER_MAX
from shared.sources import SOURCES, Ordering, Source

#: Further from the beacon's own time than this a client's time of a request is by another clock.
_SAME_CLOCK_MS: Final = 86_400_000
#: Offsets of which it is tried whether they are that of a play.
_TRIED_MAX: Final = 50

Row = Mapping[str, Any]


class About(NamedTuple):
    """What a beacon says of a request beside its figures; empty: a value that no answer may have. Of a URL it has host and file."""

    kind: str | None = None
    host: str | None = None
    url_host: str | None = None
    file: str | None = None


class Moment(NamedTuple):
    """When a request began by the client's clock, and what tells it from others: requests are in the order of these."""

    at_ms: int
    seq: int
    tie: str


class Found(NamedTuple):
    """A request as it counts."""

    moment: Moment
    outcome: int
    ttfb_ms: int | None
    time_ms: int | None
    size_bytes: int | None
    about: About
    code: str | None


class _Item(NamedTuple):
    """A beacon of a request, as much of it as is kept: what a client sends may take much memory."""

    at_ms: int
    seq: int
    tie: str
    request: Request
    about: About
    code: str | None


class _Timed(NamedTuple):
    """What the clock offset needs of a beacon."""

    at_ms: int
    recv_ms: int
    offset_ms: int


@dataclass
class _Kept:
    """What is kept of a view's beacons."""

    requests: list[_Item] = field(default_factory=list)
    timed: list[_Timed] = field(default_factory=list)


def requests_of(row: Row, values: Iterable[bytes]) -> tuple[list[Found], int]:
    """Those of the row's client, and when the view began by its clock. Of a session with several plays those within this one."""
    source = SOURCES.get(row["source"])
    if source is None or source.name not in _READ:
        return [], row["view_start_ms"]
    kept = _kept(source, beacons_key(row), values)
    start_ms = row["view_start_ms"] - _offset_ms(row, source, kept.timed)
    end_ms = start_ms + row["view_end_ms"] - row["view_start_ms"]
    is_later = (row.get("view_epoch") or 1) > 1
    found = []
    last: list[int | None] = []
    last_about = About()
    for one in kept.requests:
        sent, about = reading.filled(one.request, last), one.about
        if one.request.is_delta:
            about = About(*(before if now is None else now for before, now in zip(last_about, about, strict=True)))
            last, last_about = sent, about
        request = _request(one, sent, about)
        begun_ms = request.moment.at_ms
        is_before = is_later and begun_ms + (request.time_ms or 0) < start_ms
        if not (source.has_plays and (is_before or begun_ms > end_ms)):
            found.append(request)
    return sorted(found, key=lambda request: request.moment), start_ms


def _kept(source: Source, view_id: str, values: Iterable[bytes]) -> _Kept:
    """Of several copies of a beacon the one appended first counts, as in the fold. Each has its offset."""
    by_number = source.ordering is Ordering.NUMBER
    kept, known = _Kept(), set()
    for value in values:
        try:
            beacon = codec.BEACON.decode(value)
        except codec.Undecodable:
            continue
        is_numbered = beacon.seq is not None and (source.first_number or 0) <= beacon.seq <= SEQ_MAX
        if beacon.source != source.name or beacon.view_id != view_id or (by_number and not is_numbered):
            continue
        at_ms, seq = client_ms(beacon.client_time_ms), beacon.seq if beacon.seq is not None and is_numbered else 0
        if (offset_ms := beacon.clock_offset_ms) is not None:
            offset_ms = max(-NUMBER_MAX, min(NUMBER_MAX, offset_ms))
            kept.timed.append(_Timed(at_ms, beacon.recv_time_ms, offset_ms))
        if not by_number and beacon.event != "request":
            continue
        tie = "" if by_number else _tie(beacon)
        key = (0 if by_number and not source.has_plays else at_ms, seq, tie)
        if key not in known and beacon.event == "request":
            kept.requests.append(_Item(at_ms, seq, tie, *_READ[beacon.source](beacon)))
        known.add(key)
    if by_number and not source.has_plays:
        kept.requests.sort(key=lambda one: one.seq)
    return kept


def _tie(beacon: Beacon) -> str:
    """Of beacons without an order of their own, those of the same content are the same (docs/view.md)."""
    said = (beacon.source_event, beacon.seq, beacon.playhead_ms, beacon.attrs)
    return hashlib.blake2b(msgspec.json.encode(said, order="sorted"), digest_size=8).hexdigest()


def _offset_ms(row: Row, source: Source, timed: Sequence[_Timed]) -> int:
    """The view's clock offset (docs/view.md): the fastest request is the least delayed one. Of a session's play that of its own."""
    smallest = min((one.offset_ms for one in timed), default=0)
    if not source.has_plays:
        return smallest
    from_ms: int = row["view_start_ms"]
    until_ms: int = row["view_end_ms"]
    offsets, times = {one.offset_ms for one in timed}, {one.at_ms for one in timed}
    # By its own offset a play begins with one of its beacons, and mostly ends with one.
    tried = sorted({from_ms - one.at_ms for one in timed} & offsets)
    if len(tried) == 1:
        return tried[0]
    tried = [one for one in tried if until_ms - one in times] or tried
    for offset_ms in tried[:_TRIED_MAX]:
        first_ms, last_ms = from_ms - offset_ms, until_ms - offset_ms
        if min((one.offset_ms for one in timed if first_ms <= one.at_ms <= last_ms), default=None) == offset_ms:
            return offset_ms
    if tried:
        return tried[0]
    # Its first beacon is missing, or its clock stepped: those that came while it lasted.
    return min((one.offset_ms for one in timed if from_ms <= one.recv_ms <= until_ms), default=smallest)


def _of_mux(beacon: Beacon) -> tuple[Request, About, str | None]:
    attrs = beacon.attrs
    kind, host, url = (attrs.get(name) for name in ("request_type", "request_hostname", "request_url"))
    place = (None, None) if url is None else place_of(url)
    about = About(None if kind is None else kind_of(kind), None if host is None else host_of(host), *place)
    return reading.of_mux(beacon.source_event, attrs), about, code_of(attrs.get("request_error_code"))


def _of_cmcd(beacon: Beacon) -> tuple[Request, About, str | None]:
    attrs = beacon.attrs
    about = About(cmcd_kind(attrs.get("ot")), "", *place_of(scalar(attrs.get("url"))))
    return reading.of_cmcd(attrs, client_ms(beacon.client_time_ms)), about, code_of(attrs.get("rc"))


def _of_native(beacon: Beacon) -> tuple[Request, About, str | None]:
    return reading.of_native(beacon.attrs), About(), None


_READ: Final = {"mux": _of_mux, "cmcd": _of_cmcd, "native": _of_native}


def _request(one: _Item, sent: Sequence[int | None], about: About) -> Found:
    begun_ms, first_ms, end_ms, size_bytes = sent
    outcome = one.request.outcome
    if outcome != COMPLETED and begun_ms is not None:
        # A client that gave up may repeat these of the request before.
        if end_ms is not None and end_ms < begun_ms:
            end_ms = size_bytes = None
        first_ms = None if first_ms is not None and first_ms < begun_ms else first_ms
    time_ms = None if begun_ms is None or end_ms is None else reading.took_ms(begun_ms, end_ms)
    ttfb_ms = None if begun_ms is None or first_ms is None else reading.took_ms(begun_ms, first_ms)
    at_ms = one.at_ms
    if begun_ms is not None and abs(begun_ms - at_ms) <= _SAME_CLOCK_MS:
        at_ms = begun_ms
    else:
        # By a clock of the client's own: it is reported when it is over.
        at_ms -= time_ms or 0
    code = one.code if outcome == FAILED else None
    return Found(Moment(at_ms, one.seq, one.tie), outcome, ttfb_ms, time_ms, size_bytes, about, code)
