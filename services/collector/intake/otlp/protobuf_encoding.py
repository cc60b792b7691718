"""OTLP's protobuf, read with the classes that OpenTelemetry publishes (package opentelemetry-proto)."""

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from services.collector.intake.otlp.span import Group, GroupCount, ReadSpan
from services.collector.intake.post import InvalidInput, Rules

#: The first byte of every field that is a message or a text of OTLP's traces: fields 1, 2, 5, 6, 9, 11, 13 and 15 of wire
#: type 2 (https://protobuf.dev/programming-guides/encoding/). A message cannot be in a body without one of them.
_TAGS: Final = tuple(bytes([number << 3 | 2]) for number in (1, 2, 5, 6, 9, 11, 13, 15))
#: Such bytes, of the values that `IntakeLimits.body_items_max` allows: an attribute has three, and texts hold them too.
_TAGS_PER_ITEM: Final = 3


def groups_of(body: bytes, rules: Rules) -> list[Group]:
    """The spans of a body by resource and scope. Raises `InvalidInput` for what is no request, or may hold too much."""
    tags = sum(body.count(tag) for tag in _TAGS)
    if tags > _TAGS_PER_ITEM * rules.body_items_max:
        raise InvalidInput(
            "too_large", f"the body may hold {tags} fields; {_TAGS_PER_ITEM * rules.body_items_max} are the most"
        )
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise InvalidInput("undecodable", f"the body is no ExportTraceServiceRequest: {error}") from error
    count = GroupCount(rules)
    groups = []
    count.add("resources", len(request.resource_spans))
    for resource_spans in request.resource_spans:
        scopes = resource_spans.scope_spans
        if not scopes:
            continue
        count.add("scopes", len(scopes))
        resource = _attrs(resource_spans.resource.attributes)
        for scope_spans in scopes:
            spans = list(scope_spans.spans)
            count.add("spans", len(spans))
            groups.append(Group(resource, scope_spans.scope.name, spans))
    return groups


def read(span: Span) -> ReadSpan:
    """One span of a group."""
    return ReadSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attrs=_attrs(span.attributes),
        status=span.status.code,
        status_message=span.status.message,
        events=[(event.time_unix_nano, event.name, _attrs(event.attributes)) for event in span.events],
        links=[(link.trace_id.hex(), link.span_id.hex(), _attrs(link.attributes)) for link in span.links],
    )


def raw_of(span: Span) -> bytes:
    """The bytes of a span as it came."""
    return bytes(span.SerializeToString())


def _attrs(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {attribute.key: _any(attribute.value) for attribute in attributes}


def _any(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_any(one) for one in value.array_value.values]
        case "kvlist_value":
            return _attrs(value.kvlist_value.values)
        case "bytes_value":
            return value.bytes_value.hex()
        case name:
            return getattr(value, name)
