"""Makes a checkpoint durable in one Kafka transaction. Runs on a thread of its own while the core continues to fold."""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from services.processor.engine.application.application import Application
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.state.meta import META_KEY, encode_meta
from services.processor.runtime.kafka.refusals import REFUSED, KafkaRefused
from services.rim.process.crash_points import CrashPoints
from shared.partitioning import partition_of

_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)


#: What `send_offsets_to_transaction` itself is refused with: the group has changed since the cut.
_GROUP_CHANGED: Final = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)
_PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})

#: What no repetition heals: the broker will not have these records, or not from us.
_NEVER_TAKEN: Final = REFUSED | {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD}


class CommitFailed(RuntimeError):
    """A commit failed. `code` is the name of Kafka's error, where there was one."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code


class Aborted(CommitFailed):
    """The transaction was aborted for certain. Drop the checkpoint and all since, rewind, go on with this producer."""


class GroupChanged(Aborted):
    """Aborted since the group has another generation than at the cut: the same checkpoint may be committed in the new one."""


class Unclear(CommitFailed):
    """The outcome is unknown. Discard the core and the producer and take the partition over again."""


class Fenced(Unclear):
    """Another producer has the partition's transactional id: this slot is not the owner, or was overtaken once."""


class Durable(NamedTuple):
    """A commit's position in the changelog: the offset after it, and the broker's time of it, ms since 1970."""

    changelog_offset: int
    append_ms: int
    #: When it was known to be committed (monotonic seconds), where it was this process that committed.
    ended_at: float | None = None


