"""`GET /traces/<id>?customer=<id>`: the present state of a trace, while it is open and as long as it is kept, for Jaeger's view."""

from collections.abc import Mapping
from typing import Any

import msgspec

from services.processor.applications.traces.jaeger import to_jaeger
from services.processor.applications.traces.row import to_row
from services.processor.applications.traces.spans import committed_spans
from services.processor.applications.traces.trace import TraceState
from services.processor.engine.application.application import Candidate, Lookup, LookupWrong, Rows, StoreSpec
from shared.partitioning import trace_key
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.span import DEFAULT_CUSTOMER, TRACE_ID


def trace_lookup(traces: StoreSpec[TraceState]) -> Lookup:
    """The lookup over this store. Each part's row, without its spans, is beside Jaeger's fields as `parts`."""

    def answer(rows: Rows, key: bytes) -> bytes | None:
        trace = rows.get(traces, key)
        if trace is None or not trace.parts:
            return None
        customer_id, _, trace_id = key.decode().partition(":")
        spans = committed_spans(rows, key)
        # Only a trace whose quarantined spans did not all find room has a part without spans.
        parts = [part for part in sorted(trace.parts, key=lambda part: part.window) if part.kept_under in spans]
        trace_rows = [
            to_row(
                trace,
                part,
                spans[part.kept_under],
                customer_id=customer_id,
                trace_id=trace_id,
                revision=part.revision,
            )
            for part in parts
        ]
        document = to_jaeger(trace_id, [span for row in trace_rows for span in row.spans])
        document["parts"] = [
            _summary(row, is_written=part.is_written) for row, part in zip(trace_rows, parts, strict=True)
        ]
        return msgspec.json.encode({"data": [document], "total": 1, "limit": 0, "offset": 0, "errors": None})

    return Lookup("/traces/{trace}", _candidates_of, answer, frozenset({"customer"}), is_document=True)


def _summary(row: msgspec.Struct, *, is_written: bool) -> dict[str, Any]:
    """The row's own figures; whether topic `traces` has all of it."""
    fields = {
        name: value for name, value in msgspec.structs.asdict(row).items() if name not in {"spans", "absorbed_by"}
    }
    return fields | {"state": "finished" if is_written else "open"}


def _candidates_of(parts: Mapping[str, str]) -> tuple[Candidate, ...]:
    customer_id, trace_id = parts.get("customer", DEFAULT_CUSTOMER), parts["trace"].lower()
    if not CUSTOMER_ID.fullmatch(customer_id):
        raise LookupWrong(f"a customer id matches {CUSTOMER_ID.pattern}")
    if not TRACE_ID.fullmatch(trace_id):
        raise LookupWrong("a trace id is 32 hexadecimal digits, not all zeros")
    key = trace_key(customer_id, trace_id)
    return (Candidate(key, key),)
