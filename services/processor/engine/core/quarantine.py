"""Quarantine: keys on which the application fails repeatedly. Their rows are moved aside and their records are rejected.

A quarantined key is a row of the engine's own store; so is each row that was moved aside with it. Both are part of the checkpoint:
a takeover finds them again, and `release` puts the rows back.
"""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from services.processor.engine.application.application import Application, NamingRows, Processor, ReleasingRows
from services.processor.engine.core.context import CoreContext
from services.processor.engine.core.failing import Failing
from services.processor.engine.record import Record
from services.processor.engine.state.failures import ReleaseBroken
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import unpack
from services.processor.engine.state.store_spec import QUARANTINE_STORE_ID, ROW_BYTES_MAX, StoreSpec
from shared.forgetting import forgets

#: Rows of one key that are kept aside; more are rejected.
ROWS_PER_KEY_MAX: Final = 10_000
#: Rows that are looked at at once to find those of one key.
ROWS_PER_KEY_FOUND_MAX: Final = 100_000
#: A longer record key is not quarantined: its failing records are rejected one by one.
KEY_BYTES_MAX: Final = 4_096
_REASON_CHARS_MAX: Final = 300

#: A quarantined key is stored under `k <key>`; each of its rows under `r <length of key, 2 bytes> <key> <row key>`.
_KEY_PREFIX: Final = bytes([QUARANTINE_STORE_ID]) + b"k"
_ROW_PREFIX: Final = bytes([QUARANTINE_STORE_ID]) + b"r"

QUARANTINE: Final = StoreSpec[bytes](
    name="quarantine",
    id=QUARANTINE_STORE_ID,
    encode=bytes,
    decode=bytes,
    # A row as it was stored, deadline included.
    row_bytes_max=ROW_BYTES_MAX + 8,
)


class QuarantinedKey(msgspec.Struct, array_like=True):
    """One quarantined key, for operators too."""

    #: The partition's clock, ms since 1970.
    since_ms: int
    #: The last failure.
    reason: str
    failures: int
    #: Records that were rejected since, unfolded.
    rejected: int = 0
    #: Rows kept aside, and their bytes.
    rows: int = 0
    row_bytes: int = 0
    #: What the rows counted for: `release` adds it again.
    tallies: dict[str, int] = {}


_decode: Final = msgspec.msgpack.Decoder(QuarantinedKey).decode


