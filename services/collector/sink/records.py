"""The Kafka records of a request: topic, partition, key and value. Pure."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from services.collector.intake.post import ParsedBody, Post, Rejected
from shared import codec
from shared.partitioning import partition_of, view_key
from shared.schemas.apis.call import ApiCall
from shared.schemas.beacon import Beacon
from shared.schemas.span import Span
from shared.topics import API_CALLS, BEACONS, RECORD_BYTES_MAX, REJECTED, SPANS, Profile, Topic

SERVICE: Final = b"collector"
HEADER_BYTES_MAX: Final = 1_000
#: What a record takes beside its value, about: the object, its headers, its place in the producer's queue.
RECORD_OVERHEAD_BYTES: Final = 512

#: As the Kafka client types them.
Headers = list[tuple[str, str | bytes | None]]


class _Kind(NamedTuple):
    """What is written of one kind of input: where, how, and what beside the customer names what it belongs to."""

    topic: Topic
    encode: Callable[[Any], bytes]
    id_of: Callable[[Any], str]


_KINDS: Final[Mapping[type, _Kind]] = {
    Beacon: _Kind(BEACONS, codec.BEACON.encode, attrgetter("view_id")),
    Span: _Kind(SPANS, codec.SPAN.encode, attrgetter("trace_id")),
    ApiCall: _Kind(API_CALLS, codec.API_CALL.encode, attrgetter("host")),
}


class Record(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One Kafka record to be written."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes
    headers: Headers


def size_of(records: list[Record]) -> int:
    """About how many bytes of memory records take."""
    return sum(len(record.value) for record in records) + len(records) * RECORD_OVERHEAD_BYTES


def records_of(
    parsed: ParsedBody,
    post: Post,
    profile: Profile,
    keeps: Callable[[Rejected], bool] = lambda _: True,
    headers: Headers | None = None,
) -> list[Record]:
    """The records of one request: what it held in its order, then those of its rejected inputs that `keeps` accepts.

    `headers` go with each record of what was accepted. The partition is always explicit:
    librdkafka may reorder a key whose partition is sometimes left to it.
    """
    headers = headers or []
    records: list[Record] = []
    rejected = parsed.rejected
    if parsed.accepted:
        kind = _KINDS[parsed.accepted[0].__class__]
        topic, partitions = kind.topic.name, kind.topic.partitions(profile)
        encode, id_of = kind.encode, kind.id_of
        last: tuple[str, str] | None = None
        key, partition = b"", 0
        for one in parsed.accepted:
            # What comes in one request is nearly always of one view.
            if (named := (one.customer_id, id_of(one))) != last:
                last = named
                key = view_key(*named)
                partition = partition_of(key, partitions)
            value = encode(one)
            if len(value) > RECORD_BYTES_MAX:
                detail = f"it takes {len(value)} bytes; {RECORD_BYTES_MAX} are the most"
                rejected = [*rejected, _oversized(*named, value, detail)]
                continue
            records.append(Record(topic, partition, key, value, headers))
    records.extend(_rejected_record(input_, post, REJECTED.partitions(profile)) for input_ in rejected if keeps(input_))
    return records


def _oversized(customer_id: str, view_id: str, value: bytes, detail: str) -> Rejected:
    return Rejected(reason="too_large", detail=detail, value=value, customer_id=customer_id, view_id=view_id)


def _rejected_record(rejected: Rejected, post: Post, partitions: int) -> Record:
    key = None
    if rejected.customer_id is not None and rejected.view_id is not None:
        key = view_key(rejected.customer_id, rejected.view_id)
    detail = rejected.detail
    if len(rejected.value) > RECORD_BYTES_MAX:
        detail += f" (kept: the first {RECORD_BYTES_MAX} of {len(rejected.value)} bytes)"
    headers: Headers = [
        ("reason", rejected.reason.encode()),
        ("detail", _header(detail)),
        ("service", SERVICE),
        ("origin", _header(post.origin)),
    ]
    if rejected.customer_id is not None:
        headers.append(("customer", _header(rejected.customer_id)))
    if post.content_type:
        headers.append(("content-type", _header(post.content_type)))
    if post.content_encoding and rejected.encoded:
        headers.append(("content-encoding", _header(post.content_encoding)))
    # Without a key any partition will do, as long as one request's inputs stay together.
    partition = partition_of(key or post.batch_id.encode(), partitions)
    return Record(REJECTED.name, partition, key, rejected.value[:RECORD_BYTES_MAX], headers)


def _header(text: str) -> bytes:
    return text.encode("utf-8", "replace")[:HEADER_BYTES_MAX]
