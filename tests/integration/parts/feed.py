"""Views whose truth is known, fed to a broker, and the rows that come of them."""

import contextlib
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from shared import codec, topics
from shared.partitioning import partition_of, view_key
from shared.schemas.beacon import Beacon
from shared.schemas.view import View

#: Views finish soon.
FINISH = {
    "VIDEO_VIEWS_FINISH_CLEAN_MS": "1500",
    "VIDEO_VIEWS_FINISH_ENDED_MS": "3000",
    "VIDEO_VIEWS_FINISH_SILENT_MS": "4000",
    "VIDEO_VIEWS_FINISH_PAUSED_MS": "4000",
}


def beacon(view_id: str, seq: int, event: str, client_time_ms: int, **attrs: object) -> Beacon:
    return Beacon(
        schema_version=1,
        source="mux",
        customer_id="acme",
        view_id=view_id,
        event=event,
        source_event=event,
        recv_time_ms=client_time_ms,
        client_time_ms=client_time_ms,
        sent_time_ms=client_time_ms,
        clock_offset_ms=0,
        seq=seq,
        attrs=dict(attrs),
    )


#: Beacons that come one by one would be a request each, and an answer to each reader.
LINGER: Final = {"linger.ms": 100}
#: A reader that is answered when much is there, or after so long: less than its reads wait for what there is.
UNHURRIED: Final = {"fetch.min.bytes": 1_000_000, "fetch.wait.max.ms": 200}
#: What of a view may be a text of 500 characters.
TEXTS: Final = ("video_title", *(f"custom_{number}" for number in range(1, 21)))


def story(view_id: str, random_: random.Random, text_bytes: int = 10) -> list[Beacon]:
    """A view: start, heartbeats whose watch time grows, and (mostly) a clean end."""
    at_ms = 1_790_000_000_000
    text = random_.randbytes(text_bytes // 2).hex()
    texts = {name: text[at : at + 500] for name, at in zip(TEXTS, range(0, text_bytes, 500), strict=False)}
    beacons = [beacon(view_id, 1, "viewstart", at_ms, **texts), beacon(view_id, 2, "playing", at_ms + 500)]
    beacons += [
        beacon(view_id, seq, "heartbeat", at_ms + seq * 1000, view_watch_time=seq * 1000)
        for seq in range(3, random_.randint(5, 14))
    ]
    if random_.random() < 0.7:
        seq = len(beacons) + 1
        beacons.append(beacon(view_id, seq, "viewend", at_ms + seq * 1000, view_watch_time=seq * 1000))
    return beacons


def partitions_of(client: Consumer | Producer, topic: topics.Topic) -> range:
    """The numbers of the topic's partitions, as its broker has them."""
    found = client.list_topics(topic.name, timeout=60).topics[topic.name]
    assert found.error is None, found.error
    return range(len(found.partitions))


class Feed(threading.Thread):
    """Produces the beacons of many views, interleaved, some twice; keeps what is true."""

    def __init__(
        self, bootstrap: str, *, views: int, seconds: float, seed: int = 5, prefix: str = "view", text_bytes: int = 10
    ) -> None:
        """All beacons of `views` views, within `seconds`; a view's texts, 10,500 bytes at the most, never compress."""
        super().__init__(name="feed")
        self._random = random.Random(seed)
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, **LINGER})
        self._partitions = len(partitions_of(self._producer, topics.BEACONS))
        ids = [f"{prefix}-{number}" for number in range(views)]
        self._views = {view_id: story(view_id, self._random, text_bytes) for view_id in ids}
        self._seconds = seconds
        self.sent: dict[str, int] = defaultdict(int)
        self.failure: BaseException | None = None

    @property
    def truth(self) -> dict[str, tuple[int, int, str]]:
        """By view id: distinct beacons, watch time, end reason."""
        return {
            view_id: (
                len(beacons),
                max(int(b.attrs.get("view_watch_time", 0)) for b in beacons),
                "clean" if beacons[-1].event == "viewend" else "timeout",
            )
            for view_id, beacons in self._views.items()
        }

    @property
    def repeats(self) -> int:
        """Beacons sent a second time."""
        return sum(self.sent.values()) - sum(count for count, _, _ in self.truth.values())

    def finish(self) -> None:
        """Waits until all is sent and acknowledged."""
        self.join(120)
        assert not self.is_alive()
        assert self.failure is None, self.failure

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.failure = error
            raise

    def _run(self) -> None:
        # Each view's beacons in a random order of sequence within small windows; the fold puts them right.
        queues = {view_id: list(beacons) for view_id, beacons in self._views.items()}
        open_ids = list(queues)
        total = sum(len(queue) for queue in queues.values())
        pause = self._seconds / total
        while open_ids:
            view_id = self._random.choice(open_ids[:60])
            queue = queues[view_id]
            self._send(queue.pop(min(self._random.randint(0, 1), len(queue) - 1)))
            if not queue:
                open_ids.remove(view_id)
            time.sleep(pause)
        # The broker may be away, and a busy machine takes its time to start it again.
        assert self._producer.flush(90) == 0

    def _send(self, record: Beacon) -> None:
        key = view_key(record.customer_id, record.view_id)
        for _ in range(2 if self._random.random() < 0.05 else 1):
            self.sent[record.view_id] += 1
            self._producer.produce(
                topics.BEACONS.name,
                codec.BEACON.encode(record),
                key,
                partition_of(key, self._partitions),
                on_delivery=self._delivered,
            )
        self._producer.poll(0)

    def _delivered(self, error: object, _message: object) -> None:
        assert error is None, error


