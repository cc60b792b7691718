"""The intake of OTLP/HTTP: the spans that OpenTelemetry's SDKs and collectors export, as protobuf or JSON.

Format and answers: https://opentelemetry.io/docs/specs/otlp/#otlphttp.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from services.collector.intake.body import unpacked
from services.collector.intake.otlp import json_encoding, protobuf_encoding
from services.collector.intake.otlp.span import Group, ReadSpan, resource_of, to_span
from services.collector.intake.post import (
    InvalidInput,
    Outcome,
    ParsedBody,
    Post,
    Rejected,
    Rules,
    check_invalid,
    checked_customer,
    claimed_customer,
    rejected_body,
)
from shared.protobuf import Encoder, Field
from shared.schemas.span import DEFAULT_CUSTOMER, SCHEMA_VERSION, Span

JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"

#: `google.rpc.Status`, the body of every error: https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto.
_STATUS: Final = Encoder({"code": Field(1, "int32"), "message": Field(2, "string")})


class _Encoding(NamedTuple):
    groups_of: Callable[[bytes, Rules], list[Group]]
    read: Callable[[Any], ReadSpan]
    raw_of: Callable[[Any], bytes]


_ENCODINGS: Final = {
    JSON: _Encoding(json_encoding.groups_of, json_encoding.read, json_encoding.raw_of),
    PROTOBUF: _Encoding(protobuf_encoding.groups_of, protobuf_encoding.read, protobuf_encoding.raw_of),
}


def media_type(content_type: str) -> str:
    """The content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def parse_spans(post: Post, rules: Rules) -> ParsedBody:
    """The POST's spans; an invalid span is rejected with its index, an invalid body as a whole.

    Without a key it is the default customer's, where any key will do.
    """
    key = post.key or DEFAULT_CUSTOMER
    try:
        customer_id = checked_customer(key, post, rules).id
    except InvalidInput as invalid:
        return rejected_body(post, invalid, claimed_customer(key, rules))
    try:
        encoding = _ENCODINGS.get(media_type(post.content_type))
        if encoding is None:
            raise InvalidInput("undecodable", f"content type {post.content_type[:80]!r} is not {PROTOBUF} or {JSON}")
        groups = encoding.groups_of(unpacked(post, rules), rules)
    except InvalidInput as invalid:
        return rejected_body(post, invalid, customer_id)
    accepted: list[Span] = []
    rejected: list[Rejected] = []
    for place, (raw, read) in enumerate(_read(groups, encoding, post, rules, customer_id)):
        if isinstance(read, Span):
            accepted.append(read)
        else:
            rejected.append(_rejected(read, encoding.raw_of(raw), customer_id, place))
            check_invalid(len(rejected), post)
    return ParsedBody(accepted, rejected)


def answer(outcome: Outcome, content_type: str) -> bytes:
    """The body of an answer to stored spans: how many were rejected, and why the first of them was."""
    is_json = media_type(content_type) == JSON
    if not outcome.rejected:
        return b"{}" if is_json else b""
    count, why = len(outcome.rejected), outcome.rejected[0].detail
    if is_json:
        return msgspec.json.encode({"partialSuccess": {"rejectedSpans": str(count), "errorMessage": why}})
    partial = ExportTracePartialSuccess(rejected_spans=count, error_message=why)
    return bytes(ExportTraceServiceResponse(partial_success=partial).SerializeToString())


def failure(code: int, detail: str, content_type: str) -> bytes:
    """The body of an answer to a body of which nothing was stored; `code` is one of gRPC's."""
    if media_type(content_type) == JSON:
        return msgspec.json.encode({"code": code, "message": detail})
    return _STATUS.encode({"code": code, "message": detail})


def _read(
    groups: list[Group], encoding: _Encoding, post: Post, rules: Rules, customer_id: str
) -> Iterator[tuple[Any, Span | InvalidInput]]:
    for group in groups:
        invalid: InvalidInput | None = None
        commons: dict[str, Any] = {}
        try:
            service, resource = resource_of(group, rules)
        except InvalidInput as why:
            invalid = why
        else:
            commons = {
                "schema_version": SCHEMA_VERSION,
                "customer_id": customer_id,
                "service": service,
                "resource": resource,
                "scope": group.scope,
                "recv_time_ms": post.recv_time_ms,
                "collector_id": rules.collector_id,
                "batch_id": post.batch_id,
            }
        for raw in group.spans:
            post.pause()
            try:
                yield raw, invalid or to_span(encoding.read(raw), commons, rules)
            except InvalidInput as why:
                yield raw, why


def _rejected(invalid: InvalidInput, value: bytes, customer_id: str, place: int) -> Rejected:
    return Rejected(reason=invalid.reason, detail=invalid.detail, value=value, customer_id=customer_id, place=place)
