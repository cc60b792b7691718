"""Takeover of a partition: fence, open, replay. The only path after an assignment, a crash or an unclear outcome.

Runs on a thread of its own, so that neither the other cores nor the group's heartbeat wait for it.
"""

import threading
import time
from dataclasses import dataclass
from typing import Final

import structlog
from confluent_kafka import KafkaException, Producer

from services.processor.engine.application.tables import Tables
from services.processor.engine.state.local import StoreCorrupt
from services.processor.runtime.kafka.clients import partition_producer
from services.processor.runtime.kafka.reading import ReadingFailed
from services.processor.runtime.kafka.refusals import Refusals
from services.processor.runtime.kafka.topic_ids import check
from services.processor.runtime.partition.changelog import GivenUp, ReplayFailed, RestoreProgress, replay
from services.processor.runtime.partition.division import check_division
from services.processor.runtime.plan import Plan
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores, StoreTooOld

log = structlog.get_logger(__name__)

INIT_SECONDS_MAX: Final = 30.0
RETRY_SECONDS: Final = 0.5


@dataclass(frozen=True)
class TakenPartition:
    """A partition ready to be worked: its producer has fenced every former owner, its store is at the changelog's end."""

    producer: Producer
    store: RocksStore
    #: The ids of inputs and changelog at the takeover, by name; those of its last commit where the broker did not say.
    topic_ids: dict[str, str]
    tables: Tables


def take_over(
    plan: Plan,
    partition: int,
    stores: Stores,
    given_up: threading.Event,
    *,
    progress: RestoreProgress,
    wait_seconds: float,
    warm: RocksStore | None = None,
    discard: str | None = None,
) -> TakenPartition:
    """Takes the partition, retrying while Kafka cannot answer.

    Raises `GivenUp` once `given_up` is set, `KafkaRefused` if Kafka refuses for long, `TopicReplaced` if a topic was created
    again, `NotDivided` if the state is divided among another number of partitions.

    `warm` is a standby's copy, still open; it is used, or closed.

    1. `init_transactions`: fences the former owner and aborts what it left open. A crash right after: the partition has no owner
       until the next takeover. Then wait until the application's global tables have all that their topics have now.
    2. Open the store. It holds only what was committed, up to its last flush. If its files cannot be used (they are known to be
    bad, and `discard` says why, or turn out to be), they are deleted, once. The changelog has everything.
    3. Replay the changelog from there to its end. A crash: rows ahead of the store's position, overwritten by the next.
    """
    store = warm
    try:
        if given_up.wait(wait_seconds):
            raise GivenUp
        producer = _fencing_producer(plan, partition, given_up)
        plan.crash_points.reach("fenced")
        # After the fence: what the former owner has seen of the tables, they have now.
        if given_up.is_set() or not stores.tables.wait_until_read(given_up):
            raise GivenUp
        if discard is not None:
            stores.discard(partition, discard)
        try:
            store = store or stores.open(partition)
            topic_ids = _replay(plan, partition, stores, store, given_up=given_up, progress=progress)
            return TakenPartition(producer, store, topic_ids, stores.tables.tables)
        except (StoreCorrupt, StoreTooOld) as error:
            discard = str(error)
        # None if it could not be opened.
        if store is not None:
            store.close()
            store = None
        stores.discard(partition, discard)
        store = stores.open(partition)
        topic_ids = _replay(plan, partition, stores, store, given_up=given_up, progress=progress)
    except BaseException:
        if store is not None:
            store.close()
        raise
    return TakenPartition(producer, store, topic_ids, stores.tables.tables)


def _fencing_producer(plan: Plan, partition: int, given_up: threading.Event) -> Producer:
    refusals = Refusals(plan.settings.refused_ms_max / 1000)
    what = f"the transactions of {plan.application.id}.{partition}"
    while True:
        producer = partition_producer(plan.settings, plan.application, partition)
        plan.crash_points.reach("fencing")
        try:
            producer.init_transactions(INIT_SECONDS_MAX)
        except (KafkaException, SystemError) as error:
            # SystemError is how a fatal error shows inside a callback; a new producer starts from the beginning.
            log.warning("init_transactions_failed", partition=partition, error=str(error))
            if isinstance(error, KafkaException):
                refusals.note(what, error.args[0])
        else:
            return producer
        if given_up.wait(RETRY_SECONDS):
            raise GivenUp


def _replay(
    plan: Plan,
    partition: int,
    stores: Stores,
    store: RocksStore,
    *,
    given_up: threading.Event,
    progress: RestoreProgress,
) -> dict[str, str]:
    """Replays, and compares the topics with those of the last commit. The ids of the topics."""
    started = time.monotonic()
    refusals = Refusals(plan.settings.refused_ms_max / 1000)
    what = f"the changelog, {plan.application.changelog.name}/{partition}"
    while True:
        try:
            with stores.replays.held(progress.moving, given_up) as has_permit:
                if not has_permit:
                    raise GivenUp
                replayed = replay(
                    plan,
                    partition,
                    stores,
                    store,
                    now_ms=time.time_ns() // 1_000_000,
                    given_up=given_up,
                    progress=progress,
                )
            meta = replayed.position.meta if replayed.position is not None else None
            check_division(plan, partition, meta)
            topic_ids = stores.topic_ids.now()
        except (KafkaException, ReplayFailed, ReadingFailed) as error:
            log.warning("replay_failed", partition=partition, error=str(error))
            if isinstance(error, KafkaException):
                refusals.note(what, error.args[0])
        else:
            if given_up.is_set():
                raise GivenUp
            known_ids = {} if meta is None else meta.topic_ids
            if topic_ids is not None:
                check(plan.application, partition, known_ids, topic_ids)
            log.info(
                "partition_taken_over",
                partition=partition,
                replayed_rows=replayed.rows,
                seconds=round(time.monotonic() - started, 3),
                commit_number=meta.commit_number if meta is not None else 0,
            )
            return known_ids if topic_ids is None else topic_ids
        if given_up.wait(RETRY_SECONDS):
            raise GivenUp