class Rows:
    """Reads all committed rows of topic `views`, over and over."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "test-rows",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                **UNHURRIED,
            }
        )
        self._is_assigned = False
        self.rows: list[View] = []

    def read(self) -> list[View]:
        if not self._is_assigned:
            # The topic may be made after this.
            places = [TopicPartition(topics.VIEWS.name, at, 0) for at in partitions_of(self._consumer, topics.VIEWS)]
            self._consumer.assign(places)
            self._is_assigned = True
        while True:
            messages = self._consumer.consume(1000, 0.3)
            if not messages:
                return self.rows
            for message in messages:
                assert message.error() is None, message.error()
                value = message.value()
                assert value is not None
                self.rows.append(codec.VIEW.decode(value))

    def close(self) -> None:
        self._consumer.close()


def committed(bootstrap: str, topic: topics.Topic) -> list[Message]:
    """All committed records of a topic."""
    with _reader(bootstrap, "test-committed") as consumer:
        return _to_end(consumer, [TopicPartition(topic.name, at, 0) for at in partitions_of(consumer, topic)])


def uncommitted(bootstrap: str, application: str, topic: topics.Topic) -> list[Message]:
    """The records of an input that the application's commits do not cover yet."""
    with _reader(bootstrap, application) as consumer:
        places = [TopicPartition(topic.name, at) for at in partitions_of(consumer, topic)]
        offsets = consumer.committed(places, timeout=60)
        return _to_end(consumer, [TopicPartition(topic.name, at.partition, max(0, at.offset)) for at in offsets])


@contextlib.contextmanager
def _reader(bootstrap: str, group: str) -> Iterator[Consumer]:
    """A consumer of committed records that never joins its group."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _to_end(consumer: Consumer, begins: list[TopicPartition]) -> list[Message]:
    """What the consumer finds from there to the present ends."""
    records: list[Message] = []
    consumer.assign(begins)
    # By partition: one that goes on getting records has an end after each of them.
    unread = {at.partition for at in begins}
    deadline = time.monotonic() + 60
    while unread:
        assert time.monotonic() < deadline, f"{begins[0].topic} could not be read to its end"
        for message in consumer.consume(1000, 0.3):
            error = message.error()
            if error is None:
                records.append(message)
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            unread -= {message.partition()}
    return records


def newest(rows: list[View]) -> dict[str, View]:
    """The last revision of each view; asserts that no revision stands twice."""
    seen: dict[tuple[str, int], View] = {}
    for row in rows:
        assert (row.view_id, row.revision) not in seen, f"{row.view_id} revision {row.revision} stands twice"
        seen[row.view_id, row.revision] = row
    latest: dict[str, View] = {}
    for row in seen.values():
        if row.view_id not in latest or row.revision > latest[row.view_id].revision:
            latest[row.view_id] = row
    return latest


def observed(rows: list[View]) -> dict[str, tuple[int, int, str]]:
    return {view_id: (row.beacon_count, row.watch_ms, row.end_reason) for view_id, row in newest(rows).items()}


def expect(truth: Mapping[str, tuple[int, int, str]], repeats: int, rows: Rows, seconds: float = 60.0) -> None:
    """Waits until the rows are the truth to the last view: none missing, doubled, wrong, split or still open."""
    deadline = time.monotonic() + seconds
    while observed(rows.read()) != truth:
        assert time.monotonic() < deadline, f"not within {seconds} s: {difference(truth, rows)}"
    assert sum(row.duplicate_count for row in newest(rows.rows).values()) == repeats


def difference(truth: Mapping[str, tuple[int, int, str]], rows: Rows) -> str:
    """What differs, in short."""
    found = observed(rows.rows)
    missing = sorted(truth.keys() - found.keys())
    extra = sorted(found.keys() - truth.keys())
    wrong = {
        view_id: (found[view_id], truth[view_id])
        for view_id in truth
        if found.get(view_id, truth[view_id]) != truth[view_id]
    }
    return (
        f"missing {missing[:5]} of {len(missing)}, too many {extra[:5]}, (found, truth) {dict(list(wrong.items())[:5])}"
    )
