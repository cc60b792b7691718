"""Reads topic `alert_events` and lands each change in Postgres, with its messages: at least once read, once landed."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import psycopg
import structlog
from confluent_kafka import Consumer, KafkaException

from services.alerts.store import incidents
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import NotPublished, Postgres, PostgresAway, QueryRefused
from services.rim.kafka.connection import client_config, log_client_error, passes, session_config
from services.rim.telemetry.metrics import counter
from shared import codec
from shared.codec import Undecodable
from shared.metrics import NOTIFICATIONS_CHANGES
from shared.schemas.alerts.event import AlertEvent
from shared.topics import ALERT_EVENTS

log = structlog.get_logger(__name__)

GROUP: Final = "notifications"
_READ_SECONDS: Final = 0.2
_READ_MAX: Final = 100
_AWAY_SECONDS: Final = 1.0


class Landing:
    """The consumer. `landed` is called after changes were landed."""

    def __init__(self, settings: NotificationsSettings, postgres: Postgres, landed: Callable[[], None]) -> None:
        self._postgres = postgres
        self._landed = landed
        self._consumer = Consumer(
            client_config(settings, GROUP)
            | {
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                # Postgres may be away for long: what is read is landed, then.
                "max.poll.interval.ms": 3_600_000,
                **session_config(settings.session_ms),
                "error_cb": log_client_error(GROUP),
            }
        )
        #: Whether the group has given this process its partitions, if only none.
        self.is_assigned = False

    async def run(self, stop: threading.Event) -> None:
        """Reads and lands until stopped. Raises `KafkaException`, or a fault."""
        self._consumer.subscribe([ALERT_EVENTS.name], on_assign=self._assigned)
        try:
            while not stop.is_set():
                read = await asyncio.to_thread(self._consumer.consume, _READ_MAX, _READ_SECONDS)
                events = [event for message in read if (event := _event(message)) is not None]
                if not read:
                    continue
                await self._land(events, stop)
                if not stop.is_set():
                    await asyncio.to_thread(self._commit)
        finally:
            await asyncio.to_thread(self._consumer.close)

    async def _land(self, events: Sequence[AlertEvent], stop: threading.Event) -> None:
        """Lands them in order; waits for Postgres as long as it takes. A change whose data Postgres refuses holds up no other."""
        while events and not stop.is_set():
            try:
                new = await self._postgres.ask(partial(_land_all, events=events))
            except QueryRefused as error:
                if not isinstance(error.__cause__, psycopg.DataError):
                    raise
                if len(events) > 1:
                    for one in events:
                        await self._land([one], stop)
                else:
                    _pass_over(events[0], str(error))
                return
            except (PostgresAway, NotPublished) as error:
                log.warning("cannot_land", kind=type(error).__name__, changes=len(events))
                await asyncio.sleep(_AWAY_SECONDS)
                if len(events) == 1:
                    continue
                # So many may be more than the time of a question is enough for.
                half = len(events) // 2
                await self._land(events[:half], stop)
                await self._land(events[half:], stop)
                return
            counter(NOTIFICATIONS_CHANGES).labels("new").inc(new)
            counter(NOTIFICATIONS_CHANGES).labels("known").inc(len(events) - new)
            self._landed()
            return

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            # Another member reads these again: they are known by then.
            log.info("not_committed", error=error.args[0].name())

    def _assigned(self, _consumer: Consumer, partitions: list[Any]) -> None:
        log.info("assigned", partitions=sorted(one.partition for one in partitions))
        self.is_assigned = True


def _pass_over(event: AlertEvent, why: str) -> None:
    counter(NOTIFICATIONS_CHANGES).labels("refused").inc()
    log.error("change_refused", incident=event.incident_id, revision=event.revision, why=why)


async def _land_all(connection: psycopg.AsyncConnection, events: Sequence[AlertEvent]) -> int:
    """Lands changes in one transaction; how many were new."""
    new = 0
    for event in events:
        new += await incidents.land(connection, event, now_ms=time.time_ns() // 1_000_000)
    return new


def _event(message: Any) -> AlertEvent | None:
    error = message.error()
    if error is not None:
        if passes(error):
            log.warning("kafka_away", error=error.str())
            return None
        raise KafkaException(error)
    try:
        return codec.ALERT_EVENT.decode(message.value() or b"")
    except Undecodable as problem:
        counter(NOTIFICATIONS_CHANGES).labels("undecodable").inc()
        log.error("undecodable", partition=message.partition(), offset=message.offset(), why=str(problem))
        return None
