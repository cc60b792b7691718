"""An open trace: which of its spans belong together in time, which are new, which are late. Pure.

A span is the interval from its start to its end. Spans of one trace id that are at most the gap apart are one part of the trace; a
span between two parts joins them. So the parts, and the spans in them, depend only on the set of spans and not on their order, as
long as no span is late.

A part's row is written when the clock passes the gap after its last end, and again when spans arrive within the grace. The part
is kept for some time after that, for lookups and for spans that began long before. So a span that ended within the grace period
is never late.
"""

from typing import Final, Protocol

import msgspec

from services.processor.applications.traces.settings import TraceRules
from services.processor.engine.windows import Window
from shared.schemas.span import Span, SpanFields

#: Of more parts that are joined at once, one scan of the whole trace finds the spans.
_SCANS_MAX: Final = 8
_FIELDS = SpanFields.__struct_fields__


class Part(msgspec.Struct, array_like=True):
    """Spans of one trace that belong together in time; the window holds all of them."""

    number: int
    window: Window
    #: The number under which its spans are kept: its own, or that of a part which was joined with it.
    kept_under: int
    span_count: int = 0
    span_bytes: int = 0
    duplicates: int = 0
    #: Rows written so far, and whether the last of them holds all present spans.
    revision: int = 0
    is_written: bool = False
    #: Parts whose rows were written and that were later joined to this one: number and revision of the row that retracts each.
    absorbed: list[tuple[int, int]] = []


class Spans(Protocol):
    """The spans of one trace, which its state is without."""

    def get(self, kept_under: int, span_id: str) -> SpanFields | None:
        """The span of this id that is kept under a number, or None."""
        ...

    def put(self, kept_under: int, fields: SpanFields) -> None:
        """Keeps a span, in place of the one with its id."""
        ...

    def all(self, kept_under: int, limit: int) -> list[SpanFields]:
        """The first `limit` spans that are kept under a number, by id."""
        ...

    def by_number(self) -> dict[int, list[SpanFields]]:
        """All spans of the trace, by the number under which they are kept."""
        ...

    def delete(self, kept_under: int, span_id: str) -> None:
        """Deletes a span."""
        ...

    def clear(self, kept_under: int, limit: int) -> None:
        """Deletes the first `limit` spans that are kept under a number."""
        ...


class TraceState(msgspec.Struct, array_like=True):
    """What is kept of one trace id besides its spans."""

    parts: list[Part] = []
    last_number: int = 0
    late: int = 0
    #: Spans dropped for lack of room, and how many of them are noted as calls.
    dropped: int = 0
    called: int = 0


class TakenSpan(msgspec.Struct, frozen=True):
    """The result for a span: late and dropped, or maybe new."""

    is_late: bool = False
    #: It was not among the kept spans; and it is now, since there was room.
    is_new: bool = False
    is_kept: bool = False


