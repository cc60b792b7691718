"""The span: one timed operation of one service, as OpenTelemetry reports it. The value of topic `spans`.

Times are whole microseconds (OpenTelemetry counts ns; those would pass what a double holds exactly). Names of attributes
are OpenTelemetry's own: https://opentelemetry.io/docs/specs/semconv.
"""

import re
from typing import Any, Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1

#: Lower case hex, as W3C trace context writes them; neither may be all zeros.
TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")
SPAN_ID: Final = re.compile(r"(?!0{16})[0-9a-f]{16}")

#: The customer of what comes without a key, where an installation lists no customers.
DEFAULT_CUSTOMER: Final = "default"

Kind = Literal["unspecified", "internal", "server", "client", "producer", "consumer"]
Status = Literal["unset", "ok", "error"]


class SpanEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened at one time within a span, such as an exception."""

    at_us: int
    name: str
    attrs: dict[str, Any] = {}


class SpanLink(msgspec.Struct, frozen=True, omit_defaults=True):
    """A span of this or another trace that this one follows from without being its child."""

    trace_id: str
    span_id: str
    attrs: dict[str, Any] = {}


class SpanFields(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The fields of a span that depend on neither its customer nor its trace."""

    span_id: str
    #: None for the root; the parent may be a span that never comes.
    parent_span_id: str | None = None
    name: str
    kind: Kind = "unspecified"
    #: The resource's `service.name`.
    service: str
    start_us: int
    duration_us: int
    status: Status = "unset"
    status_message: str = ""
    attrs: dict[str, Any] = {}
    #: Attributes of what ran it: process, host, container.
    resource: dict[str, Any] = {}
    #: The instrumentation that made it.
    scope: str = ""
    events: list[SpanEvent] = []
    links: list[SpanLink] = []

    @property
    def end_us(self) -> int:
        """When it ended."""
        return self.start_us + self.duration_us


class Span(SpanFields, frozen=True, omit_defaults=True, kw_only=True):
    """One span as it came."""

    schema_version: int
    customer_id: str
    trace_id: str
    recv_time_ms: int
    #: Which collector and which request it came by: for tracing only.
    collector_id: str | None = None
    batch_id: str | None = None
