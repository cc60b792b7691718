"""Heartbeats: sends several heartbeats a second for this replica, and reads those of the application's other replicas.

Heartbeats go through Kafka, so a replica that reads its own heartbeat reads all of them. While it does not (the broker is
unreachable, this process was stopped), silence means nothing and `listening_since` moves on.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final, cast

import structlog
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from services.processor.runtime.kafka.refusals import REFUSED, Refusals
from services.processor.runtime.standby.roles import Heard
from services.rim.kafka.connection import client_config, log_client_error
from shared import codec
from shared.codec import Undecodable
from shared.schemas.presence import SCHEMA_VERSION, Presence, Role
from shared.settings import Settings
from shared.topics import PRESENCE

log = structlog.get_logger(__name__)

BEAT_SECONDS: Final = 0.2
#: Own heartbeats not read for this long: the connection is lost.
UNREAD_SECONDS: Final = 1.0
#: Own heartbeats not read for this long: the replica cannot take its slot over, and says so.
UNHEARD_SECONDS_MAX: Final = 5.0
FLUSH_SECONDS_MAX: Final = 2.0
STOP_SECONDS_MAX: Final = 5.0
#: The client gives back what has come when this time is over: a hand-over waits for it.
READ_SECONDS: Final = 0.02


class Heartbeats:
    """Sends and reads the heartbeats of one replica, on two threads."""

    def __init__(
        self,
        settings: Settings,
        application: str,
        slot: str,
        replica: int,
        url: str | None,
        *,
        refused_seconds_max: float,
    ) -> None:
        self._application = application
        # Each is used by one thread.
        self._refused_reads = Refusals(refused_seconds_max)
        self._refused_sends = Refusals(refused_seconds_max)
        self._slot = slot
        self._replica = replica
        self._url = url
        self._incarnation = uuid.uuid4().hex
        self._announced: tuple[Role, tuple[int, ...], dict[int, int], int | None] = ("standby", (), {}, None)
        self._heard: dict[tuple[str, int], Heard] = {}
        self._heard_self_at = 0.0
        self._listening_since = time.monotonic()
        self._is_unheard = False
        #: The error of the last heartbeat sent; None: it was delivered.
        self._delivery_code: int | None = None
        client = f"{application}/{slot}/{replica}"
        self._producer = Producer(
            {**client_config(settings, client), "error_cb": log_client_error("heartbeats"), "linger.ms": 0, "acks": 1}
        )
        self._consumer = Consumer(
            {
                **client_config(settings, client),
                "error_cb": log_client_error("heartbeats"),
                # Required by the client; it is in no group and commits nothing.
                "group.id": f"{application}.presence",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "auto.offset.reset": "latest",
            }
        )
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._threads = [
            # A replica that does not send is taken for dead, and one that does not read takes others for dead: `rim.threads` ends
            # the process.
            threading.Thread(target=self._run, args=(work,), name=f"heartbeats: {name}", daemon=True)
            for name, work in (("send", self._send), ("read", self._read))
        ]

    def start(self) -> None:
        """Starts to send and to read."""
        self._listening_since = time.monotonic()
        self._consumer.assign([TopicPartition(PRESENCE.name, 0, OFFSET_END)])
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the heartbeats, after the last one is delivered."""
        self._stop.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS_MAX)
        self._producer.flush(FLUSH_SECONDS_MAX)
        self._consumer.close()

    def announce(
        self,
        role: Role,
        partitions: frozenset[int],
        *,
        lags: Mapping[int, int] | None = None,
        successor: int | None = None,
    ) -> None:
        """The state that heartbeats announce from now on. A change of role is sent at once."""
        state = (role, tuple(sorted(partitions)), dict(lags or {}), successor)
        has_changed = state[0] != self._announced[0] or state[3] != self._announced[3]
        self._announced = state
        if has_changed:
            self._wake.set()

    def others(self) -> dict[int, Heard]:
        """The last beats of the other replicas of this slot, by replica."""
        return {replica: heard for (slot, replica), heard in list(self._heard.items()) if slot == self._slot}

    def everyone(self) -> list[Heard]:
        """The last beat of every other replica of the application."""
        return list(self._heard.values())

    @property
    def listening_since(self) -> float:
        """Since when all heartbeats have been read (monotonic seconds); the present time while they are not."""
        now = time.monotonic()
        return now if now - self._heard_self_at > UNREAD_SECONDS else self._listening_since

    @property
    def unheard_seconds(self) -> float:
        """For how long no heartbeat of its own has been read."""
        return time.monotonic() - max(self._heard_self_at, self._listening_since)

    def _run(self, work: Callable[[], None]) -> None:
        while not self._stop.is_set():
            work()

    def _send(self) -> None:
        self._refused_sends.check()
        role, partitions, lags, successor = self._announced
        beat = Presence(
            schema_version=SCHEMA_VERSION,
            application=self._application,
            slot=self._slot,
            replica=self._replica,
            incarnation=self._incarnation,
            role=role,
            url=self._url,
            partitions=list(partitions),
            lags=lags,
            successor=successor,
        )
        key = f"{self._application}/{self._slot}/{self._replica}".encode()
        try:
            self._producer.produce(PRESENCE.name, codec.PRESENCE.encode(beat), key, 0, on_delivery=self._note_delivery)
        except BufferError:
            # The broker was unreachable for long; old heartbeats have no value.
            self._producer.purge()
        except KafkaException as exception:
            # The client keeps a refusal for some time, and takes no heartbeats meanwhile.
            error = cast(KafkaError, exception.args[0])
            if error.code() not in REFUSED:
                raise
            self._note_delivery(error)
        self._producer.poll(0)
        self._wake.wait(BEAT_SECONDS)
        self._wake.clear()

    def _note_delivery(self, error: KafkaError | None, _: Message | None = None) -> None:
        code = None if error is None else error.code()
        if code == self._delivery_code:
            # Several times a second: a refusal is noted and logged once.
            return
        self._delivery_code = code
        if error is None:
            self._refused_sends.clear(PRESENCE.name)
        else:
            self._refused_sends.note(PRESENCE.name, error)

    def _read(self) -> None:
        self._refused_reads.check()
        self._report()
        for message in self._consumer.consume(1000, READ_SECONDS):
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise RuntimeError(f"the heartbeats cannot be read: {error.str()}")
                self._refused_reads.note(PRESENCE.name, error)
                if error.code() != KafkaError._PARTITION_EOF:
                    log.warning("heartbeats", code=error.name(), error=error.str())
                continue
            self._note_beat(message.value() or b"", time.monotonic())

    def _report(self) -> None:
        """Logs that own heartbeats do not come any more, and that they come again."""
        unheard_seconds = self.unheard_seconds
        if self._is_unheard == (unheard_seconds > UNHEARD_SECONDS_MAX):
            return
        self._is_unheard = not self._is_unheard
        if self._is_unheard:
            log.warning("heartbeats_unheard", topic=PRESENCE.name, seconds=round(unheard_seconds, 1))
        else:
            log.info("heartbeats_heard", topic=PRESENCE.name)

    def _note_beat(self, value: bytes, now: float) -> None:
        try:
            beat = codec.PRESENCE.decode(value)
        except Undecodable as error:
            log.warning("beat_undecodable", error=str(error))
            return
        if beat.application != self._application:
            return
        if beat.incarnation == self._incarnation:
            if now - self._heard_self_at > UNREAD_SECONDS:
                self._listening_since = now
            self._heard_self_at = now
            self._refused_reads.clear(PRESENCE.name)
        elif (beat.slot, beat.replica) != (self._slot, self._replica):
            self._heard[beat.slot, beat.replica] = Heard(beat, now)
