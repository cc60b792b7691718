"""AppendTimes: keeps a broker's clock that leaps from moving a partition's clock, which would finish every open view.

The clock of a partition follows the append times of its records, and these are a broker's wall clock. A record may be stamped
ahead of the present by what brokers' clocks differ, and by no more. The present is the later one of two times. One is this
machine's wall clock. The other began with the partition's clock at its takeover and runs on with the monotonic clock. It follows
the brokers' times of the partition's commits, unless these leap too: one broker may lead both the input and the changelog. So a
slow clock of this machine holds up nothing, where the partition was at work shortly before.
"""

import time
from collections.abc import Sequence

import msgspec
import structlog

from services.processor.engine.record import Record
from services.processor.runtime.partition.transaction import Durable
from services.rim.telemetry.metrics import begin, counter
from shared.metrics import PROCESSOR_LEAPS

log = structlog.get_logger(__name__)


class AppendTimes:
    """The append times of one partition. A record stamped more than `lead_ms_max` ahead of the present is taken as appended now."""

    def __init__(self, application: str, partition: int, lead_ms_max: int, *, clock_ms: int = 0) -> None:
        """`clock_ms` is the partition's clock at its takeover."""
        self._application = application
        self._partition = partition
        self._lead_ms_max = lead_ms_max
        #: A broker's time that is believed, and when it was (monotonic seconds).
        self._believed = (clock_ms, time.monotonic())
        begin(PROCESSOR_LEAPS, [application], [str(partition)])

    def bounded(self, records: Sequence[Record], last_commit: Durable) -> list[Record]:
        """The records unchanged, without those that are ahead; these are counted and logged."""
        if not records:
            return []
        present_ms = self._present_ms(last_commit)
        latest_ms = present_ms + self._lead_ms_max
        newest_ms = max([record.timestamp_ms for record in records])
        if newest_ms <= latest_ms:
            return list(records)
        bounded = [
            record if record.timestamp_ms <= latest_ms else msgspec.structs.replace(record, timestamp_ms=present_ms)
            for record in records
        ]
        ahead = sum(record.timestamp_ms > latest_ms for record in records)
        counter(PROCESSOR_LEAPS).labels(self._application, str(self._partition)).inc(ahead)
        log.error(
            "append_time_leaps",
            topic=records[0].topic,
            partition=self._partition,
            records=ahead,
            ahead_ms=newest_ms - present_ms,
            first_offset=next(record.offset for record in records if record.timestamp_ms > latest_ms),
        )
        return bounded

    def _present_ms(self, last_commit: Durable) -> int:
        present_ms = max(time.time_ns() // 1_000_000, _run_on(*self._believed))
        if last_commit.ended_at is None:
            return present_ms
        by_broker_ms = _run_on(last_commit.append_ms, last_commit.ended_at)
        if not present_ms < by_broker_ms <= present_ms + self._lead_ms_max:
            return present_ms
        self._believed = last_commit.append_ms, last_commit.ended_at
        return by_broker_ms


def _run_on(at_ms: int, at_seconds: float) -> int:
    """A time now that was `at_ms` at `at_seconds` (monotonic)."""
    return at_ms + int((time.monotonic() - at_seconds) * 1_000)
