"""The input that real clients make: views of `bench.fold.inputs` through the real intake, each many times under other ids.

What the row of each view must be comes from the same fold in memory, without a broker; a peer has rows of its own to compare.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import Producer

from bench.fold.inputs import INPUTS, Input
from bench.processor.beacons import Loaded, produce, producer
from services.processor.applications.video_views import app as video_views
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from shared import topics
from shared.partitioning import partition_of

#: Views that differ in more than their ids.
DISTINCT: Final = 2_000
_FLUSH_SECONDS_MAX: Final = 300.0
#: Of an id: what says which copy it is. The rest tells the distinct views apart.
_COPY_CHARS: Final = 8
_COMMIT_RECORDS: Final = 2_000
#: What depends on when a beacon was appended, and on the copy.
NOT_COMPARED: Final = frozenset({"first_append_ms", "last_append_ms", "day", "view_id"})


def load_captured(bootstrap: str, topic: str, client: str, *, views: int, in_flight: int, clean_ms: int) -> Loaded:
    """Fills the topic with at least so many views. Raises `TimeoutError` when the broker does not take it in time."""
    inputs = INPUTS[client](min(views, DISTINCT))
    rows = _rows(inputs, clean_ms)
    to_kafka = producer(bootstrap)
    beacons = size_bytes = 0
    for key, value in _turns(inputs, copies=-(-views // DISTINCT), at_once=max(1, in_flight // DISTINCT)):
        produce(to_kafka, topic, value, key, partition_of.__wrapped__(key, topics.BEACONS.partitions(_PROFILE)))
        beacons += 1
        size_bytes += len(value)
    _flush(to_kafka, beacons)
    copies = -(-views // DISTINCT)
    ended = {copied(key, copy): row for key, row in rows.items() for copy in range(copies)}
    never_ended = (len({one.key for one in inputs}) - len(rows)) * copies
    return Loaded(beacons, size_bytes, ended, never_ended)


_PROFILE: Final = topics.PROFILES["laptop"]


def _flush(to_kafka: Producer, beacons: int) -> None:
    if to_kafka.flush(_FLUSH_SECONDS_MAX):
        raise TimeoutError(f"the broker did not take {beacons} beacons in {_FLUSH_SECONDS_MAX} s")


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what differs between two runs and two copies."""
    return {name: value for name, value in row.items() if name not in NOT_COMPARED}


def copied(key: bytes, copy: int) -> bytes:
    """The key of a copy of a view."""
    customer, _, view_id = key.partition(b":")
    return customer + b":" + _copied_id(view_id, copy)


def _copied_id(view_id: bytes, copy: int) -> bytes:
    return b"%08x" % copy + view_id[_COPY_CHARS:]


def _turns(inputs: list[Input], *, copies: int, at_once: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values: of the copies that are in flight at once, each record in turn."""
    for first in range(0, copies, at_once):
        group = range(first, min(copies, first + at_once))
        for one in inputs:
            view_id = one.key.partition(b":")[2]
            for copy in group:
                yield copied(one.key, copy), one.value.replace(view_id, _copied_id(view_id, copy))


def _rows(inputs: list[Input], clean_ms: int) -> dict[bytes, dict[str, Any]]:
    """By key the rows of the views whose player was closed, as the fold makes them in memory."""
    core = Core(video_views.application(FinishRules(clean_ms=clean_ms)), 0, MemoryStore())
    rows: dict[bytes, dict[str, Any]] = {}
    records = [Record(topics.BEACONS.name, 0, at, one.at_ms, one.key, one.value, ()) for at, one in enumerate(inputs)]
    taken = 0
    while taken < len(records):
        taken += core.fold(records[taken : taken + _COMMIT_RECORDS])
        _gather(core, rows)
    while not core.advance_to(inputs[-1].at_ms + 2 * clean_ms):
        _gather(core, rows)
    _gather(core, rows)
    return rows


def _gather(core: Core, rows: dict[bytes, dict[str, Any]]) -> None:
    if core.is_dirty:
        for output in core.cut().outputs:
            if output.topic == topics.VIEWS.name and output.key is not None and output.value is not None:
                rows[output.key] = comparable(json.loads(output.value))
        core.commit()
