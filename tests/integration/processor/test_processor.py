"""The processor on a real broker: every view, its export and every live bucket once, through kills of every part."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Message

from deploy.local.broker import Broker
from shared import codec, topics
from shared.schemas.live import BUCKET_MS, Live
from shared.schemas.view import View
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.feed import FINISH, Feed, Rows, committed, expect
from tests.integration.parts.slots import Slot, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (*OF_VIEWS, topics.VIEWS_PROTOBUF)


def test_every_view_is_finished_once_through_kills_pauses_and_handovers(own_broker: Broker, tmp_path: Path) -> None:
    environ = FINISH | {"VIDEO_VIEWS_EXPORT_PROTOBUF": "true"}
    slots = [Slot(own_broker.bootstrap, tmp_path, number, **environ) for number in range(2)]
    feed = Feed(own_broker.bootstrap, views=300, seconds=24, seed=5)
    rows = Rows(own_broker.bootstrap)
    try:
        for slot in slots:
            slot.start()
        wait_until(lambda: all(slot.is_ready() for slot in slots), "both slots are ready")
        feed.start()
        time_of_faults = random.Random(11)
        for fault in ("kill", "pause", "terminate", "kill"):
            feed.join(time_of_faults.uniform(2.0, 4.0))
            slot = time_of_faults.choice(slots)
            if fault == "pause":
                # Longer than the session: its partitions move, and it wakes as a zombie.
                slot.pause()
                feed.join(8)
                slot.wake()
                continue
            if fault == "kill":
                slot.kill()
            else:
                # One that was started seconds ago may not have come so far that it heeds a signal.
                wait_until(slot.is_ready, "the slot is ready")
                assert slot.terminate() == 0, slot.log_tail()
            slot.start()
        feed.finish()
        expect(feed.truth, feed.repeats, rows, seconds=180)
        expect_exported(own_broker.bootstrap, rows.rows)
        expect_buckets_once_and_all(own_broker.bootstrap, feed)
        wait_until(lambda: all(slot.is_ready() for slot in slots), "both slots are ready again")
        for slot in slots:
            assert slot.terminate() == 0, slot.log_tail()
    finally:
        rows.close()
        for slot in slots:
            slot.end()


def expect_exported(bootstrap: str, rows: list[View]) -> None:
    """Each revision of each row stands once in the export, too."""

    def revision(message: Message) -> tuple[bytes | None, bytes | None]:
        return message.key(), dict(message.headers() or [])["revision"]

    wanted = Counter((f"acme:{row.view_id}".encode(), str(row.revision).encode()) for row in rows)
    exported: Counter[tuple[bytes | None, bytes | None]] = Counter()

    def are_there() -> bool:
        """The end of a transaction is written to one partition after the other: a row is seen before its export."""
        exported.clear()
        exported.update(revision(message) for message in committed(bootstrap, topics.VIEWS_PROTOBUF))
        return exported.total() >= wanted.total()

    wait_until(are_there, "as many exports as rows")
    assert exported == wanted


def expect_buckets_once_and_all(bootstrap: str, feed: Feed) -> None:
    """What the live buckets count is whole; those of a partition follow each other without a hole, and none stands twice."""
    buckets: list[Live] = []

    def are_counted() -> bool:
        buckets[:] = [codec.LIVE.decode(message.value() or b"") for message in committed(bootstrap, topics.LIVE)]
        return sum(bucket.views_finished for bucket in buckets) >= len(feed.truth)

    wait_until(are_counted, "the last views are in a live bucket")
    assert sum(bucket.beacons for bucket in buckets) == sum(count for count, _, _ in feed.truth.values())
    assert sum(bucket.duplicates for bucket in buckets) == feed.repeats
    assert sum(bucket.views_started for bucket in buckets) == sum(bucket.views_finished for bucket in buckets)
    starts = defaultdict(list)
    for bucket in buckets:
        starts[bucket.partition].append(bucket.bucket_ms)
    for partition, times in starts.items():
        assert times == list(range(times[0], times[-1] + BUCKET_MS, BUCKET_MS)), f"partition {partition}: {times}"
