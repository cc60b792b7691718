"""Reads topics `live`, `received` and `rejected`, committed records only, on a thread of its own, and lands them minute by minute.

It belongs to no group: the process that has the lock of Postgres reads all partitions, and the others wait for it. A minute is
landed when it is over; until then its records wait in memory, and their positions stay before them. Later records are added.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.rim.database.postgres import LOST
from services.rim.kafka.connection import client_config, log_client_error, passes
from services.rim.telemetry.metrics import counter, gauge
from services.serving.database import NOT_THERE, Superseded
from services.serving.live.database import Key, LiveDatabase, LiveMove, NotOurs, Position
from services.serving.live.minutes import Counting, Minutes, Place, Queues, Waiting
from services.serving.live.records import waiting_of
from services.serving.settings import ServingSettings
from shared.metrics import SERVING_LIVE_AGE_SECONDS, SERVING_LIVE_RECORDS
from shared.schemas.live_minute import MINUTE_MS
from shared.topics import LIVE, RECEIVED, REJECTED

log = structlog.get_logger(__name__)

TOPICS: Final = (LIVE, RECEIVED, REJECTED)
POLL_SECONDS: Final = 0.5
ANSWER_SECONDS_MAX: Final = 10.0
RECORDS_AT_ONCE: Final = 1_000
#: What waits in memory at most; more is landed before its minute is over.
WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
#: How long after its end a minute's last records may come without being an addition.
SETTLE_MS: Final = 5_000
#: How far back records are read again for the gauges that they carry.
BACK_MS: Final = 60_000
_EXPIRE_SECONDS: Final = 600.0
_WAIT_SECONDS: Final = 2.0
_STOP_SECONDS_MAX: Final = 10.0
_DAY_MINUTES: Final = 24 * 60


class LiveLanding:
    """The thread. `on_death` gets the error that ended it: none is expected."""

    def __init__(
        self,
        settings: ServingSettings,
        database: LiveDatabase,
        topic_ids: dict[str, str],
        *,
        now_ms: Callable[[], int],
        on_death: Callable[[Exception], None],
    ) -> None:
        """`topic_ids` are those that the cluster gave the topics, by name."""
        self._settings = settings
        self._database = database
        self._topic_ids = topic_ids
        self._now_ms = now_ms
        self._on_death = on_death
        self._config = client_config(settings, "serving-live") | _consumer_config()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live-landing", daemon=True)
        self._next_expiry = 0.0
        #: Monotonic seconds at which it last did something.
        self.stepped_at = time.monotonic()

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread. What waits is read again by the next process."""
        self._stop.set()
        self._thread.join(_STOP_SECONDS_MAX)

    def _run(self) -> None:
        try:
            consumer = Consumer(self._config)
            try:
                while not self._stop.is_set():
                    self._follow(consumer)
            finally:
                consumer.close()
                self._database.close()
        except Exception as error:
            # The thread's top: the process ends with it.
            log.exception("live_landing_died")
            self._on_death(error)

    def _follow(self, consumer: Consumer) -> None:
        """Lands until something goes wrong, then waits a little: what was read is dropped, and Postgres says where to go on."""
        try:
            follower = _Following(consumer, self._database, self._topic_ids, self._begin(consumer))
            while not self._stop.is_set():
                self.stepped_at = time.monotonic()
                follower.read()
                follower.land(self._now_ms())
                self._expire(has_caught_up=follower.has_caught_up)
            return
        except NotOurs:
            pass
        except Superseded as error:
            log.warning("live_superseded", why=str(error))
        except (*NOT_THERE, *LOST) as error:
            # Its text may name hosts and users.
            log.warning("live_waits", waits_for="Postgres", why=type(error).__name__)
        except KafkaException as error:
            if not passes(error.args[0]):
                raise
            log.warning("live_waits", waits_for="Kafka", why=error.args[0].name())
        self._database.close()
        consumer.unassign()
        self.stepped_at = time.monotonic()
        self._stop.wait(_WAIT_SECONDS)

    def _begin(self, consumer: Consumer) -> dict[Place, Position]:
        firsts: dict[Key, int] = {}
        for topic in TOPICS:
            for partition in range(topic.partitions(self._settings.profile)):
                place = TopicPartition(topic.name, partition)
                found = consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS_MAX)
                if found is None:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
                firsts[self._topic_ids[topic.name], partition] = found[0]
        positions = self._database.begin(firsts)
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        log.info("live_landing", partitions=len(positions))
        return {Place(names[topic_id], partition): position for (topic_id, partition), position in positions.items()}

    def _expire(self, *, has_caught_up: bool) -> None:
        if time.monotonic() < self._next_expiry:
            return
        now_minute = self._now_ms() // MINUTE_MS
        # Before it is tried: what takes too long would be tried again at once.
        self._next_expiry = time.monotonic() + _EXPIRE_SECONDS
        try:
            deleted = self._database.expire(
                # A minute is made of its steps: while more of it may be read, they stay, however old it is.
                steps_before=now_minute - 60 * self._settings.live_steps_hours if has_caught_up else 0,
                pairs_before=now_minute - _DAY_MINUTES * min(self._settings.live_pair_days, self._settings.live_days),
                minutes_before=now_minute - _DAY_MINUTES * self._settings.live_days,
            )
        except psycopg.errors.QueryCanceled:
            # The connection is there, with its lock: what was read is landed.
            log.warning("live_not_expired", again_in_seconds=_EXPIRE_SECONDS)
            return
        if deleted:
            # More is deleted between two readings, so that expiry holds nothing up.
            self._next_expiry = 0.0


