"""A trace in the JSON of Jaeger's query service, so that Jaeger's trace view and other readers can show it. Pure.

The format is that of `GET /api/traces/<id>` of Jaeger; how OpenTelemetry's fields become tags is defined in
https://opentelemetry.io/docs/specs/otel/trace/sdk_exporters/jaeger.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shared.schemas.span import SpanFields

Json = dict[str, Any]


def to_jaeger(trace_id: str, spans: Iterable[SpanFields]) -> Json:
    """One element of Jaeger's `data`: times in us, a process for each service and resource."""
    processes: dict[str, Json] = {}
    by_process: dict[bytes, str] = {}
    documents = [_span(trace_id, span, _process_of(span, processes, by_process)) for span in spans]
    return {"traceID": trace_id, "spans": documents, "processes": processes, "warnings": None}


def _process_of(span: SpanFields, processes: dict[str, Json], by_process: dict[bytes, str]) -> str:
    key = msgspec.msgpack.encode((span.service, span.resource), order="deterministic")
    found = by_process.get(key)
    if found is None:
        found = by_process[key] = f"p{len(processes) + 1}"
        processes[found] = {"serviceName": span.service, "tags": _tags(span.resource)}
    return found


def _span(trace_id: str, span: SpanFields, process: str) -> Json:
    references = [{"refType": "FOLLOWS_FROM", "traceID": link.trace_id, "spanID": link.span_id} for link in span.links]
    if span.parent_span_id is not None:
        references.insert(0, {"refType": "CHILD_OF", "traceID": trace_id, "spanID": span.parent_span_id})
    return {
        "traceID": trace_id,
        "spanID": span.span_id,
        "operationName": span.name,
        "references": references,
        "startTime": span.start_us,
        "duration": span.duration_us,
        "tags": _tags(dict(span.attrs) | _derived(span)),
        "logs": [
            {"timestamp": event.at_us, "fields": _tags({"event": event.name, **event.attrs})} for event in span.events
        ],
        "processID": process,
        "warnings": None,
    }


def _derived(span: SpanFields) -> Json:
    """Data that OpenTelemetry has as fields and Jaeger as tags."""
    tags: Json = {}
    if span.kind != "unspecified":
        tags["span.kind"] = span.kind
    if span.scope:
        tags["otel.scope.name"] = span.scope
    if span.status != "unset":
        tags["otel.status_code"] = span.status.upper()
    if span.status == "error":
        tags["error"] = True
    if span.status_message:
        tags["otel.status_description"] = span.status_message
    return tags


def _tags(values: Mapping[str, Any]) -> list[Json]:
    return [_tag(key, value) for key, value in values.items()]


def _tag(key: str, value: Any) -> Json:
    match value:
        case bool():
            return {"key": key, "type": "bool", "value": value}
        case int():
            return {"key": key, "type": "int64", "value": value}
        case float():
            return {"key": key, "type": "float64", "value": value}
        case str():
            return {"key": key, "type": "string", "value": value}
    return {"key": key, "type": "string", "value": msgspec.json.encode(value).decode()}
