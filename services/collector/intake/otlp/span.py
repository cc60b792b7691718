"""The common form of both OTLP encodings, and its conversion to spans."""

import math
from collections import Counter
from typing import Any, Final, NamedTuple, get_args

from services.collector.intake.post import InvalidInput, Rules
from services.collector.intake.values import WHOLE_MAX, check_attrs
from shared.schemas.span import SPAN_ID, TRACE_ID, Kind, Span, SpanEvent, SpanLink, Status

NAME_CHARS_MAX: Final = 1_000
#: A resource without a service name has this one by OpenTelemetry's conventions.
SERVICE_UNKNOWN: Final = "unknown_service"

_KINDS: Final = get_args(Kind)
_STATUSES: Final = get_args(Status)
_INT_MAX: Final = (1 << 63) - 1


class Group(NamedTuple):
    """Spans of one resource and one scope, each as its encoding's reader takes it."""

    resource: dict[str, Any]
    scope: str
    spans: list[Any]


class ReadSpan(NamedTuple):
    """A span as it was read from the body; ids are hex, times ns since 1970, nothing is checked."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attrs: dict[str, Any]
    status: int
    status_message: str
    events: list[tuple[int, str, dict[str, Any]]]
    links: list[tuple[str, str, dict[str, Any]]]


class GroupCount:
    """Counts the resources, scopes and spans of a body: of each as many as the spans that it may hold."""

    def __init__(self, rules: Rules) -> None:
        self._most = rules.batch_spans_max
        self._counts: Counter[str] = Counter()

    def add(self, what: str, count: int) -> None:
        """Counts so many more. Raises `InvalidInput` when they are too many."""
        self._counts[what] += count
        if self._counts[what] > self._most:
            raise InvalidInput("too_large", f"{self._counts[what]} {what} in one body; {self._most} are the most")


def resource_of(group: Group, rules: Rules) -> tuple[str, dict[str, Any]]:
    """The service's name and the other attributes of what ran it. Raises `InvalidInput`."""
    resource = _checked(dict(group.resource), rules)
    service = resource.pop("service.name", None)
    return (str(service)[:NAME_CHARS_MAX] if service else SERVICE_UNKNOWN), resource


def to_span(read: ReadSpan, commons: dict[str, Any], rules: Rules) -> Span:
    """The canonical span. `commons` are the fields that all spans of its resource and request share. Raises `InvalidInput`."""
    if TRACE_ID.fullmatch(read.trace_id) is None:
        raise InvalidInput("invalid", f"trace id {read.trace_id[:64]!r} is not 16 bytes, not all zero")
    if SPAN_ID.fullmatch(read.span_id) is None:
        raise InvalidInput("invalid", f"span id {read.span_id[:64]!r} is not 8 bytes, not all zero")
    parent = read.parent_span_id.strip("0") and read.parent_span_id
    if parent and SPAN_ID.fullmatch(parent) is None:
        raise InvalidInput("invalid", f"parent span id {parent[:64]!r} is not 8 bytes")
    start_us = _checked_us(read.start_ns, "start")
    # A clock that was set back while the span ran makes it end before its start.
    end_us = max(_checked_us(read.end_ns, "end"), start_us)
    if len(read.events) > rules.attrs_max or len(read.links) > rules.attrs_max:
        raise InvalidInput("too_large", f"more than {rules.attrs_max} events or links")
    return Span(
        trace_id=read.trace_id,
        span_id=read.span_id,
        parent_span_id=parent or None,
        name=read.name[:NAME_CHARS_MAX],
        kind=_KINDS[read.kind] if 0 <= read.kind < len(_KINDS) else "unspecified",
        start_us=start_us,
        duration_us=end_us - start_us,
        status=_STATUSES[read.status] if 0 <= read.status < len(_STATUSES) else "unset",
        status_message=read.status_message[:NAME_CHARS_MAX],
        attrs=_checked(read.attrs, rules),
        events=[
            SpanEvent(_checked_us(at_ns, "event"), name[:NAME_CHARS_MAX], _checked(attrs, rules))
            for at_ns, name, attrs in read.events
        ],
        # A link to no span is left out.
        links=[
            SpanLink(trace_id, span_id, _checked(attrs, rules))
            for trace_id, span_id, attrs in read.links
            if TRACE_ID.fullmatch(trace_id) and SPAN_ID.fullmatch(span_id)
        ],
        **commons,
    )


def _checked_us(at_ns: int, name: str) -> int:
    if not 0 <= at_ns // 1000 <= WHOLE_MAX:
        raise InvalidInput("invalid", f"the {name} is no time in ns since 1970")
    return at_ns // 1000


def _checked(attrs: dict[str, Any], rules: Rules) -> dict[str, Any]:
    check_attrs(attrs, rules, values=True)
    return {name: _storable(value) for name, value in attrs.items()}


def _storable(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -_INT_MAX <= value <= _INT_MAX:
        raise InvalidInput("invalid", "a whole number has more than 64 bits")
    if isinstance(value, list):
        return [_storable(one) for one in value]
    if isinstance(value, dict):
        return {name: _storable(one) for name, one in value.items()}
    return value
