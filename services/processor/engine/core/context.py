"""The `Context` that a core passes to its application's processor, one for each checkpoint."""

from typing import Any

from services.processor.engine.application.application import Application
from services.processor.engine.application.bound import BoundMap, BoundStore, BoundTimers
from services.processor.engine.application.media_requests import MediaRequest
from services.processor.engine.application.tables import Table, Tables, TableSpec
from services.processor.engine.core.checkpoint import Draft
from services.processor.engine.core.pending_media import PendingMediaRequests
from services.processor.engine.record import Record
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.store_spec import StoreSpec
from services.processor.engine.state.timers_spec import TimersSpec
from shared.topics import Topic


class CoreContext:
    """The `Context` of a core's processor; the core sets its fields."""

    def __init__(self, application: Application, partition: int, layers: Layers, tables: Tables) -> None:
        self._application = application
        self._layers = layers
        self._tables = tables
        self.partition = partition
        self.clock_ms = 0
        self.is_late = False
        #: The numbers that the application keeps, as they are now.
        self.tallies = dict.fromkeys(application.tallies, 0)
        self.draft = Draft(application.name)
        #: The media requests that were made and are not done.
        self.pending_media = PendingMediaRequests(application, layers)
        self._marked = self.draft.mark(), dict(self.tallies)

    def store(self, spec: StoreSpec[Any]) -> BoundStore:
        """The core's rows of a store that the application declared; raises ValueError for another."""
        if isinstance(spec, MapSpec):
            raise ValueError(f"store {spec.name} is a map")
        self._check_declared(spec)
        return BoundStore(spec, self, self._layers)

    def map(self, spec: MapSpec[Any]) -> BoundMap:
        """The core's rows of a map that the application declared; raises ValueError for another."""
        if isinstance(spec, TimersSpec):
            raise ValueError(f"store {spec.name} is of timers")
        self._check_declared(spec)
        return BoundMap(spec, self._layers)

    def timers(self, spec: TimersSpec) -> BoundTimers:
        """The core's timers of a spec that the application declared; raises ValueError for another."""
        self._check_declared(spec)
        return BoundTimers(spec, self, self._layers)

    def table(self, spec: TableSpec[Any]) -> Table[Any]:
        """A global table that the application declared; raises ValueError for another."""
        return self._tables.of(spec)

    def _check_declared(self, spec: StoreSpec[Any]) -> None:
        if not any(declared is spec for declared in self._application.stores):
            raise ValueError(f"application {self._application.name} has not declared store {spec.name}")

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
        """Requests that an object be stored."""
        self.pending_media.add(key, request)

    def reject(self, record: Record, reason: str, detail: str) -> None:
        """Writes a record to topic `rejected`."""
        origin = f"{record.topic}/{record.partition}/{record.offset}"
        self.draft.reject(record.key or b"", record.value or b"", reason, detail, origin)

    def reject_row(self, spec: StoreSpec[Any], key: bytes, payload: bytes, reason: str, detail: str) -> None:
        """Writes a row to topic `rejected`."""
        origin = f"{self._application.name}/{self.partition}/store {spec.name}"
        self.draft.reject(key, payload, reason, detail, origin)

    def reject_media(self, key: bytes, request: MediaRequest) -> None:
        """Writes where the records of a refused media request are to topic `rejected`, in their order, without their bytes."""
        for first, count in request.runs:
            for offset in range(first, first + count):
                origin = f"{request.topic}/{self.partition}/{offset}"
                self.draft.reject(key, b"", "object_refused", f"the object store refuses {request.name}", origin)

    def mark(self) -> None:
        """An `undo` keeps what was done until now."""
        self._marked = self.draft.mark(), dict(self.tallies)
        self.pending_media.mark()

    def undo(self) -> None:
        """Drops outputs, tallies and media requests since the last `mark`."""
        marked, tallies = self._marked
        self.draft.undo(marked)
        self.tallies = dict(tallies)
        self.pending_media.undo()

    def begin_checkpoint(self) -> Draft:
        """The next checkpoint begins; returns what was gathered for this one."""
        done, self.draft = self.draft, Draft(self._application.name)
        self.is_late = False
        self.pending_media.mark()
        return done
