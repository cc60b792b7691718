"""OTLP's JSON: protobuf's JSON mapping, except that ids are hexadecimal and enums are numbers; unknown fields are ignored.

Source: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from services.collector.intake.json_format import check_items, decoded
from services.collector.intake.otlp.span import Group, GroupCount, ReadSpan
from services.collector.intake.post import InvalidInput, Rules

#: What is counted for values, of those that `IntakeLimits.body_items_max` allows: an attribute takes six and little memory.
_PER_ITEM: Final = 2
#: Longer texts are no numbers.
_NUMBER_CHARS_MAX: Final = 40
#: 64-bit numbers are texts, though some write numbers.
_Number = int | str | None


class _Array(msgspec.Struct):
    values: list["_Value"] | None = None


class _Map(msgspec.Struct):
    values: list["_Attribute"] | None = None


class _Value(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Number = None
    double_value: float | str | None = None
    array_value: _Array | None = None
    kvlist_value: _Map | None = None
    bytes_value: str | None = None


class _Attribute(msgspec.Struct):
    key: str = ""
    value: _Value | None = None


class _Event(msgspec.Struct, rename="camel"):
    time_unix_nano: _Number = None
    name: str | None = None
    attributes: list[_Attribute] | None = None


class _Link(msgspec.Struct, rename="camel"):
    trace_id: str | None = None
    span_id: str | None = None
    attributes: list[_Attribute] | None = None


class _Status(msgspec.Struct):
    code: int | None = None
    message: str | None = None


class _Span(msgspec.Struct, rename="camel"):
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    name: str | None = None
    kind: int | None = None
    start_time_unix_nano: _Number = None
    end_time_unix_nano: _Number = None
    attributes: list[_Attribute] | None = None
    events: list[_Event] | None = None
    links: list[_Link] | None = None
    status: _Status | None = None


class _Scope(msgspec.Struct):
    name: str | None = None


class _ScopeSpans(msgspec.Struct):
    scope: _Scope | None = None
    spans: list[msgspec.Raw] | None = None


class _Resource(msgspec.Struct):
    attributes: list[_Attribute] | None = None


class _ResourceSpans(msgspec.Struct, rename="camel"):
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None


class _Request(msgspec.Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] | None = None


_request: Final = msgspec.json.Decoder(_Request)
_span: Final = msgspec.json.Decoder(_Span)


def groups_of(body: bytes, rules: Rules) -> list[Group]:
    """The spans of a body by resource and scope, each still as it came. Raises `InvalidInput` for what is no request."""
    check_items(body, rules, per_item=_PER_ITEM)
    request = decoded(_request, body, "body")
    count = GroupCount(rules)
    groups = []
    count.add("resources", len(request.resource_spans or ()))
    for resource_spans in request.resource_spans or ():
        if not resource_spans.scope_spans:
            continue
        count.add("scopes", len(resource_spans.scope_spans))
        resource = _attrs(resource_spans.resource.attributes) if resource_spans.resource else {}
        for scope_spans in resource_spans.scope_spans:
            if not scope_spans.spans:
                continue
            count.add("spans", len(scope_spans.spans))
            scope = (scope_spans.scope.name if scope_spans.scope else None) or ""
            groups.append(Group(resource, scope, [bytes(raw) for raw in scope_spans.spans]))
    return groups


def read(raw: bytes) -> ReadSpan:
    """One span of a group. Raises `InvalidInput`."""
    span = decoded(_span, raw, "span")
    status = span.status or _Status()
    return ReadSpan(
        trace_id=(span.trace_id or "").lower(),
        span_id=(span.span_id or "").lower(),
        parent_span_id=(span.parent_span_id or "").lower(),
        name=span.name or "",
        kind=span.kind or 0,
        start_ns=_number(span.start_time_unix_nano),
        end_ns=_number(span.end_time_unix_nano),
        attrs=_attrs(span.attributes),
        status=status.code or 0,
        status_message=status.message or "",
        events=[(_number(one.time_unix_nano), one.name or "", _attrs(one.attributes)) for one in span.events or ()],
        links=[
            ((one.trace_id or "").lower(), (one.span_id or "").lower(), _attrs(one.attributes))
            for one in span.links or ()
        ],
    )


def raw_of(raw: bytes) -> bytes:
    """The bytes of a span as it came."""
    return raw


def _attrs(attributes: Sequence[_Attribute] | None) -> dict[str, Any]:
    return {attribute.key: _any(attribute.value) for attribute in attributes or ()}


def _any(value: _Value | None) -> Any:
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.bool_value is not None:
        return value.bool_value
    if value.int_value is not None:
        return _number(value.int_value)
    if value.double_value is not None:
        return value.double_value
    if value.array_value is not None:
        return [_any(one) for one in value.array_value.values or ()]
    if value.kvlist_value is not None:
        return _attrs(value.kvlist_value.values)
    if value.bytes_value is not None:
        try:
            return base64.b64decode(value.bytes_value, validate=True).hex()
        except (binascii.Error, ValueError) as error:
            raise InvalidInput("invalid", "a bytesValue is not base64") from error
    return None


def _number(value: _Number) -> int:
    if isinstance(value, int):
        return value
    if not value:
        return 0
    if len(value) > _NUMBER_CHARS_MAX or not value.removeprefix("-").isascii() or not value.removeprefix("-").isdigit():
        raise InvalidInput("invalid", f"{value[:_NUMBER_CHARS_MAX]!r} is no whole number")
    return int(value)
