"""UnflushedEntries: the entries of maps that the local store may not have as they are, by owner.

So the scan of an owner does not look at the rows of others.
"""

from collections.abc import Collection, Iterable
from typing import Any

from services.processor.engine.state.map_spec import EntryRange, MapSpec, owner_of
from services.processor.engine.state.store_spec import StoreSpec


class UnflushedEntries:
    """Row keys that a layer above the local store has. One that none has any more does no harm: the scan asks the layers."""

    def __init__(self, specs: Iterable[StoreSpec[Any]]) -> None:
        #: The ids of maps: of other stores nothing is kept.
        self.ids = frozenset(spec.id for spec in specs if isinstance(spec, MapSpec))
        self._keys: dict[bytes, set[bytes]] = {}

    def add(self, key: bytes) -> None:
        """A layer has the row of an entry."""
        self._keys.setdefault(owner_of(key), set()).add(key)

    def remove(self, keys: Collection[bytes]) -> None:
        """No layer above the local store has these rows, which may be of any store."""
        for key in keys:
            if key[0] not in self.ids:
                continue
            owner = owner_of(key)
            kept = self._keys.get(owner)
            if kept is not None:
                kept.discard(key)
                if not kept:
                    del self._keys[owner]

    def within(self, entries: EntryRange) -> list[bytes]:
        """The keys in a range."""
        _, first, before = entries
        return [key for key in self._keys.get(entries.owner, ()) if first <= key < before]
