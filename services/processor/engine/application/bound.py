"""The stores, maps and timers that a core's application folds with: those that it declared, over the core's layers."""

from typing import Any, Protocol

from services.processor.engine.state.layers import Layers
from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.store_spec import StoreSpec
from services.processor.engine.state.timers_spec import TimersSpec


class Clocked(Protocol):
    """What has a clock."""

    #: The partition's clock, ms since 1970.
    clock_ms: int


class BoundStore:
    """The `Store` of one spec over a core's layers."""

    def __init__(self, spec: StoreSpec[Any], clocked: Clocked, layers: Layers) -> None:
        self._prefix = bytes([spec.id])
        self._clocked = clocked
        self._layers = layers
        self._young = layers.young
        #: The last key asked for, and its row key: most folds get and put under one key.
        self._key: bytes | None = None
        self._row_key = b""

    def get(self, key: bytes) -> Any:
        if key is not self._key:
            self._key, self._row_key = key, self._prefix + key
        entry = self._young.get(self._row_key)
        return self._layers.uncached_row(self._row_key) if entry is None else entry.row

    def put(self, key: bytes, row: Any, deadline_ms: int = 0) -> None:
        if key is not self._key:
            self._key, self._row_key = key, self._prefix + key
        # A deadline in the past fires with the next millisecond. So no committed row is due at the checkpoint's clock, and a
        # takeover need not read timers before it.
        if 0 < deadline_ms <= self._clocked.clock_ms:
            deadline_ms = self._clocked.clock_ms + 1
        self._layers.put(self._row_key, row, deadline_ms)

    def put_by(self, key: bytes, row: Any, deadline_ms: int) -> None:
        if key is not self._key:
            self._key, self._row_key = key, self._prefix + key
        self._layers.put(self._row_key, row, max(deadline_ms, self._clocked.clock_ms + 1), keeps_earlier=True)

    def deadline_ms(self, key: bytes) -> int:
        entry = self._layers.entry(self._prefix + key)
        return 0 if entry is None else entry.deadline_ms

    def delete(self, key: bytes) -> None:
        self._layers.delete(self._prefix + key)


class BoundMap:
    """The `RowMap` of one spec over a core's layers."""

    def __init__(self, spec: MapSpec[Any], layers: Layers) -> None:
        self._spec = spec
        self._layers = layers
        #: The last owner and entry asked for, and their row key, as in `BoundStore`.
        self._owner: bytes | None = None
        self._entry: bytes | None = None
        self._row_key = b""

    def get(self, owner: bytes, entry: bytes) -> Any:
        found = self._layers.entry(self._row_key_of(owner, entry))
        return None if found is None else found.row

    def put(self, owner: bytes, entry: bytes, row: Any) -> None:
        self._layers.put(self._row_key_of(owner, entry), row, 0)

    def delete(self, owner: bytes, entry: bytes) -> None:
        self._layers.delete(self._row_key_of(owner, entry))

    def _row_key_of(self, owner: bytes, entry: bytes) -> bytes:
        if owner is not self._owner or entry is not self._entry:
            self._owner, self._entry = owner, entry
            self._row_key = self._spec.row_key(owner, entry)
        return self._row_key

    def items(
        self,
        owner: bytes,
        limit: int,
        *,
        prefix: bytes = b"",
        after: bytes | None = None,
        before: bytes | None = None,
    ) -> list[tuple[bytes, Any]]:
        entries = self._spec.range_of(owner, prefix, after, before)
        return [(key[len(entries.owner) :], row) for key, row in self._layers.entries(entries, limit)]

    def clear(self, owner: bytes, limit: int, *, prefix: bytes = b"") -> int:
        return self._layers.clear(self._spec.range_of(owner, prefix), limit)


class BoundTimers:
    """The `NamedTimers` of one spec over a core's layers."""

    def __init__(self, spec: TimersSpec, clocked: Clocked, layers: Layers) -> None:
        self._spec = spec
        self._clocked = clocked
        self._layers = layers

    def set(self, key: bytes, name: bytes, at_ms: int) -> None:
        # As in `BoundStore.put`.
        self._layers.put(self._spec.row_key(key, name), b"", max(at_ms, self._clocked.clock_ms + 1))

    def at_ms(self, key: bytes, name: bytes) -> int:
        entry = self._layers.entry(self._spec.row_key(key, name))
        return 0 if entry is None else entry.deadline_ms

    def cancel(self, key: bytes, name: bytes) -> None:
        self._layers.delete(self._spec.row_key(key, name))

    def clear(self, key: bytes, limit: int) -> int:
        return self._layers.clear(self._spec.range_of(key), limit)
