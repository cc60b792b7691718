"""The trace: the spans of one trace id that belong together in time, joined. The value of topic `traces`.

The key of a row is (customer, trace id, part); the highest revision is valid. A trace is nearly always one part; one that was
silent for longer than the gap has several.
"""

from typing import Final

import msgspec

from shared.schemas.span import SpanFields

SCHEMA_VERSION: Final = 1


class TraceService(msgspec.Struct, frozen=True):
    """One service's share in a trace."""

    name: str
    spans: int
    errors: int
    #: The part of the critical path that is its own.
    critical_us: int


class CriticalSegment(msgspec.Struct, frozen=True):
    """A stretch of time that the trace could only have been shorter by: this span worked, and no child of it was waited for."""

    span_id: str
    start_us: int
    duration_us: int


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a trace, joined."""

    schema_version: int
    customer_id: str
    trace_id: str
    part: int
    revision: int
    #: The part that this one turned out to belong to: this row is void, its spans are in that one.
    absorbed_by: int | None = None
    start_us: int = 0
    #: From the first start to the last end of any span.
    duration_us: int = 0
    #: Whether any span failed, and whether the root did.
    error: bool = False
    root_error: bool = False
    root_service: str | None = None
    root_name: str | None = None
    #: Whether there is one root and every parent is there.
    complete: bool = False
    span_count: int = 0
    error_count: int = 0
    #: Spans whose parent is not there.
    orphan_count: int = 0
    duplicate_count: int = 0
    #: Spans that came after this trace's windows had closed: in topic `late_spans`, not in `spans`.
    late_count: int = 0
    #: Spans beyond the limit of a trace; no other field counts them.
    dropped_count: int = 0
    services: list[TraceService] = []
    #: Of the root, in the order of time, without gaps: its durations add up to the root's.
    critical_path: list[CriticalSegment] = []
    #: Each after its parent, siblings in the order of their starts.
    spans: list[SpanFields] = []
