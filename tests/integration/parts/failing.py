"""What the tests of failures have in common: a clean set of topics on one broker, and slots that end with their test."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from deploy.local.broker import Broker
from shared import topics
from shared.partitioning import partition_of
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS, with_topics, without_topics
from tests.integration.parts.feed import FINISH, Feed, Rows, committed, expect, partitions_of
from tests.integration.parts.slots import PROCESSOR, Slot, wait_until

#: Group members that die are noticed soon, and views finish soon; the store is written often. A commit costs a broker 7 ms of CPU
#: time and more: there are fewer of them.
QUICK = FINISH | {
    "VIDEO_VIEWS_FINISH_CLEAN_MS": "800",
    "VIDEO_VIEWS_FINISH_SILENT_MS": "2500",
    "PROCESSOR_SESSION_MS": "2000",
    "PROCESSOR_COMMIT_INTERVAL_MS": "500",
}


def empty(broker: Broker, wanted: Iterable[Topic] = OF_VIEWS) -> None:
    """Deletes all topics and creates these."""
    without_topics(broker)
    with_topics(broker, wanted)


def delete_group(broker: Broker, group: str = "video_views") -> None:
    """Deletes the group with its offsets, as soon as its last member counts as dead."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def is_deleted() -> bool:
        try:
            admin.delete_consumer_groups([group])[group].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NON_EMPTY_GROUP:
                raise
            return False
        return True

    wait_until(is_deleted, "the group is deleted")


class Scene:
    """One test's broker (or several), slots, feeds and rows."""

    def __init__(self, bootstrap: str, folder: Path, broker: Broker | None = None) -> None:
        self.bootstrap = bootstrap
        self._broker = broker
        self.folder = folder
        self.slots: list[Slot] = []
        self.feeds: list[Feed] = []
        self.rows = Rows(bootstrap)
        #: What must come of views that no feed has sent.
        self.also: dict[str, tuple[int, int, str]] = {}

    @property
    def broker(self) -> Broker:
        """The one broker."""
        assert self._broker is not None
        return self._broker

    def slot(self, *, program: tuple[str, ...] = PROCESSOR, **environ: str) -> Slot:
        """Another slot, not started."""
        slot = Slot(self.bootstrap, self.folder, len(self.slots), program=program, **(QUICK | environ))
        self.slots.append(slot)
        return slot

    def started(self, *, program: tuple[str, ...] = PROCESSOR, **environ: str) -> Slot:
        """Another slot, ready to work."""
        slot = self.slot(program=program, **environ)
        slot.start()
        wait_until(slot.is_ready, "the slot is ready")
        return slot

    def feed(self, *, views: int = 60, seconds: float = 2.0, text_bytes: int = 10) -> Feed:
        """Begins to feed views that no other feed has."""
        prefix = f"feed-{len(self.feeds)}"
        feed = Feed(
            self.bootstrap,
            views=views,
            seconds=seconds,
            prefix=prefix,
            text_bytes=text_bytes,
            seed=len(self.feeds),
        )
        self.feeds.append(feed)
        feed.start()
        return feed

    def send(self, key: bytes, *values: bytes, partition: int | None = None) -> None:
        """Appends records to `beacons` as they are, to the key's partition unless another is given."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "message.max.bytes": 1_100_000})
        to = partition_of(key, len(partitions_of(producer, topics.BEACONS))) if partition is None else partition
        for value in values:
            producer.produce(topics.BEACONS.name, value, key, to)
        assert producer.flush(30) == 0

    def rejected(self) -> list[tuple[str, bytes | None, bytes | None]]:
        """All that stands in topic `rejected`: reason, key, value."""
        found = []
        # To the topic's end: a broker that is busy may answer nothing for a second.
        for message in committed(self.bootstrap, topics.REJECTED):
            headers = dict(message.headers() or [])
            found.append((headers["reason"].decode(), message.key(), message.value()))
        return found

    def expect_truth(self, seconds: float = 120.0) -> None:
        """All that was fed has become rows, each once and right, and nothing is open still."""
        for feed in self.feeds:
            feed.finish()
        truth = self.also | {view_id: row for feed in self.feeds for view_id, row in feed.truth.items()}
        try:
            expect(truth, sum(feed.repeats for feed in self.feeds), self.rows, seconds)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *(slot.log_tail() for slot in self.slots)])) from error


@contextmanager
def scene_on(broker: Broker, folder: Path, wanted: Iterable[Topic] = OF_VIEWS) -> Iterator[Scene]:
    """A scene on empty topics; what still runs at its end is killed."""
    empty(broker, wanted)
    with scene_of(broker.bootstrap, folder, broker) as scene:
        yield scene


@contextmanager
def scene_of(bootstrap: str, folder: Path, broker: Broker | None = None) -> Iterator[Scene]:
    """A scene on the topics that there are."""
    scene = Scene(bootstrap, folder, broker)
    try:
        yield scene
    finally:
        for feed in scene.feeds:
            feed.join(60)
        scene.rows.close()
        for slot in scene.slots:
            slot.end()
