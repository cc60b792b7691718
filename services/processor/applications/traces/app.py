"""traces: topics, stores and the fold that joins the spans of a trace. Runs on event time, since spans come from the operator's
servers."""

from typing import Any, Final

import msgspec

from services.processor.applications.traces.api_call import to_api_call
from services.processor.applications.traces.lookup import trace_lookup
from services.processor.applications.traces.row import absorbed_row, to_row
from services.processor.applications.traces.settings import TraceRules
from services.processor.applications.traces.spans import CALLED, CALLED_MAX, SPANS, TraceSpans
from services.processor.applications.traces.trace import (
    Part,
    TraceState,
    due_ms,
    forget,
    ready,
    spans_of,
    take_span,
)
from services.processor.engine.application.application import (
    Application,
    Context,
    EventTime,
    Processor,
    Store,
    StoreSpec,
)
from services.processor.engine.record import Record
from shared import codec, topics
from shared.codec import NO_JSON, Undecodable
from shared.partitioning import api_key
from shared.schemas.span import SpanFields

TRACES: Final = StoreSpec(
    name="traces", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(TraceState).decode
)

_CALLS_DROPPED: Final = "calls_dropped"


class _Times(msgspec.Struct):
    """The times of a span."""

    start_us: int
    duration_us: int


_times: Final = msgspec.json.Decoder(_Times)


class Traces:
    """The processor of one partition."""

    def __init__(self, context: Context, rules: TraceRules) -> None:
        self._context = context
        self._rules = rules
        self._traces: Store[TraceState] = context.store(TRACES)
        self._spans = context.map(SPANS)
        self._called = context.map(CALLED)

    def fold(self, record: Record) -> None:
        """Takes one span in."""
        key, value = record.key, record.value
        if value is None or key is None:
            raise Undecodable("the record has no key or no value")
        span = codec.SPAN.decode(value)
        known = self._traces.get(key)
        trace = known or TraceState()
        spans = TraceSpans(self._spans, key)
        result = take_span(trace, spans, span, len(value), rules=self._rules, clock_ms=self._context.clock_ms)
        if result.is_late:
            self._context.emit(topics.LATE_SPANS, key, value)
            if known is None:
                return
        elif (
            result.is_new
            and (call := to_api_call(span)) is not None
            and self._is_first(key, trace, span.span_id, is_kept=result.is_kept)
        ):
            self._context.emit(
                topics.API_CALLS, api_key(call.customer_id, call.host), codec.API_CALL.encode(call), by_key=True
            )
        self._put(key, trace)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:  # noqa: ARG002 - traces alone have deadlines
        """A part's window has ended, or it is kept no longer."""
        trace = self._traces.get(key)
        if trace is None:
            return
        clock_ms, spans = self._context.clock_ms, TraceSpans(self._spans, key)
        for part in ready(trace, self._rules, clock_ms):
            self._emit_row(key, trace, part, spans_of(part, spans))
        forget(trace, spans, self._rules, clock_ms)
        self._put(key, trace)

    def _is_first(self, key: bytes, trace: TraceState, span_id: str, *, is_kept: bool) -> bool:
        """Whether the call of a span that is new is emitted: not again where the span had no room, so its id is noted."""
        entry = span_id.encode()
        if trace.called and self._called.get(key, entry) is not None:
            return False
        if is_kept:
            return True
        # Without a part the trace has no row, with which the ids would go.
        if not trace.parts or trace.called >= CALLED_MAX:
            self._context.tally(_CALLS_DROPPED, 1)
            return False
        self._called.put(key, entry, b"")
        trace.called += 1
        return True

    def _emit_row(self, key: bytes, trace: TraceState, part: Part, spans: list[SpanFields]) -> None:
        customer_id, _, trace_id = key.decode().partition(":")
        part.is_written = True
        if not spans:
            # Its spans were quarantined, and did not find room there.
            return
        part.revision += 1
        rows = [
            absorbed_row(number, revision, part.number, customer_id=customer_id, trace_id=trace_id)
            for number, revision in part.absorbed
        ]
        part.absorbed = []
        rows.append(to_row(trace, part, spans, customer_id=customer_id, trace_id=trace_id, revision=part.revision))
        for row in rows:
            self._context.emit(topics.TRACES, key, codec.TRACE.encode(row))

    def _put(self, key: bytes, trace: TraceState) -> None:
        if trace.parts:
            self._traces.put(key, trace, due_ms(trace, self._rules))
        elif self._traces.get(key) is not None:
            if trace.called:
                self._called.clear(key, CALLED_MAX)
            self._traces.delete(key)


def _event_ms(record: Record) -> int:
    """A span's end: when it could be sent."""
    try:
        times = _times.decode(record.value or b"")
    except NO_JSON as error:
        raise Undecodable(str(error)) from error
    return (times.start_us + times.duration_us) // 1000


def application(rules: TraceRules) -> Application:
    """The application under these rules."""

    def start(context: Context) -> Processor:
        return Traces(context, rules)

    return Application(
        name="traces",
        inputs=(topics.SPANS,),
        outputs=(topics.TRACES, topics.LATE_SPANS, topics.API_CALLS, topics.REJECTED),
        changelog=topics.TRACES_CHANGELOG,
        stores=(TRACES, SPANS, CALLED),
        start=start,
        cannot_grow="its traces end by event time, and spans that are handed on come too late for them",
        event_time=EventTime(_event_ms, grace_ms=rules.grace_ms),
        lookups=(trace_lookup(TRACES),),
        tallies=(_CALLS_DROPPED,),
    )
