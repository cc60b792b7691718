"""Reads the topics of a running system from their beginning, and keeps what is compared of them."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import msgspec
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from deploy.demo.comparing.compare import LiveTotals, ViewKey, ViewRecords
from deploy.demo.comparing.latency import LiveWaits
from services.rim.kafka.connection import client_config
from shared import codec, topics
from shared.schemas.view import View
from shared.settings import Settings

_RECORDS_AT_ONCE: Final = 2_000
_POLL_SECONDS: Final = 0.2
_REQUEST_SECONDS_MAX: Final = 5.0
#: What comes of a partition whose leader is changing, and of a broker without CPU: a busy machine makes it look dead for a moment.
_NOT_NOW: Final = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
_COUNTS: Final = (
    "beacons",
    "duplicates",
    "dropped",
    "late",
    "views_started",
    "views_finished",
    "views_revised",
)


class _Event(msgspec.Struct):
    """The one field of a beacon that is read here."""

    event: str


@dataclass
class TopicsSeen:
    """What was read from the topics so far, transactions that failed left out."""

    beacons: int = 0
    rejected: int = 0
    live_counts: Counter[str] = field(default_factory=Counter)
    #: (partition, customer) -> (newest bucket, views open at its end)
    live_open: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    #: Keys of views that their player closed.
    closed: set[bytes] = field(default_factory=set)
    view_records: int = 0
    #: (view, generation, revision) of each record in topic `views`
    revisions: set[tuple[ViewKey, int, int]] = field(default_factory=set)
    #: view -> (key of its newest revision's record, that revision)
    finished: dict[ViewKey, tuple[bytes, View]] = field(default_factory=dict)
    live_waits: LiveWaits = field(default_factory=LiveWaits)

    @property
    def live(self) -> LiveTotals:
        """The sums over all buckets."""
        open_now = sum(count for _, count in self.live_open.values())
        return LiveTotals(**{name: self.live_counts[name] for name in _COUNTS}, open_now=open_now)

    @property
    def views(self) -> ViewRecords:
        """What topic `views` holds."""
        again = sum(view.revision - 1 for _, view in self.finished.values())
        return ViewRecords(self.view_records, len(self.revisions), again)

    def take_record(self, record: Message) -> None:
        """Takes one record of any of the topics in. Raises `Undecodable` or `msgspec.DecodeError` for a record of another
        format."""
        key, value, topic, append_ms = record.key() or b"", record.value() or b"", record.topic(), record.timestamp()[1]
        if topic == topics.REJECTED.name:
            self.rejected += 1
        elif topic == topics.BEACONS.name:
            self.beacons += 1
            self.live_waits.beacon(record.partition() or 0, key.partition(b":")[0].decode(), append_ms)
            if msgspec.json.decode(value, type=_Event).event == "viewend":
                self.closed.add(key)
        elif topic == topics.VIEWS.name:
            self._take_view(key, codec.VIEW.decode(value))
        else:
            bucket = codec.LIVE.decode(value)
            self.live_counts.update({name: getattr(bucket, name) for name in _COUNTS})
            self.live_waits.gauge(bucket.partition, bucket.customer_id, bucket.bucket_ms, append_ms)
            # Buckets of one key come in order: the last is the newest.
            self.live_open[(bucket.partition, bucket.customer_id)] = (bucket.bucket_ms, bucket.open_now)

    def closed_views(self) -> set[ViewKey]:
        """The finished views that their player closed."""
        return {of for of, (key, _) in self.finished.items() if key in self.closed}

    def _take_view(self, key: bytes, view: View) -> None:
        of: ViewKey = (view.customer_id, view.view_id)
        self.view_records += 1
        self.revisions.add((of, view.generation, view.revision))
        newest = self.finished.get(of)
        if newest is None or (view.generation, view.revision) > (newest[1].generation, newest[1].revision):
            self.finished[of] = (key, view)


class TopicReader:
    """Reads the topics from their beginning, all partitions, without a group: no other consumer is disturbed."""

    def __init__(self, settings: Settings) -> None:
        self.seen = TopicsSeen()
        self._settings = settings
        self._admin = self._new_admin()
        self._consumer = Consumer(
            client_config(settings, "demo-observer")
            | {
                "group.id": "demo-observer",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                # What is gone before it was read would be missing in every count: an error, not a new beginning.
                "auto.offset.reset": "error",
            }
        )
        self._partitions = [
            (topic.name, partition)
            for topic in (topics.BEACONS, topics.VIEWS, topics.LIVE, topics.REJECTED)
            for partition in range(topic.partitions(settings.profile))
        ]
        #: How far each partition was read: the offset at which its end was met last.
        self._reached = dict.fromkeys(self._partitions, 0)
        self._consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in self._partitions])

    def read(self, seconds: float = 1.0) -> bool:
        """Takes in what is there, for `seconds` at most; whether all was read that was there when it was called.

        An open transaction counts as an existing record. Raises `KafkaException` for every error of a partition or the broker.
        """
        deadline = time.monotonic() + seconds
        while (ends := self._ends_now()) is None:
            # The number of records is unknown until every partition has a leader.
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        while True:
            for record in self._consumer.consume(_RECORDS_AT_ONCE, timeout=_POLL_SECONDS):
                self._take_record(record)
            if all(self._reached[at] >= end for at, end in ends.items()):
                return True
            if time.monotonic() >= deadline:
                return False

    def close(self) -> None:
        """Gives the connection back."""
        self._consumer.close()

    def _ends_now(self) -> dict[tuple[str, int], int] | None:
        """The same as `_ends`; None while a partition has no leader, or the broker no time."""
        try:
            return self._ends()
        except KafkaException as exception:
            if exception.args[0].code() not in _NOT_NOW:
                raise
            # A client whose broker was fenced keeps a former epoch of the leaders, and never asks again (FENCED_LEADER_EPOCH).
            self._admin = self._new_admin()
            return None

    def _new_admin(self) -> AdminClient:
        return AdminClient(client_config(self._settings, "demo-observer-ends"))

    def _ends(self) -> dict[tuple[str, int], int]:
        """The end of each partition, records of open transactions included."""
        request = {TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in self._partitions}  # type: ignore[no-untyped-call]
        answers = self._admin.list_offsets(
            request, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_REQUEST_SECONDS_MAX
        )
        return {(at.topic, at.partition): answer.result().offset for at, answer in answers.items()}

    def _take_record(self, record: Message) -> None:
        error = record.error()
        if error is None:
            self.seen.take_record(record)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._reached[record.topic() or "", record.partition() or 0] = record.offset() or 0
        else:
            raise KafkaException(error)