class Quarantine:
    """The quarantined keys of one partition, and the recent failures of the others."""

    def __init__(self, application: Application, processor: Processor, context: CoreContext, layers: Layers) -> None:
        self._application = application
        self._rules = application.failure_rules
        self._processor = processor
        self._context = context
        self._layers = layers
        self._failing = Failing(self._rules)
        #: By record key; always this very dict.
        self.keys: dict[bytes, QuarantinedKey] = {}
        #: Of the version that runs: where it began, unless it is the first one.
        self.version_at: int | None = None

    def begin(self, meta: Meta) -> None:
        """The core is where `meta` says."""
        self._failing.begin(meta.failing)
        self.version_at = meta.version_at
        if meta.commit_number and meta.version != self._application.version:
            self.version_at = sum(meta.next_offsets.values())
        self.keys.clear()
        # All of them, though the limit may have been higher when they were quarantined: it is for new ones.
        rows = self._layers.counts[QUARANTINE_STORE_ID]
        if rows:
            for row_key in self._layers.keys(_KEY_PREFIX, rows):
                entry = self._layers.entry(row_key)
                assert entry is not None
                self.keys[row_key[len(_KEY_PREFIX) :]] = _decode(entry.row)

    @property
    def failing(self) -> dict[bytes, tuple[int, int]]:
        """Recent failures, as `Meta` keeps them."""
        return self._failing.keys

    def forgets(self, record: Record) -> bool:
        """Whether the record, which the application cannot read, deletes what is held of its key."""
        application = self._application
        return application.is_forgetting and forgets(record.value, record.headers, by_headers=application.by_headers)

    def forget(self, key: bytes, attempt: Callable[[Callable[[], None]], object]) -> None:
        """Deletes all rows of the key, also those that are kept aside; its later records are folded as those of a new key."""
        named = self._named_keys(key, attempt)
        for spec in self._application.stores:
            for row_key in self._each_row_of(spec, key, named):
                self._release_row(spec, row_key, attempt)
                if not self._layers.stands(row_key):
                    continue
                self._layers.discard(row_key)
                if spec is self._application.media:
                    self._context.pending_media.forget(row_key[1:])
        if self.keys.pop(key, None) is not None:
            for kept in self._layers.keys(_row_prefix(key), ROWS_PER_KEY_MAX):
                self._layers.delete(kept)
            self._layers.delete(_KEY_PREFIX + key)
        self._failing.forget(digest_of(key))

    def reject(self, record: Record) -> None:
        """Rejects a record of a quarantined key."""
        held = self.keys[record.key or b""]
        held.rejected += 1
        self._put(record.key or b"", held)
        self._context.reject(record, "quarantined", held.reason)

    def note(self, key: bytes, at: int, error: Exception, attempt: Callable[[Callable[[], None]], object]) -> None:
        """The application failed on a record or row of `key`, where the next offsets add up to `at`.

        `attempt` calls what the application is to do, and drops its changes where it fails. Raises `ReleaseBroken`.
        """
        rules = self._rules
        failures = self._failing.note(digest_of(key), at)
        if (
            self.version_at is not None
            and rules.broken_release_keys
            and at - self.version_at < rules.broken_release_records
        ):
            failed = self._failing.distinct_since(self.version_at)
            if failed > rules.broken_release_keys:
                raise ReleaseBroken(
                    f"{self._application.name} failed on {failed} keys of partition {self._context.partition} within"
                    f" {rules.broken_release_records} records after its version changed: correct it or roll it back"
                    f" ({_reason_of(error)})"
                )
        if failures >= rules.quarantine_failures and self._has_room(key):
            self._hold(key, failures, error, attempt)

    def _has_room(self, key: bytes) -> bool:
        return len(self.keys) < self._rules.quarantined_keys_max and len(key) <= KEY_BYTES_MAX and key not in self.keys

    def _hold(
        self, key: bytes, failures: int, error: Exception, attempt: Callable[[Callable[[], None]], object]
    ) -> None:
        """Keeps the rows of the key aside."""
        context, layers = self._context, self._layers
        held = QuarantinedKey(context.clock_ms, _reason_of(error), failures)
        room_bytes = self._rules.quarantined_bytes_max - sum(one.row_bytes for one in self.keys.values())
        tallies = dict(context.tallies)
        named = self._named_keys(key, attempt)
        for spec in self._application.stores:
            for row_key in self._each_row_of(spec, key, named):
                self._release_row(spec, row_key, attempt)
                if not layers.stands(row_key):
                    continue
                row = layers.discard(row_key)
                if spec is self._application.media:
                    context.pending_media.forget(row_key[1:])
                if held.rows < ROWS_PER_KEY_MAX and held.row_bytes + len(row) <= room_bytes:
                    layers.put(_row_prefix(key) + row_key, row, 0)
                    held.rows += 1
                    held.row_bytes += len(row)
                else:
                    context.reject_row(spec, row_key[1:], unpack(row)[2], "quarantined", held.reason)
        held.tallies = {
            name: before - context.tallies[name] for name, before in tallies.items() if before != context.tallies[name]
        }
        self._failing.forget(digest_of(key))
        self.keys[key] = held
        self._put(key, held)

    def _named_keys(self, key: bytes, attempt: Callable[[Callable[[], None]], object]) -> set[bytes] | None:
        """The keys of rows of a record key, where the application names them."""
        processor, named = self._processor, {key}
        if not isinstance(processor, NamingRows):
            return None
        return None if attempt(lambda: named.update(processor.row_keys(key))) else named

    def _each_row_of(self, spec: StoreSpec[Any], key: bytes, named: set[bytes] | None) -> Iterator[bytes]:
        """The rows of a key in a store, for a caller that deletes each before it takes the next."""
        while found := self._rows_of(spec, key, named):
            yield from found

    def _rows_of(self, spec: StoreSpec[Any], key: bytes, named: set[bytes] | None) -> list[bytes]:
        is_map, store = isinstance(spec, MapSpec), bytes([spec.id])
        if not is_map and (spec.record_key is None or named is not None):
            keys = {key} if spec.record_key is None or named is None else named
            return [store + one for one in sorted(keys) if self._layers.stands(store + one)]
        prefix = store + spec.prefix_of(key)
        # All that begin so: those of longer keys are not of this one.
        found = self._layers.keys(prefix, ROWS_PER_KEY_FOUND_MAX)
        return [one for one in found if spec.record_key_of(one[1:]) == key]

    def _release_row(
        self, spec: StoreSpec[Any], row_key: bytes, attempt: Callable[[Callable[[], None]], object]
    ) -> None:
        processor = self._processor
        if isinstance(processor, ReleasingRows):
            attempt(lambda: processor.release(spec, row_key[1:]))

    def release(self, key: bytes) -> None:
        """Puts the rows of a quarantined key back; its later records are folded. Raises KeyError, and what decoders raise."""
        context, layers = self._context, self._layers
        held = self.keys[key]
        prefix = _row_prefix(key)
        for kept in layers.keys(prefix, ROWS_PER_KEY_MAX):
            entry = layers.entry(kept)
            assert entry is not None
            row_key = kept[len(prefix) :]
            layers.restore(row_key, entry.row, context.clock_ms)
            layers.delete(kept)
            if self._application.media is not None and row_key[0] == self._application.media.id:
                context.pending_media.found(row_key[1:])
        for name, number in held.tallies.items():
            context.tally(name, number)
        layers.delete(_KEY_PREFIX + key)
        del self.keys[key]

    def _put(self, key: bytes, held: QuarantinedKey) -> None:
        self._layers.put(_KEY_PREFIX + key, msgspec.msgpack.encode(held), 0)


def record_key_of(row_key: bytes) -> bytes:
    """The record key of a row of the quarantine's own store."""
    if row_key.startswith(_KEY_PREFIX):
        return row_key[len(_KEY_PREFIX) :]
    begins = len(_ROW_PREFIX) + 2
    return row_key[begins : begins + int.from_bytes(row_key[len(_ROW_PREFIX) : begins], "big")]


def digest_of(key: bytes) -> bytes:
    """The short form of a key under which its failures are counted."""
    return hashlib.blake2b(key, digest_size=8).digest()


def _row_prefix(key: bytes) -> bytes:
    return _ROW_PREFIX + len(key).to_bytes(2, "big") + key


def _reason_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_REASON_CHARS_MAX]
