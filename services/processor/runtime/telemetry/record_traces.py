"""RecordTraces: the traced records that this slot has read, until their outputs are committed.

Only this process knows them: a hand-over or a crash ends a trace early, and loses no record.
"""

import threading
import time
from collections import OrderedDict, defaultdict
from typing import Final, NamedTuple

import structlog
from confluent_kafka import Message

from services.processor.engine.core.checkpoint import Checkpoint
from services.rim.telemetry.tracing import HEADER, Traces

log = structlog.get_logger(__name__)

#: Keys whose row is awaited; a new key displaces the oldest.
OPEN_MAX: Final = 10_000
_NS_PER_MS: Final = 1_000_000


class _Traced(NamedTuple):
    key: bytes
    traceparent: str
    append_ms: int


class RecordTraces:
    """Exports two spans of a traced record: `fold`, to the commit that has it; `row`, to that of the first output of its key."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        #: By partition, then by topic and offset: read, and not committed yet.
        self._read: defaultdict[int, dict[tuple[str, int], _Traced]] = defaultdict(dict)
        #: By key: committed, and its row not exported yet.
        self._open: OrderedDict[bytes, _Traced] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, message: Message) -> None:
        """A message was read; most have no context."""
        for header in message.headers() or ():
            value = header[1]
            if header[0] == HEADER and isinstance(value, bytes):
                traced = _Traced(message.key() or b"", value.decode("ascii", "replace"), message.timestamp()[1])
                with self._lock:
                    self._read[message.partition() or 0][message.topic() or "", message.offset() or 0] = traced

    def committed(self, partition: int, checkpoint: Checkpoint) -> None:
        """A checkpoint of the partition is durable."""
        now_ns = time.time_ns()
        with self._lock:
            self._note_folded(partition, checkpoint, now_ns)
            if self._open:
                self._note_rows(checkpoint, now_ns)

    def _note_folded(self, partition: int, checkpoint: Checkpoint, now_ns: int) -> None:
        waiting, ends = self._read[partition], checkpoint.meta.next_offsets
        for at in [at for at in waiting if at[1] < ends.get(at[0], 0)]:
            traced = waiting.pop(at)
            self._note("fold", traced, now_ns, partition=partition, offset=at[1])
            self._open.setdefault(traced.key, traced)
            if len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)

    def _note_rows(self, checkpoint: Checkpoint, now_ns: int) -> None:
        topics = {output.key: output.topic for output in checkpoint.outputs if output.key in self._open}
        for key, topic in topics.items():
            trace_id = self._note("row", self._open.pop(key), now_ns, topic=topic)
            log.info("traced_row", key=key.decode("utf-8", "replace"), topic=topic, trace_id=trace_id)

    def _note(self, name: str, traced: _Traced, now_ns: int, **attributes: str | int) -> str:
        return self._traces.note(name, traced.traceparent, traced.append_ms * _NS_PER_MS, now_ns, **attributes)
