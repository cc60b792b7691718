"""PendingMediaRequests: the media requests of a core that are not done yet, found from their rows."""

from collections.abc import Mapping
from typing import Final

from services.processor.engine.application.application import Application
from services.processor.engine.application.media_requests import MediaRequest
from services.processor.engine.state.layers import Layers

#: Rows read at once when requests are found again.
_FOUND_AT_ONCE: Final = 1_000


class PendingMediaRequests:
    """The requests of one core, in the order in which they were made, or of their keys where they were found again."""

    def __init__(self, application: Application, layers: Layers) -> None:
        self._spec = application.media
        self._layers = layers
        self._requests: dict[bytes, MediaRequest] = {}
        #: The requests that were there, or not, before each change since the last `mark`.
        self._before: list[tuple[bytes, MediaRequest | None]] = []
        self.find()

    @property
    def requests(self) -> Mapping[bytes, MediaRequest]:
        """By the application's key."""
        return self._requests

    def find(self) -> None:
        """Only committed requests exist: after a takeover, or an abort."""
        self._requests, after = {}, b""
        self.mark()
        while self._spec is not None and (page := self._layers.committed_page(self._spec.id, after, _FOUND_AT_ONCE)):
            self._requests |= {key[1:]: request for key, request in page}
            after = page[-1][0][1:]

    def add(self, key: bytes, request: MediaRequest) -> None:
        """A request is made. Raises ValueError where the application has declared no store for it."""
        if self._spec is None:
            raise ValueError("the application has declared no store of media requests")
        self._layers.put(self.row_key(key), request, 0)
        self._set(key, request)

    def found(self, key: bytes) -> None:
        """The request's row exists again."""
        entry = self._layers.entry(self.row_key(key))
        assert entry is not None
        self._set(key, entry.row)

    def end(self, key: bytes) -> None:
        """The request is done."""
        self._layers.delete(self.row_key(key))
        self.forget(key)

    def forget(self, key: bytes) -> None:
        """The request's row is already deleted."""
        self._set(key, None)

    def _set(self, key: bytes, request: MediaRequest | None) -> None:
        self._before.append((key, self._requests.pop(key, None)))
        if request is not None:
            self._requests[key] = request

    def mark(self) -> None:
        """An `undo` keeps what was done until now."""
        self._before.clear()

    def undo(self) -> None:
        """Drops what was done since the last `mark`."""
        while self._before:
            key, request = self._before.pop()
            self._requests.pop(key, None)
            if request is not None:
                self._requests[key] = request

    def row_key(self, key: bytes) -> bytes:
        """The key of the request's row."""
        assert self._spec is not None
        return bytes([self._spec.id]) + key
