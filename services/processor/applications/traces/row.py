"""The row of a part of a trace, as topic `traces` has it. Pure."""

from collections import Counter
from typing import Final

from services.processor.applications.traces.trace import Part, TraceState
from services.processor.applications.traces.tree import critical_path, grown
from shared.schemas.span import SpanFields
from shared.schemas.trace import SCHEMA_VERSION, CriticalSegment, Trace, TraceService

#: Services that a row names, those with the most spans first.
SERVICES_MAX: Final = 200


def to_row(
    trace: TraceState, part: Part, of_part: list[SpanFields], *, customer_id: str, trace_id: str, revision: int
) -> Trace:
    """The row of a part that has a span; `of_part` are its spans."""
    tree = grown(of_part)
    root = tree.root
    path = critical_path(tree)
    spans = tree.in_order()
    start_us = min(span.start_us for span in spans)
    return Trace(
        schema_version=SCHEMA_VERSION,
        customer_id=customer_id,
        trace_id=trace_id,
        part=part.number,
        revision=revision,
        start_us=start_us,
        duration_us=max(span.end_us for span in spans) - start_us,
        error=any(_failed(span) for span in spans),
        root_error=_failed(root),
        root_service=root.service,
        root_name=root.name,
        complete=len(tree.roots) == 1 and not tree.orphans,
        span_count=len(spans),
        error_count=sum(_failed(span) for span in spans),
        orphan_count=tree.orphans,
        duplicate_count=part.duplicates,
        late_count=trace.late,
        dropped_count=trace.dropped,
        services=_services(spans, path),
        critical_path=path,
        spans=spans,
    )


def absorbed_row(number: int, revision: int, by: int, *, customer_id: str, trace_id: str) -> Trace:
    """The row that takes a part back whose spans are in part `by`."""
    return Trace(
        schema_version=SCHEMA_VERSION,
        customer_id=customer_id,
        trace_id=trace_id,
        part=number,
        revision=revision,
        absorbed_by=by,
    )


def _services(spans: list[SpanFields], path: list[CriticalSegment]) -> list[TraceService]:
    """By name; of too many those with the most spans."""
    service_of = {span.span_id: span.service for span in spans}
    counts = Counter(span.service for span in spans)
    errors = Counter(span.service for span in spans if _failed(span))
    critical_us: Counter[str] = Counter()
    for segment in path:
        critical_us[service_of[segment.span_id]] += segment.duration_us
    names = sorted(sorted(counts), key=counts.__getitem__, reverse=True)[:SERVICES_MAX]
    return [TraceService(name, counts[name], errors[name], critical_us[name]) for name in sorted(names)]


def _failed(span: SpanFields) -> bool:
    return span.status == "error"
