"""Reports of what was received reach topic `received` once a bucket; one that Kafka does not take is lost and said."""

import structlog

from services.collector.received.counting import Counts
from services.collector.received.reporting import ReceivedReports
from services.collector.sink.sink import MemorySink
from shared import codec
from shared.partitioning import partition_of
from shared.topics import PROFILES, RECEIVED

LAPTOP = PROFILES["laptop"]


class Reporting:
    """Reports of one process into memory."""

    def __init__(self) -> None:
        self.counts, self.sink, self.now_ms = Counts("c-1", 7), MemorySink(), 100_000
        self.reports = ReceivedReports(self.counts, self.sink, LAPTOP, lambda: self.now_ms)

    @property
    def sent(self) -> list[tuple[int, int]]:
        found = [codec.RECEIVED.decode(one.value) for one in self.sink.records]
        return [(one.bucket_ms, one.received) for one in found]


async def test_each_bucket_is_sent_once_by_customer() -> None:
    given = Reporting()
    given.counts.add({("acme", "1"): [3, 1]})
    await given.reports.send(100_000)
    await given.reports.send(105_000)
    # The clock was set back.
    given.counts.add({("acme", "1"): [4, 1]})
    await given.reports.send(100_000)
    await given.reports.send(110_000)
    assert given.sent == [(100_000, 3), (105_000, 0), (110_000, 4)]
    (first, *_) = given.sink.records
    assert (first.topic, first.key) == (RECEIVED.name, b"acme")
    assert first.partition == partition_of(b"acme", RECEIVED.partitions(LAPTOP))


async def test_a_clock_that_jumps_ahead_and_back_delays_no_report() -> None:
    given = Reporting()
    for bucket_ms in (100_000, 705_000, 110_000, 115_000):
        given.counts.add({("acme", "1"): [3, 1]})
        await given.reports.send(bucket_ms)
    assert given.sent == [(100_000, 3), (705_000, 3), (110_000, 3), (115_000, 3)]


async def test_what_kafka_does_not_take_is_lost_and_said_once() -> None:
    given = Reporting()
    given.sink.failing = "deadline"
    with structlog.testing.capture_logs() as logs:
        for bucket_ms in (100_000, 105_000):
            given.counts.add({("acme", "1"): [3, 1]})
            await given.reports.send(bucket_ms)
    assert [one["event"] for one in logs] == ["received_not_reported"]
    given.sink.failing = None
    given.counts.add({("acme", "1"): [1, 0]})
    await given.reports.send(110_000)
    assert given.sent == [(110_000, 1)]


async def test_what_is_left_at_the_end_is_sent() -> None:
    given = Reporting()
    await given.reports.send(95_000)
    given.counts.add({("acme", "1"): [2, 0]})
    await given.reports.finish()
    assert given.sent == [(100_000, 2)]


async def test_beacons_of_more_customers_than_are_counted_are_said() -> None:
    given = Reporting()
    given.counts.uncounted = 5
    with structlog.testing.capture_logs() as logs:
        await given.reports.send(100_000)
        await given.reports.send(105_000)
    assert [(one["event"], one["beacons"]) for one in logs] == [("customers_not_counted", 5)]
