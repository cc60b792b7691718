"""Rewriting: writes the files of a store again beside a loop that must not wait."""

import threading
from concurrent.futures import Future

from services.processor.runtime.store.rocksdb import RocksStore


class Rewriting:
    """One store's. Timers go in turns of the loop, which alone writes the store; files are compacted on a thread."""

    def __init__(self, store: RocksStore) -> None:
        self.store = store
        self._parts = store.rewriting()
        self._compacted: Future[None] | None = None

    def turn(self) -> bool:
        """Does a little; true once all is done. Raises what the store raises."""
        if self._compacted is None:
            if next(self._parts):
                self._compacted = Future()
                threading.Thread(target=self._compact, args=(self._compacted,), name="rewriting", daemon=True).start()
            return False
        if not self._compacted.done():
            return False
        self._compacted.result()
        next(self._parts, None)
        return True

    def give_up(self) -> None:
        """Leaves the rest to who has the store next. A compaction that runs goes on."""
        self._parts.close()

    def _compact(self, compacted: Future[None]) -> None:
        try:
            self.store.compact()
        except Exception as error:  # noqa: BLE001  (raised by the next turn)
            compacted.set_exception(error)
        else:
            compacted.set_result(None)
