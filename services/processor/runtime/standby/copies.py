"""Copies: a standby's warm copy of every store of the slot's active replica, read from the changelog.

Rows are written as they arrive, undecoded. A copy's position moves only with a meta row, so it is always at a commit. The replay at
a takeover overwrites rows ahead of the position.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.application import Lookup
from services.processor.engine.state.local import LocalMeta, StoreCorrupt, StoredRows, StoreFailed
from services.processor.engine.state.meta import META_KEY, Meta, decode_meta
from services.processor.engine.state.rows import NewerFormat
from services.processor.runtime.kafka.changelog_ends import ends_of
from services.processor.runtime.kafka.clients import standby_consumer
from services.processor.runtime.kafka.refusals import Refusals
from services.processor.runtime.plan import Plan
from services.processor.runtime.questions import LookedInCopy, Questions, Unanswered
from services.processor.runtime.store.rewriting import Rewriting
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores, StoreTooOld

log = structlog.get_logger(__name__)

BATCH_RECORDS_MAX: Final = 5_000
POLL_SECONDS: Final = 0.05
#: A copy of a silent partition notes this often that it is current, ms.
SAVED_AGE_MS_MAX: Final = 600_000


@dataclass
class Copy:
    """One partition's copy."""

    store: RocksStore
    meta: Meta | None
    #: After the last meta row taken, and after the last record read.
    changelog_offset: int
    read_to: int
    #: When it lacked nothing at the latest, ms since 1970.
    current_ms: int
    #: The position that its store has.
    saved: LocalMeta
    is_at_end: bool = False
    #: Whether it has rows of a commit of which others are still to come.
    is_torn: bool = False
    saved_at: float = 0.0