class Committer:
    """Commits one partition's checkpoints with the partition's own producer. `partitions` are the counts of topics, by name."""

    def __init__(
        self,
        producer: Producer,
        application: Application,
        partition: int,
        partitions: Mapping[str, int],
        crash_points: CrashPoints | None = None,
    ) -> None:
        self._producer = producer
        self._crash_points = crash_points or CrashPoints()
        self._changelog = application.changelog.name
        self._partition = partition
        self._partitions = partitions
        #: The client reports a reason only by record, which costs time. It is asked for after a delivery has failed once.
        self._asks_why = False
        self._undelivered: KafkaError | None = None
        #: Whether every record of the present transaction has been reported on.
        self._is_acknowledged = False
        #: The input offsets that the group has of this producer.
        self._offsets_sent: dict[str, int] = {}

    def commit(self, checkpoint: Checkpoint, group_metadata: Any, deadline: float) -> Durable:
        """Commits a checkpoint and returns its position. Raises `Aborted`, `Unclear`, `Fenced` or `KafkaRefused`.

        `group_metadata` was read by the polling thread at the cut, or as partitions are given up (`Commits.renew`). `deadline` is
        on the monotonic clock, in seconds.

        1. Begin. A crash right after costs nothing: nothing was written.
        2. Produce changes, outputs and, last, meta. A crash leaves an open transaction; the successor's `init_transactions`
           aborts it, and readers (read_committed) never see it.
        3. Wait until all are acknowledged. An abort before that purges records that are on their way, also one that the broker
        has. The client gives its sequence number to a record of the next transaction, and the broker drops that as a copy.
        4. Send the input offsets, where they are others than before: live numbers of a customer are committed without any input.
           A crash: as after 2.
        5. Commit. A crash before the coordinator has it: as after 2. After it: all is durable, and the successor replays it
           from the changelog, meta included.
        """
        self._undelivered = None
        self._is_acknowledged = False
        try:
            return self._commit(checkpoint, group_metadata, deadline)
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
            self._asks_why = error.code() == KafkaError._INCONSISTENT
            raise self._classified(self._undelivered or error, error, deadline) from exception
        except (SystemError, BufferError) as exception:
            # A fatal error raises SystemError when it surfaces inside a delivery report.
            raise Unclear(f"{type(exception).__name__}: {exception}") from exception

    def _commit(self, checkpoint: Checkpoint, group_metadata: Any, deadline: float) -> Durable:
        producer = self._producer
        reach = self._crash_points.reach
        stands_at: list[Durable] = []
        reports = {"on_delivery": self._note_undelivered} if self._asks_why else {}

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._note_undelivered(error, message)
            if error is None:
                stands_at.append(Durable((message.offset() or 0) + 1, message.timestamp()[1]))

        producer.begin_transaction()
        reach("begun")
        self._produce(self._changelog, checkpoint.changes.items(), deadline, self._partition, **reports)
        for output in checkpoint.outputs:
            partitions = self._partitions[output.topic]
            partition = partition_of(output.key, partitions) if output.by_key else self._partition % partitions
            pair = (output.key, output.value)
            more = {"headers": list(output.headers), **reports} if output.headers else reports
            self._produce(output.topic, (pair,), deadline, partition, **more)
        meta = (META_KEY, encode_meta(checkpoint.meta))
        self._produce(self._changelog, (meta,), deadline, self._partition, on_delivery=delivered)
        reach("produced")
        # Delivery reports are served here, meta's among them.
        if producer.flush(_left(deadline)):
            raise Unclear("records were not acknowledged in time", "_TIMED_OUT")
        self._is_acknowledged = True
        offsets = checkpoint.meta.next_offsets
        if offsets != self._offsets_sent:
            at = [TopicPartition(topic, self._partition, offset) for topic, offset in offsets.items()]
            producer.send_offsets_to_transaction(at, group_metadata, _left(deadline))
        reach("offsets_sent")
        while True:
            try:
                producer.commit_transaction(_left(deadline))
                break
            except KafkaException as exception:
                if not exception.args[0].retriable() or time.monotonic() >= deadline:
                    raise
        reach("committed")
        self._offsets_sent = offsets
        if not stands_at:
            raise Unclear("the meta row's delivery was not reported")
        return stands_at[0]._replace(ended_at=time.monotonic())

    def _produce(
        self,
        topic: str,
        records: Iterable[tuple[bytes, bytes | None]],
        deadline: float,
        partition: int,
        **more: Any,
    ) -> None:
        """Produces pairs of key and value; waits for room."""
        produce = self._producer.produce
        if more:
            produce = partial(produce, **more)
        for key, value in records:
            while True:
                try:
                    # By position: keywords cost as much again as everything else here.
                    produce(topic, value, key, partition)
                except BufferError:
                    if time.monotonic() >= deadline:
                        raise
                    self._producer.poll(0.01)
                else:
                    break

    def _note_undelivered(self, error: KafkaError | None, _message: Message) -> None:
        # What was purged failed because another did.
        if error is not None and error.code() not in _PURGED:
            self._undelivered = self._undelivered or error

    def _classified(self, cause: KafkaError, error: KafkaError, deadline: float) -> CommitFailed | KafkaRefused:
        """By the code, never by the flag alone: the same fence shows as fatal or as abortable, by which request met it.

        `cause` is why a record was not delivered, where that is known; else `error` itself, what the client raised.
        """
        reason = f"{cause.name()}: {cause.str()}"
        if error.code() in _FENCED:
            return Fenced(reason, error.name())
        if cause.code() in _NEVER_TAKEN:
            return KafkaRefused(f"Kafka will not take a commit of partition {self._partition}: {reason}")
        if error.fatal() or not error.txn_requires_abort():
            return Unclear(reason, error.name())
        # After any other error the client has purged records, of which the broker may have some: only a new producer may go on.
        is_settled = self._is_acknowledged and error.code() in _GROUP_CHANGED
        if not is_settled and error.code() != KafkaError._INCONSISTENT:
            return Unclear(reason, error.name())
        try:
            self._producer.abort_transaction(max(1.0, _left(deadline)))
        except KafkaException as failure:
            return Unclear(f"{reason}; the abort failed: {failure.args[0].name()}", error.name())
        return (GroupChanged if is_settled else Aborted)(reason, error.name())


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
