"""What a core offers the processor of its application: the `Context` of one checkpoint after the other."""

from typing import Any

from services.processor.engine.application.access import BoundStore
from services.processor.engine.application.application import Application, StoreSpec
from services.processor.engine.application.media_requests import MediaRequest
from services.processor.engine.core.checkpoint import Draft
from services.processor.engine.core.pending_media import PendingMediaRequests
from services.processor.engine.state.layers import Layers
from shared.topics import Topic


class CoreContext:
    """The `Context` of a core's processor; the core sets what stands in it."""

    def __init__(self, application: Application, partition: int, layers: Layers) -> None:
        self._application = application
        self._layers = layers
        self.partition = partition
        self.clock_ms = 0
        self.is_late = False
        #: The numbers that the application keeps, as they are now.
        self.tallies = dict.fromkeys(application.tallies, 0)
        self.draft = Draft(application.name)
        #: The media requests that were made and are not done.
        self.pending_media = PendingMediaRequests(application, layers)

    def store(self, spec: StoreSpec[Any]) -> BoundStore:
        """The core's rows of a store that the application declared; raises ValueError for another."""
        if not any(declared is spec for declared in self._application.stores):
            raise ValueError(f"application {self._application.name} has not declared store {spec.name}")
        return BoundStore(spec, self, self._layers)

    def emit(
        self,
        topic: Topic,
        key: bytes,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...] = (),
        *,
        by_key: bool = False,
    ) -> None:
        """Adds an output to the checkpoint."""
        self.draft.emit(topic, key, value, headers, by_key=by_key)

    def tally(self, name: str, change: int) -> None:
        """Changes one of the application's numbers."""
        self.tallies[name] += change

    def request_media(self, key: bytes, request: MediaRequest) -> None:
        """Wants an object stored."""
        self.pending_media.add(key, request)

    def open_anew(self) -> Draft:
        """The next checkpoint begins; returns what was gathered for this one."""
        done, self.draft = self.draft, Draft(self._application.name)
        self.is_late = False
        return done
