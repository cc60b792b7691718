"""The processor's Kafka clients and their settings, each with its reason."""

from typing import Any, Final

from confluent_kafka import Consumer, Producer

from services.processor.engine.application.application import Application
from services.processor.runtime.kafka.ownership import client_id
from services.rim.kafka.connection import client_config, log_client_error
from shared.settings import Settings
from shared.topics import RECORD_BYTES_MAX

TRANSACTION_MS_MAX: Final = 10_000
HEARTBEAT_MS: Final = 200
#: How long a broker waits for input before it answers a fetch. A record ends the wait at once. A partition that begins to be read,
#: or is read on, waits for the end of the fetch that is under way, so at the most for so long, while no other gets anything.
INPUT_WAIT_MS: Final = 200
#: The client looks at its queue's limit before it asks, not when the answer comes. By default one may hold 50 MiB, packed: half a
#: gigabyte of messages in memory at once.
_SMALL_FETCHES: Final = {"fetch.max.bytes": 4 * 1024 * 1024, "max.partition.fetch.bytes": 256 * 1024}


def group_consumer(
    settings: Settings,
    application: Application,
    *,
    slot: str,
    lookup_url: str | None,
    session_ms: int,
    poll_interval_ms_max: int,
    fetch_kbytes_max: int,
) -> Consumer:
    """The slot's member of the application's group. Its offsets are committed in transactions alone."""
    return Consumer(
        {
            **client_config(settings, client_id(application.id, slot, lookup_url)),
            "error_cb": log_client_error("consumer"),
            "group.id": application.id,
            # Static: a slot that is killed and starts again has the same partitions, and no other slot's partitions move.
            "group.instance.id": f"{application.id}/{slot}",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": session_ms,
            # Members learn of a rebalance by their next heartbeat, and a partition that moves waits for two rounds of it.
            "heartbeat.interval.ms": HEARTBEAT_MS,
            # Also the time a rebalance waits for a member; the default of five minutes stops everything for that long.
            "max.poll.interval.ms": poll_interval_ms_max,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            # Positions come from the changelog's meta; an offset that no longer exists must be noticed, never reset silently.
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": INPUT_WAIT_MS,
            # The default of 1000 starves a fast drain.
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": fetch_kbytes_max,
            **_SMALL_FETCHES,
        }
    )


def partition_producer(
    settings: Settings, application: Application, partition: int, *, transaction_ms_max: int = TRANSACTION_MS_MAX
) -> Producer:
    """The producer of one partition. Its stable id lets a successor's `init_transactions` fence this one."""
    return Producer(
        {
            **client_config(settings, f"{application.id}.{partition}"),
            "error_cb": log_client_error("producer"),
            "transactional.id": f"{application.id}.{partition}",
            "transaction.timeout.ms": transaction_ms_max,
            "linger.ms": 0,
            "compression.codec": "lz4",
            "message.max.bytes": RECORD_BYTES_MAX + 100_000,
            "queue.buffering.max.kbytes": 65_536,
            "queue.buffering.max.messages": 200_000,
        }
    )


def changelog_consumer(settings: Settings, application: Application, name: int | str, isolation: str) -> Consumer:
    """A reader of the changelog, outside the group: a restore must not meddle with the slot's membership.

    `name` is what its client id says: the partition that it reads, or what it is for.
    """
    config: dict[str, Any] = {
        **client_config(settings, f"{application.id}.{name}.restore"),
        "error_cb": log_client_error("restore"),
        # Required by the client; nothing is ever committed under it.
        "group.id": f"{application.id}.restore",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 20,
        "fetch.queue.backoff.ms": 5,
        "queued.max.messages.kbytes": 16_384,
    }
    return Consumer(config)


def table_consumer(settings: Settings, application: Application) -> Consumer:
    """A reader of the topics of global tables, outside the group."""
    return Consumer(
        {
            **client_config(settings, f"{application.id}.tables"),
            "error_cb": log_client_error("tables"),
            # Required by the client; nothing is ever committed under it.
            "group.id": f"{application.id}.tables",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # An offset that the topic does not have means another topic: then the table is read from its beginning.
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 16_384,
            **_SMALL_FETCHES,
        }
    )


def standby_consumer(settings: Settings, application: Application, slot: str) -> Consumer:
    """A reader of the changelog partitions that a standby copies, outside the group."""
    return Consumer(
        {
            **client_config(settings, f"{application.id}/{slot}/standby"),
            "error_cb": log_client_error("standby"),
            "group.id": f"{application.id}.standby",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # A copy that the changelog does not reach back or up to must be noticed, never read on from elsewhere.
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 16_384,
            **_SMALL_FETCHES,
        }
    )
