"""PendingMediaRequests: the media requests of a core that are made and not done. It is rebuilt from their rows."""

from collections.abc import Mapping
from typing import Final

from services.processor.engine.application.application import Application
from services.processor.engine.application.media_requests import MediaRequest
from services.processor.engine.state.layers import Layers

#: Rows asked for at once when they are found again.
_FOUND_AT_ONCE: Final = 1_000


class PendingMediaRequests:
    """The requests of one core, in the order in which they were made, or of their keys where they were found again."""

    def __init__(self, application: Application, layers: Layers) -> None:
        self._spec = application.media
        self._layers = layers
        self._requests: dict[bytes, MediaRequest] = {}
        self.find()

    @property
    def requests(self) -> Mapping[bytes, MediaRequest]:
        """By the application's key."""
        return self._requests

    def find(self) -> None:
        """Only what is committed stands: a takeover, or an abort."""
        self._requests, after = {}, b""
        while self._spec is not None and (page := self._layers.committed_page(self._spec.id, after, _FOUND_AT_ONCE)):
            self._requests |= {key[1:]: request for key, request in page}
            after = page[-1][0][1:]

    def add(self, key: bytes, request: MediaRequest) -> None:
        """It is made. Raises ValueError where the application has declared no store for it."""
        if self._spec is None:
            raise ValueError("the application has declared no store of media requests")
        self._layers.put(self.row_key(key), request, 0)
        self._requests[key] = request

    def end(self, key: bytes) -> None:
        """It does not stand any more."""
        self._layers.delete(self.row_key(key))
        self.forget(key)

    def forget(self, key: bytes) -> None:
        """Its row is gone already."""
        del self._requests[key]

    def row_key(self, key: bytes) -> bytes:
        """Where its row stands."""
        assert self._spec is not None
        return bytes([self._spec.id]) + key