class _Following:
    """What is read from the positions that Postgres has, while nothing goes wrong."""

    def __init__(
        self, consumer: Consumer, database: LiveDatabase, topic_ids: dict[str, str], positions: dict[Place, Position]
    ) -> None:
        self._consumer = consumer
        self._database = database
        self._topic_ids = topic_ids
        self._positions = {place: position.next_offset for place, position in positions.items()}
        self._queues = Queues()
        self._counting = Counting()
        self._landed_ms = max((position.until_ms for position in positions.values()), default=0)
        #: Those that were not read to their end since the beginning.
        self._behind = set(positions)
        # A position that the topic no longer has is answered with its first record, by `auto.offset.reset`.
        consumer.assign([self._start_of(place, position) for place, position in positions.items()])

    @property
    def has_caught_up(self) -> bool:
        """Whether each partition was read to its end once."""
        return not self._behind

    def _start_of(self, place: Place, position: Position) -> TopicPartition:
        """A minute before the position, where there is one: its records say which gauges are carried."""
        if place.topic != LIVE.name or not position.until_ms:
            return TopicPartition(place.topic, place.partition, position.next_offset)
        since = TopicPartition(place.topic, place.partition, position.until_ms - BACK_MS)
        (found,) = self._consumer.offsets_for_times([since], timeout=ANSWER_SECONDS_MAX)
        offset = found.offset if 0 <= found.offset < position.next_offset else position.next_offset
        return TopicPartition(place.topic, place.partition, offset)

    def read(self) -> None:
        """Takes what has come. Raises `KafkaException`."""
        for message in self._consumer.consume(RECORDS_AT_ONCE, POLL_SECONDS):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    self._behind.discard(Place(str(message.topic()), message.partition() or 0))
                    continue
                if not passes(error):
                    raise KafkaException(error)
                log.warning("live_kafka", error=error.str())
                continue
            place, one = waiting_of(message)
            if one.offset >= self._positions[place]:
                self._queues.put(place, one)
            elif isinstance(one.record, bytes):
                self._counting.see(one.record)

    def land(self, now_ms: int) -> None:
        """Lands minutes that are over; everything, if too much waits."""
        closed = (now_ms - SETTLE_MS) // MINUTE_MS - 1
        is_full = self._queues.size_bytes > WAITING_BYTES_MAX
        if is_full or self._queues.has(closed):
            taken = self._queues.take_until(None if is_full else closed)
            minutes: Minutes = {}
            for waiting in taken.values():
                self._counting.count(waiting, minutes)
            moves = {place: self._move(place, waiting) for place, waiting in taken.items()}
            self._database.land(
                minutes, {(self._topic_ids[place.topic], place.partition): move for place, move in moves.items()}
            )
            for place, move in moves.items():
                self._positions[place] = move.next_offset
                self._landed_ms = max(self._landed_ms, move.until_ms)
                counter(SERVING_LIVE_RECORDS).labels(place.topic).inc(len(taken[place]))
        gauge(SERVING_LIVE_AGE_SECONDS).set(max(0, now_ms - self._landed_ms) / 1_000 if self._landed_ms else 0)

    def _move(self, place: Place, waiting: list[Waiting]) -> LiveMove:
        return LiveMove(self._positions[place], waiting[-1].offset + 1, max(one.at_ms for one in waiting))


def _consumer_config() -> dict[str, Any]:
    return {
        # Required by the client, never used: nothing is subscribed or committed.
        "group.id": "serving",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": 16_384,
        "error_cb": log_client_error("serving-live"),
    }
