"""The part of `traces`: orders of a shop, whose spans come from three services, the last first, in requests of their own."""

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from deploy.demo.applications.part import Part, Running, line
from deploy.demo.comparing.compare import Line
from services.processor.applications.traces.settings import TraceRules

TRACES: Final = 20
#: Service, name, id, parent, first and last ms. The children of `place order` work at the same time.
_SPANS: Final = (
    ("shop", "place order", 1, None, 0, 120),
    ("stock", "reserve", 2, 1, 10, 40),
    ("payment", "charge", 3, 1, 15, 110),
    ("payment", "bank", 4, 3, 20, 95),
)
#: Every fifth order is refused by the bank.
_REFUSED_EACH: Final = 5


def play(running: Running) -> Sequence[Line]:
    """Sends the spans and compares the joined traces with them."""
    now_ms = time.time_ns() // 1_000_000
    trace_ids = [f"{number + 1:032x}" for number in range(TRACES)]
    for number, trace_id in enumerate(trace_ids):
        for one in reversed(_SPANS):
            running.post("/v1/traces", msgspec.json.encode(_request(trace_id, one, now_ms, number)))

    def joined() -> list[dict[str, Any]]:
        return running.rows("traces", "trace_id, span_count, error, complete, duration_us, absorbed_by")

    def is_done() -> bool:
        return bool(TRACES * len(_SPANS) == sum(row["span_count"] for row in joined() if row["complete"]))

    running.until(is_done)
    rows = joined()
    answer = running.found(f"/traces/{trace_ids[0]}")
    if answer is not None:
        _show(running, answer["data"][0])
    return [
        line("traces: rows in the warehouse", len(rows), TRACES),
        line("traces: spans in them", sum(row["span_count"] for row in rows), TRACES * len(_SPANS)),
        line("traces: with an error", sum(row["error"] for row in rows), TRACES // _REFUSED_EACH),
        line("traces: durations, ms", sum(row["duration_us"] for row in rows) // 1000, TRACES * 120),
        line("traces: spans in a lookup", answer is not None and len(answer["data"][0]["spans"]), len(_SPANS)),
    ]


def _request(trace_id: str, template: tuple[str, str, int, int | None, int, int], now_ms: int, number: int) -> Any:
    """An export request with one span, as OTLP's JSON has it."""
    service, name, span_id, parent_id, first_ms, last_ms = template
    is_refused = name == "bank" and number % _REFUSED_EACH == 0
    span = {
        "traceId": trace_id,
        "spanId": f"{span_id:016x}",
        "parentSpanId": "" if parent_id is None else f"{parent_id:016x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str((now_ms + first_ms) * 1_000_000),
        "endTimeUnixNano": str((now_ms + last_ms) * 1_000_000),
        "status": {"code": 2, "message": "refused"} if is_refused else {},
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}


def _show(running: Running, trace: Any) -> None:
    names = {span["spanID"]: span["operationName"] for span in trace["spans"]}
    path = trace["parts"][0]["critical_path"]
    running.say(
        "  the critical path of a trace: "
        + ", ".join(f"{names[one['span_id']]} {one['duration_us'] / 1000:g} ms" for one in path)
    )


PART: Final = Part("traces", play, {TraceRules.variable("gap_ms"): "1000", TraceRules.variable("grace_ms"): "10000"})