class Standby:
    """The copies of one slot."""

    def __init__(self, plan: Plan, stores: Stores) -> None:
        self._plan = plan
        self._stores = stores
        self._topic = plan.application.changelog.name
        self._copies: dict[int, Copy] = {}
        self._rewriting: Rewriting | None = None
        self._refusals = Refusals(plan.settings.refused_ms_max / 1000)
        self._consumer: Consumer = standby_consumer(plan.settings, plan.application, plan.slot)
        #: What other threads ask of the copies; who drives the standby has them answered.
        self.questions = Questions()

    @property
    def partitions(self) -> frozenset[int]:
        """What there are copies of."""
        return frozenset(self._copies)

    def lags(self) -> dict[int, int]:
        """Changelog records that each copy lacks; without those that have not been at their end yet."""
        return {partition: self._lag(partition, copy) for partition, copy in self._copies.items() if copy.is_at_end}

    def look(self, lookup: Lookup, subject: bytes, partition: int) -> LookedInCopy:
        """Answers a lookup from a copy as it is now. Raises `Unanswered` or `LookFailed`."""
        copy = self._copies.get(partition)
        if copy is None or not copy.is_at_end:
            raise Unanswered("no copy that has been at the changelog's end is here")
        if copy.is_torn:
            raise Unanswered("the copy is in the middle of a commit")
        try:
            json = lookup.answer(StoredRows(copy.store), subject)
        except (StoreFailed, NewerFormat) as error:
            raise Unanswered(f"the copy cannot be read: {error}") from error
        except Exception as error:
            raise LookFailed(f"{lookup.path}: {subject!r}: {type(error).__name__}: {error}") from error
        return LookedInCopy(json, max(0, _now_ms() - copy.current_ms), self._lag(partition, copy))

    def _lag(self, partition: int, copy: Copy) -> int:
        # The cached end comes with every fetch: it costs no request.
        _, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        return max(0, end - copy.read_to)

    def follow(self, partitions: Iterable[int]) -> None:
        """Keeps copies of these partitions from now on, and of no others."""
        wanted = frozenset(partitions)
        if wanted == self.partitions:
            return
        for partition in self.partitions - wanted:
            self._release(partition)
        for partition in sorted(wanted - self.partitions):
            try:
                copy = self._opened(partition)
            except KafkaException as exception:
                # Asked for again with the next turn.
                self._refusals.note(self._what(partition), exception.args[0])
                log.warning("standby_waits", partition=partition, error=exception.args[0].str())
                return
            self._copies[partition] = copy
            self._consumer.incremental_assign([TopicPartition(self._topic, partition, copy.changelog_offset)])
        log.info("standing_by", partitions=sorted(wanted))

    def _release(self, partition: int) -> None:
        copy = self._copies.pop(partition)
        self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        store = self._given_up(partition, copy)
        if store is not None:
            store.close()

    def _what(self, partition: int) -> str:
        return f"the changelog, {self._topic}/{partition}"

    def _opened(self, partition: int) -> Copy:
        try:
            return self._open(partition)
        except (StoreCorrupt, StoreTooOld) as error:
            why = str(error)
        self._stores.discard(partition, why)
        return self._open(partition)

    def _open(self, partition: int) -> Copy:
        """Raises `StoreCorrupt`, `StoreTooOld`, `StoreAhead`, `NewerFormat`; `KafkaException` when Kafka does not answer."""
        low, end = ends_of(self._consumer, TopicPartition(self._topic, partition))
        store = self._stores.open(partition)
        try:
            position = store.position()
            if position is None:
                # First of all: rows without a position would be trusted however old they are.
                position = LocalMeta(None, low, _now_ms())
                store.write({}, position)
            if position.changelog_offset > end:
                # This slot had the partition before: the marker of its last commit may not be in the changelog yet. For readers of
                # committed records the changelog ends before that commit.
                low, end = self._stores.changelog_ends.of(partition)
            self._stores.check(partition, position, low, end, now_ms=_now_ms())
        except BaseException:
            store.close()
            raise
        offset = position.changelog_offset
        return Copy(store, position.meta, offset, offset, position.current_ms, position)

    def copy(self) -> None:
        """One turn: takes what is there, for a moment."""
        self._refusals.check()
        rows: dict[int, dict[bytes, bytes | None]] = {}
        out_of_reach: set[int] = set()
        for message in self._consumer.consume(BATCH_RECORDS_MAX, POLL_SECONDS):
            partition = message.partition() or 0
            copy = self._copies.get(partition)
            if copy is not None and not self._apply(copy, message, rows.setdefault(partition, {})):
                out_of_reach.add(partition)
        now = time.monotonic()
        for partition, copy in list(self._copies.items()):
            try:
                if rows.get(partition):
                    copy.store.write(rows[partition], None)
                if now - copy.saved_at >= self._plan.settings.flush_interval_ms / 1000:
                    copy.saved_at = now
                    self._save(copy)
                self._rewrite_some(copy.store)
            except StoreCorrupt as error:
                self._delete_corrupt(partition, str(error))
        if self._stores.is_sweep_due:
            self._stores.sweep(self.partitions)
        for partition in out_of_reach & self.partitions:
            # Whether it is behind the changelog's beginning or beyond its end is seen when it is opened the next time.
            self._release(partition)

    def _rewrite_some(self, store: RocksStore) -> None:
        """A turn of the one copy whose files are written again. All copies are due at the same time, and takeovers do not wait."""
        if self._rewriting is None and store.is_rewrite_due:
            self._rewriting = Rewriting(store)
        elif self._rewriting is not None and self._rewriting.store is store and self._rewriting.turn():
            self._rewriting = None

    def _end_rewriting(self, store: RocksStore) -> None:
        if self._rewriting is not None and self._rewriting.store is store:
            self._rewriting.give_up()
            self._rewriting = None

    def _delete_corrupt(self, partition: int, why: str) -> None:
        """Deletes a corrupt copy; `follow` opens an empty one."""
        store = self._copies.pop(partition).store
        self._end_rewriting(store)
        store.close()
        self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        self._stores.discard(partition, why)

    def _apply(self, copy: Copy, message: Message, rows: dict[bytes, bytes | None]) -> bool:
        """False if the changelog no longer has the copy's next record."""
        error = message.error()
        offset = message.offset() or 0
        what = self._what(message.partition() or 0)
        if error is not None:
            if error.fatal():
                raise KafkaException(error)
            if error.code() != KafkaError._PARTITION_EOF:
                self._refusals.note(what, error)
                log.warning("standby_error", code=error.name(), error=error.str())
                return error.code() != KafkaError._AUTO_OFFSET_RESET
            self._refusals.clear(what)
            copy.is_at_end = True
            # The changelog has nothing that the copy lacks.
            copy.current_ms = _now_ms()
            copy.read_to = offset
            return True
        copy.read_to = offset + 1
        key, value = message.key(), message.value()
        copy.is_torn = key != META_KEY
        if key == META_KEY and value is not None:
            copy.meta = decode_meta(value)
            copy.changelog_offset = offset + 1
            # At the time of this commit nothing was missing that came before it.
            copy.current_ms = max(copy.current_ms, message.timestamp()[1])
        elif key is not None:
            rows[key] = value
        return True

    @staticmethod
    def _save(copy: Copy) -> None:
        position = LocalMeta(copy.meta, copy.changelog_offset, copy.current_ms)
        is_older = position.current_ms - copy.saved.current_ms >= SAVED_AGE_MS_MAX
        if position.changelog_offset != copy.saved.changelog_offset or is_older:
            copy.store.write({}, position)
            copy.saved = position

    def promote(self) -> dict[int, RocksStore]:
        """Gives the copies up to the one who takes over: open stores, each at its last commit seen."""
        copies, self._copies = self._copies, {}
        given_up = {partition: self._given_up(partition, copy) for partition, copy in copies.items()}
        return {partition: store for partition, store in given_up.items() if store is not None}

    def _given_up(self, partition: int, copy: Copy) -> RocksStore | None:
        """The copy's store, at the position up to which it was read; None for a corrupt store, which is deleted."""
        self._end_rewriting(copy.store)
        try:
            self._save(copy)
        except StoreCorrupt as error:
            copy.store.close()
            self._stores.discard(partition, str(error))
            return None
        return copy.store

    def close(self) -> None:
        """Closes the remaining copies; each continues from its position at the next start."""
        self._consumer.close()
        for store in self.promote().values():
            store.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
