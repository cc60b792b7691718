"""Copies: the committed rows of a partition, read from its changelog into a folder of the command's own.

A slot may be at work meanwhile: a copy ends at a commit, that before the first transaction which is still open.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import TopicPartition

from services.processor.engine.application.application import Application
from services.processor.engine.state.local import LocalMeta, LocalStore
from services.processor.engine.state.meta import META_KEY, Meta, decode_meta
from services.processor.runtime.kafka.clients import changelog_consumer
from services.processor.runtime.kafka.reading import ends, to_the_end
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.rocksdb_options import Memory
from shared.settings import Settings

_MIB: Final = 1024 * 1024
#: Rows that are written at once, and their bytes.
_BATCH_ROWS: Final = 20_000
_BATCH_BYTES: Final = 16 * _MIB
_PAGE_ROWS: Final = 1_000
_OPEN_SECONDS_MAX: Final = 10.0
#: Every row key is before it: store ids are less than 255.
_END: Final = b"\xff"


class Copy(NamedTuple):
    """The rows of a partition, and its position; None: it never committed."""

    store: LocalStore
    meta: Meta | None

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Every row by its key, in order."""
        first = b""
        while page := self.store.page(first, _END, _PAGE_ROWS):
            yield from page
            first = page[-1][0] + b"\x00"

    @property
    def has_rows(self) -> bool:
        """Whether there is any."""
        return bool(self.store.page(b"", _END, 1))


@contextmanager
def copied(settings: Settings, application: Application, partition: int, folder: Path) -> Iterator[Copy]:
    """A copy of a partition in `folder`, which must be new. Raises `ReadingFailed`, `KafkaException`, `NewerFormat`."""
    memory = Memory(block_cache_bytes=32 * _MIB, write_buffer_bytes=64 * _MIB)
    store = RocksStore(folder, memory, open_seconds_max=_OPEN_SECONDS_MAX)
    consumer = changelog_consumer(settings, application, partition, "read_committed")
    try:
        meta: Meta | None = None
        batch: dict[bytes, bytes | None] = {}
        batch_bytes = 0
        at = TopicPartition(application.changelog.name, partition)
        for message in to_the_end(consumer, at):
            key, row = message.key() or b"", message.value()
            if key == META_KEY:
                meta = None if row is None else decode_meta(row)
                continue
            batch[key] = row
            batch_bytes += len(key) + len(row or b"")
            if len(batch) >= _BATCH_ROWS or batch_bytes >= _BATCH_BYTES:
                store.write(batch, None)
                batch, batch_bytes = {}, 0
        _, end = ends(consumer, at)
        store.write(batch, LocalMeta(meta, end, time.time_ns() // 1_000_000))
        yield Copy(store, meta)
    finally:
        consumer.close()
        store.close()
