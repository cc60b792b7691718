"""Reports what was received of each customer to topic `received`, every 5 s."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from services.collector.received.counting import Counts, bucket_of
from services.collector.sink.records import Record
from services.collector.sink.sink import Sink, Unstored
from services.rim.telemetry import metrics
from shared import codec
from shared.metrics import COLLECTOR_RECEIVED_REPORTS
from shared.partitioning import partition_of
from shared.schemas.live import BUCKET_MS
from shared.topics import RECEIVED, Profile

log = structlog.get_logger(__name__)

#: Customers whose records are handed over at once: requests have their turn between them.
_AT_ONCE: Final = 200


class ReceivedReports:
    """Sends the reports of one process. A report that Kafka does not take is lost and counted: those after it are whole."""

    def __init__(self, counts: Counts, sink: Sink, profile: Profile, now_ms: Callable[[], int]) -> None:
        self.counts = counts
        self._sink = sink
        self._partitions = RECEIVED.partitions(profile)
        self._now_ms = now_ms
        self._reported_ms = 0
        self._problem = ""

    async def watch(self) -> None:
        """Sends each bucket at its end, for ever."""
        while True:
            now_ms = self._now_ms()
            await asyncio.sleep((bucket_of(now_ms) + BUCKET_MS - now_ms) / 1_000)
            await self.send(bucket_of(self._now_ms()) - BUCKET_MS)

    async def finish(self) -> None:
        """Sends what is left of the bucket that has begun."""
        await self.send(bucket_of(self._now_ms()))

    async def send(self, bucket_ms: int) -> None:
        """Sends what has come as that of a bucket; nothing for the last that was sent, and the one before (a clock was set back a
        little). A clock that was set back further had been ahead: buckets are sent by it as it is now."""
        if self._reported_ms - BUCKET_MS <= bucket_ms <= self._reported_ms:
            return
        self._reported_ms = bucket_ms
        records = [self._record(one.customer_id, codec.RECEIVED.encode(one)) for one in self.counts.report(bucket_ms)]
        outcome, problem = "ok", ""
        for begin in range(0, len(records), _AT_ONCE):
            try:
                await self._sink.store(records[begin : begin + _AT_ONCE])
            except Unstored as unstored:
                outcome, problem = "lost", unstored.reason
        if self.counts.uncounted:
            log.warning("customers_not_counted", beacons=self.counts.uncounted)
            self.counts.uncounted = 0
        metrics.counter(COLLECTOR_RECEIVED_REPORTS).labels(outcome).inc()
        if problem and problem != self._problem:
            log.warning("received_not_reported", problem=problem)
        self._problem = problem

    def _record(self, customer_id: str, value: bytes) -> Record:
        key = customer_id.encode()
        return Record(RECEIVED.name, partition_of(key, self._partitions), key, value, [])
