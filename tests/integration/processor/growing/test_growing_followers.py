"""Through a growth: finalizer and serving go on landing, the dashboard's figures are exact, lookups find views where they are now,
and a standby takes over.

The finalizer's stream runs in the tests' own Spark session: a process of it costs more than all the rest.
"""

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import wait_until as looked_until
from services.accounts.commands import make_tenant
from services.finalizer.streaming import stream
from services.finalizer.streaming.batches import Batches
from services.finalizer.streaming.raw import RawLanding
from services.rim.process.crash_points import CrashPoints
from shared import codec, topics
from shared.partitioning import partition_of, view_key
from shared.topics import Topic
from tests.integration.dashboard.dashboard_parts import WATCHER, start_dashboard
from tests.integration.finalizer.warehouse.warehousing import NOW_MS, Warehouse
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.feed import beacon
from tests.integration.parts.installed import PARTITIONS, kafka, variables
from tests.integration.parts.lookup_slots import T0, VIEW_IDS, LookupSlot, send
from tests.integration.parts.slots import wait_until
from tests.integration.processor.growing.growth import WANTED, Growth
from tests.integration.serving.test_serving import Service

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

#: Views end when their clients say so.
SETTINGS = {"VIDEO_VIEWS_FINISH_CLEAN_MS": "100"}
#: Neither replica takes the other for dead on a busy machine.
STANDBYS = {"PROCESSOR_STANDBYS": "1", "PROCESSOR_SUSPECT_MS": "5000"}
GROWN = {**SETTINGS, **STANDBYS, "PLAYHEAD_BEACON_PARTITIONS": str(WANTED)}
#: Looking at a table, or asking the dashboard, costs more CPU than what is waited for.
LOOK_SECONDS = 1.0
HOMES = {view_id: partition_of(view_key("acme", view_id), WANTED) for view_id in VIEW_IDS}
MOVED = sum(home >= PARTITIONS for home in HOMES.values())


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_VIEWS


class Dashboard:
    """The service, started with the new number as docs/growing.md says."""

    def __init__(self, broker: Broker, folder: Path, dsn: str, lookup_url: str) -> None:
        self._url = f"http://127.0.0.1:{(port := free_port())}"
        lookup_port = urllib.parse.urlsplit(lookup_url).port or 0
        self.child = start_dashboard(folder, broker, dsn, port, lookup_port, PLAYHEAD_BEACON_PARTITIONS=str(WANTED))
        self._token = make_tenant(dsn, organisation="Tests", email=WATCHER).token

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self._url + path, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def open_now(self) -> int:
        """Open views by topic `live`."""
        found = self.get("/v1/live")["now"]
        return 0 if found is None else int(found["open_now"])

    def open_views(self) -> dict[int, int]:
        """The same by partition, as the slots say."""
        rows = self.get("/v1/partitions")["partitions"]
        assert [row["partition"] for row in rows] == list(range(WANTED))
        return {row["partition"]: count for row in rows if (count := row["tallies"].get("open_views"))}

    def copied(self) -> list[int]:
        """Partitions that a standby has a fresh copy of."""
        rows = self.get("/v1/partitions")["partitions"]
        return [row["partition"] for row in rows if row["standby_lag_records"] is not None]


def end_views(broker: Broker) -> None:
    """The last beacon of each view, by the new number."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for view_id, home in HOMES.items():
        value = codec.BEACON.encode(beacon(view_id, 7, "viewend", T0 + 7000, view_watch_time=7000))
        producer.produce(topics.BEACONS.name, value, view_key("acme", view_id), home)
    assert producer.flush(30) == 0


def kept(broker: Broker) -> set[tuple[int, int]]:
    """Partition and offset of each committed record of topic `beacons`."""
    reader = {"bootstrap.servers": broker.bootstrap, "group.id": "followers", "enable.partition.eof": True}
    consumer = Consumer(reader | {"isolation.level": "read_committed"})
    found, unread = set(), set(range(WANTED))
    try:
        consumer.assign([TopicPartition(topics.BEACONS.name, number, 0) for number in unread])
        while unread:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is not None:
                unread -= {message.partition()}
            else:
                found.add((message.partition() or 0, message.offset() or 0))
        return found
    finally:
        consumer.close()


def grow(broker: Broker, folder: Path) -> None:
    growth = Growth(folder, variables(broker.bootstrap))
    assert growth.ended() == 0, growth.said


def seen(condition: Callable[[], bool], what: str) -> None:
    def holds() -> bool:
        try:
            return condition()
        except urllib.error.HTTPError as error:
            # The dashboard says so while a slot, or Kafka, does not answer in time.
            if error.code not in {502, 503, 504}:
                raise
            return False

    looked_until(holds, 120, what, every=LOOK_SECONDS)


@contextmanager
def ended(serving: Service, *slots: LookupSlot) -> Iterator[None]:
    try:
        yield
    finally:
        serving.child.kill()
        for one in slots:
            one.slot.end()


@contextmanager
def landing(broker: Broker, warehouse: Warehouse, *, once: bool = False) -> Iterator[None]:
    """The finalizer's stream of topic `beacons`, from its checkpoint on; `once`: until all that there is has landed."""
    stop, topic = threading.Event(), topics.BEACONS.name
    work = RawLanding(
        warehouse.settings.warehouse_dir, topic, "its id", clock_ms=lambda: NOW_MS, crash_points=CrashPoints()
    )
    records = stream.read(warehouse.spark, kafka(broker.bootstrap), topic, offsets_max=100_000, starting="earliest")
    batches = Batches("bronze", work, stop)
    started = stream.start(records, batches, warehouse.settings, trigger_seconds=2, once=once)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            stream.run([started], stop, drain_seconds_max=120)
        except BaseException as error:  # noqa: BLE001  (the test fails with it)
            failed.append(error)

    running = threading.Thread(target=run, name="landing")
    running.start()
    try:
        yield
    finally:
        if not once:
            stop.set()
        running.join(180)
    assert not failed, failed