def window_of(span: SpanFields) -> Window:
    """The span's time, ms since 1970."""
    return Window(span.start_us // 1000, span.end_us // 1000)


def take_span(
    trace: TraceState, spans: Spans, span: Span, size_bytes: int, *, rules: TraceRules, clock_ms: int
) -> TakenSpan:
    """Puts a span, whose record has `size_bytes`, into its part, made or joined as need be. A late one is counted alone."""
    grown, windows = rules.sessions.merge(window_of(span), [part.window for part in trace.parts])
    if rules.sessions.is_closed(grown, clock_ms):
        trace.late += 1
        return TakenSpan(is_late=True)
    touched = sorted((part for part in trace.parts if part.window in windows), key=lambda part: part.number)
    is_known = any(spans.get(part.kept_under, span.span_id) is not None for part in touched)
    has_room = _has_room(trace, size_bytes, rules)
    if not is_known and not has_room:
        trace.dropped += 1
        if not touched:
            return TakenSpan(is_new=True)
    part = _joined(trace, spans, touched) if touched else _new(trace)
    if len(touched) > 1 or part.window != grown:
        part.window, part.is_written = grown, False
    if is_known:
        part.duplicates += 1
        _replace(trace, spans, part, span, size_bytes, span_bytes_max=rules.span_bytes_max)
    elif has_room:
        part.span_bytes += size_bytes
        part.span_count += 1
        part.is_written = False
        spans.put(part.kept_under, _fields(span))
    return TakenSpan(is_new=not is_known, is_kept=is_known or has_room)


def spans_of(part: Part, spans: Spans) -> list[SpanFields]:
    """The spans of a part."""
    return spans.all(part.kept_under, part.span_count)


def due_ms(trace: TraceState, rules: TraceRules) -> int:
    """When a part's row is next written or a part is forgotten, ms; 0 for a trace without parts."""
    return min((_due_ms(part, rules) for part in trace.parts), default=0)


def ready(trace: TraceState, rules: TraceRules, clock_ms: int) -> list[Part]:
    """The parts whose rows are due at this time."""
    return [part for part in trace.parts if not part.is_written and _ends_ms(part, rules) <= clock_ms]


def forget(trace: TraceState, spans: Spans, rules: TraceRules, clock_ms: int) -> None:
    """Drops the parts that are kept no longer, with their spans."""
    dropped = [part for part in trace.parts if part.is_written and _forgotten_ms(part, rules) <= clock_ms]
    for part in dropped:
        spans.clear(part.kept_under, part.span_count)
        trace.parts.remove(part)


def is_open(part: Part, rules: TraceRules, clock_ms: int) -> bool:
    """Whether spans may still come that are not late for it."""
    return not rules.sessions.is_closed(part.window, clock_ms)


def _has_room(trace: TraceState, size_bytes: int, rules: TraceRules) -> bool:
    span_count = sum(part.span_count for part in trace.parts)
    span_bytes = sum(part.span_bytes for part in trace.parts)
    return span_count < rules.spans_max and span_bytes + size_bytes <= rules.span_bytes_max


def _new(trace: TraceState) -> Part:
    trace.last_number += 1
    # A window that no time is in: the first span's own differs from it.
    part = Part(trace.last_number, Window(-1, -1), kept_under=trace.last_number)
    trace.parts.append(part)
    return part


def _joined(trace: TraceState, spans: Spans, touched: list[Part]) -> Part:
    """Joins all into the part that was first. The rows of the others must be retracted."""
    part, *others = touched
    if others:
        _gather_spans(part, touched, spans)
    for other in others:
        part.absorbed += other.absorbed
        if other.revision:
            part.absorbed.append((other.number, other.revision + 1))
        part.duplicates += other.duplicates
        part.span_bytes += other.span_bytes
    gone = {other.number for other in others}
    trace.parts = [one for one in trace.parts if one.number not in gone]
    return part


def _gather_spans(part: Part, touched: list[Part], spans: Spans) -> None:
    """Keeps the spans of all under the number with the most spans, so that a span is moved at most log2(`spans_max`) times."""
    target = max(touched, key=lambda one: one.span_count)
    kept_under, count = target.kept_under, sum(one.span_count for one in touched)
    whole = spans.by_number() if len(touched) > _SCANS_MAX else None
    for origin in touched:
        if origin is target:
            continue
        moved = spans_of(origin, spans) if whole is None else whole.get(origin.kept_under, [])
        for fields in moved:
            spans.delete(origin.kept_under, fields.span_id)
            known = spans.get(kept_under, fields.span_id)
            if known is not None:
                part.duplicates += 1
                count -= 1
            # Of two spans with the same id the one with the later end is valid, in any order of arrival.
            if known is None or _rank(fields) > _rank(known):
                spans.put(kept_under, fields)
    part.kept_under, part.span_count = kept_under, count


def _replace(trace: TraceState, spans: Spans, part: Part, span: Span, size_bytes: int, *, span_bytes_max: int) -> None:
    """Puts a span that was sent again, if it has the later end and there is room for what it is larger by."""
    fields = _fields(span)
    known = spans.get(part.kept_under, fields.span_id)
    if known is None or _rank(fields) <= _rank(known):
        return
    # A record is no smaller than its fields: what is counted is never less than what is kept.
    more_bytes = size_bytes - len(msgspec.json.encode(known))
    if sum(one.span_bytes for one in trace.parts) + more_bytes > span_bytes_max:
        trace.dropped += 1
        return
    part.span_bytes += more_bytes
    part.is_written = False
    spans.put(part.kept_under, fields)


def _fields(span: Span) -> SpanFields:
    return SpanFields(**{name: getattr(span, name) for name in _FIELDS})


def _rank(fields: SpanFields) -> tuple[int, bytes]:
    return fields.end_us, msgspec.msgpack.encode(fields, order="deterministic")


def _ends_ms(part: Part, rules: TraceRules) -> int:
    return part.window.last_ms + rules.gap_ms + 1


def _forgotten_ms(part: Part, rules: TraceRules) -> int:
    return rules.sessions.closes_ms(part.window) + rules.kept_ms


def _due_ms(part: Part, rules: TraceRules) -> int:
    return _forgotten_ms(part, rules) if part.is_written else _ends_ms(part, rules)
