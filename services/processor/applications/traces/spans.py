"""The spans of traces: each is a row of its own, so it is written once and not with every change of its trace."""

from typing import Final

import msgspec

from services.processor.applications.traces.settings import SPANS_MAX
from services.processor.engine.application.application import MapSpec, RowMap, Rows
from shared.schemas.span import SpanFields

#: The owner is the trace's key; an entry is the number under which a part keeps its spans (4 bytes), then the span's id.
SPANS: Final = MapSpec(
    name="spans",
    id=2,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(SpanFields).decode,
    goes_with="traces",
)
#: The ids of server spans that found no room, whose calls were emitted: a span that is sent again is no second call.
CALLED: Final = MapSpec(name="called_spans", id=3, encode=bytes, decode=bytes, goes_with="traces")
#: Of one trace. Calls of further spans without room are dropped, since they could come again.
CALLED_MAX: Final = 10_000
_NUMBER_BYTES: Final = 4


class TraceSpans:
    """The `trace.Spans` of one trace."""

    def __init__(self, rows: RowMap[SpanFields], key: bytes) -> None:
        self._rows = rows
        self._key = key

    def get(self, kept_under: int, span_id: str) -> SpanFields | None:
        return self._rows.get(self._key, _prefix(kept_under) + span_id.encode())

    def put(self, kept_under: int, fields: SpanFields) -> None:
        self._rows.put(self._key, _prefix(kept_under) + fields.span_id.encode(), fields)

    def all(self, kept_under: int, limit: int) -> list[SpanFields]:
        return [fields for _, fields in self._rows.items(self._key, limit, prefix=_prefix(kept_under))]

    def by_number(self) -> dict[int, list[SpanFields]]:
        return _by_number(self._rows.items(self._key, SPANS_MAX))

    def delete(self, kept_under: int, span_id: str) -> None:
        self._rows.delete(self._key, _prefix(kept_under) + span_id.encode())

    def clear(self, kept_under: int, limit: int) -> None:
        self._rows.clear(self._key, limit, prefix=_prefix(kept_under))


def committed_spans(rows: Rows, key: bytes) -> dict[int, list[SpanFields]]:
    """The spans of a trace, by the number under which they are kept."""
    return _by_number(rows.items(SPANS, key, SPANS_MAX))


def _by_number(items: list[tuple[bytes, SpanFields]]) -> dict[int, list[SpanFields]]:
    spans: dict[int, list[SpanFields]] = {}
    for entry, fields in items:
        spans.setdefault(int.from_bytes(entry[:_NUMBER_BYTES], "big"), []).append(fields)
    return spans


def _prefix(kept_under: int) -> bytes:
    return kept_under.to_bytes(_NUMBER_BYTES, "big")