def landed(warehouse: Warehouse) -> set[tuple[int, int]]:
    """What the finalizer has of topic `beacons`; asserts that it has nothing twice."""
    rows = Counter(warehouse.installation.table("bronze", "SELECT kafka_partition, kafka_offset FROM t"))
    assert set(rows.values()) <= {1}
    return set(rows)


def test_everything_that_follows_the_beacons_follows_a_growth(
    own_broker: Broker, warehouse: Warehouse, tmp_path: Path
) -> None:
    dsn = warehouse.installation.dsn
    before = LookupSlot(own_broker, tmp_path, 0, **SETTINGS)
    after = LookupSlot(own_broker, tmp_path, 0, **GROWN)
    standby = LookupSlot(own_broker, tmp_path, 1, **GROWN, PROCESSOR_SLOT="test/0", PROCESSOR_REPLICA="1")
    # These two run through it.
    serving = Service(own_broker.bootstrap, dsn, tmp_path / "serving.log")
    with ended(serving, before, after, standby):
        with landing(own_broker, warehouse):
            before.slot.start()
            wait_until(before.slot.is_ready, "the slot is ready")
            send(own_broker, range(1, 4))
            wait_until(lambda: before.knows(3), "it knows every view")
            seen(lambda: len(landed(warehouse)) == 3 * len(VIEW_IDS), "beacons are landed")
            assert before.slot.terminate() == 0
            grow(own_broker, tmp_path)
            after.slot.start()
            wait_until(lambda: after.knows(3), "it knows every view")
            standby.slot.start()
            lookups_and_figures_follow(own_broker, Dashboard(own_broker, tmp_path, dsn, after.url), after, standby)
            there = kept(own_broker)
            seen(lambda: landed(warehouse) == there, "each beacon is landed, once")
        # As after a restart: from a checkpoint that has the new partitions.
        end_views(own_broker)
        with landing(own_broker, warehouse, once=True):
            pass
        assert landed(warehouse) == kept(own_broker)
        rows = [("acme", view_id, 1, 6) for view_id in sorted(VIEW_IDS)]
        query = 'SELECT customer_id, view_id, revision, beacon_count FROM serving.views ORDER BY view_id COLLATE "C"'
        seen(lambda: warehouse.installation.serving(query) == rows, "each view is a hot row")


def is_found(slot: LookupSlot, view_id: str, home: int) -> bool:
    """Whether a lookup finds the view in this partition; never in another. It is 503 while the group is asked whose that is."""
    status, body = slot.view(view_id)
    if status == 503:
        return False
    assert (status, body["partition"]) == (200, home)
    return True


def lookups_and_figures_follow(broker: Broker, dashboard: Dashboard, slot: LookupSlot, standby: LookupSlot) -> None:
    try:
        for view_id, home in HOMES.items():
            wait_until(lambda view_id=view_id, home=home: is_found(slot, view_id, home), "each view is found")  # type: ignore[misc]
        # By the former number: what has moved is handed on.
        send(broker, range(4, 6))
        wait_until(lambda: slot.knows(5), "each view has its further beacons")
        arrived = 5 * len(VIEW_IDS) + 2 * MOVED
        seen(lambda: dashboard.get("/v1/arrivals?customer=acme")["beacons_n"] == arrived, "all are shown")
        seen(lambda: dashboard.open_views() == Counter(HOMES.values()), "each partition counts its own views")
        seen(lambda: dashboard.open_now() == len(VIEW_IDS), "no view is counted twice")
        seen(lambda: dashboard.copied() == list(range(WANTED)), "the standby has copies of the new partitions too")
        slot.slot.kill()
        wait_until(lambda: standby.knows(5), "the standby works every partition", 120)
    finally:
        dashboard.child.stop(30)
