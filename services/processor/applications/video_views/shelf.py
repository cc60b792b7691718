"""Where the views of one session's plays are kept while a record is folded."""

from typing import Any

from services.processor.applications.video_views.keys import play_key
from services.processor.applications.video_views.stores import Dimensions, Stores
from services.processor.applications.video_views.view.state import ViewState, new_view


class StoredShelf:
    """A `session.Shelf` over the stores; remembers what was opened, so that each is stored once."""

    def __init__(self, key: bytes, stores: Stores, *, source: str, append_ms: int) -> None:
        self.key = key
        self._stores = stores
        self._source = source
        self.append_ms = append_ms
        self.opened: dict[int, tuple[ViewState, Dimensions]] = {}
        self.dropped: list[tuple[int, ViewState]] = []

    def open(self, ordinal: int) -> tuple[ViewState, dict[str, Any]] | None:
        found = self.opened.get(ordinal)
        if found is None:
            key = play_key(self.key, ordinal)
            view = self._stores.views.get(key)
            if view is None:
                return None
            found = self.opened[ordinal] = (view, self._stores.dimensions.get(key) or Dimensions())
        return found[0], found[1].values

    def new(self, ordinal: int, first_seq: int) -> tuple[ViewState, dict[str, Any]]:
        view = new_view(self._source, self.append_ms, first_seq)
        found = self.opened[ordinal] = (view, Dimensions())
        return found[0], found[1].values

    def drop(self, ordinal: int) -> None:
        self.dropped.append((ordinal, self.opened.pop(ordinal)[0]))
