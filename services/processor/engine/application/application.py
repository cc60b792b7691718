"""Application: what a processor runs - topics, time, stores, a fold, lookups - and what these may do while it runs.

Applications import from here the declarations of their stores too (`engine.state.store_spec`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from services.processor.engine.application.failure_rules import DEFAULT_RULES, FailureRules
from services.processor.engine.application.growth import Growth
from services.processor.engine.application.lookup import Candidate, Lookup, LookupWrong, Objects, Rows, StoredObject
from services.processor.engine.application.media_requests import MediaRequest
from services.processor.engine.application.requests import Query, Route
from services.processor.engine.application.tables import Table, TableSpec
from services.processor.engine.record import Record
from services.processor.engine.state.map_spec import MapSpec, RowMap
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import NewerFormat
from services.processor.engine.state.store_spec import QUARANTINE_STORE_ID, Row, Store, StoreSpec
from services.processor.engine.state.timers_spec import NamedTimers, TimersSpec, timers_of
from shared.topics import Profile, Topic

__all__ = [
    "INPUT_WAIT_MS_MAX",
    "Application",
    "Candidate",
    "Context",
    "EventTime",
    "FiringTimers",
    "Growth",
    "Lookup",
    "LookupWrong",
    "MapSpec",
    "NamedTimers",
    "NamingRows",
    "NotCoPartitioned",
    "Objects",
    "Processor",
    "ReleasingRows",
    "Row",
    "RowMap",
    "Rows",
    "Store",
    "StoreSpec",
    "StoredObject",
    "Table",
    "TableSpec",
    "TimersSpec",
    "media_store",
    "timers_of",
]

#: How long an input that is behind, or whose leader is silent, holds the others back, ms; see `engine.inbox`.
INPUT_WAIT_MS_MAX: Final = 10_000


def media_store(store_id: int) -> StoreSpec[MediaRequest]:
    """The store of an application's media requests."""
    decoder = msgspec.msgpack.Decoder(MediaRequest)
    return StoreSpec(name="media_requests", id=store_id, encode=msgspec.msgpack.encode, decode=decoder.decode)


class Context(Protocol):
    """What a core offers the processor of an application. Everything done through it is of one checkpoint."""

    @property
    def partition(self) -> int:
        """The input partition this core works."""
        ...

    @property
    def clock_ms(self) -> int:
        """The partition's clock, ms since 1970."""
        ...

    @property
    def is_late(self) -> bool:
        """Whether the record being folded is older than the clock by more than the grace; never so on append time.

        A record that is not late finds every window of its time open (`engine.windows`); a late one may or may not.
        """
        ...

    def store(self, spec: StoreSpec[Row]) -> Store[Row]:
        """The core's rows of a store that the application declared."""
        ...

    def map(self, spec: MapSpec[Row]) -> RowMap[Row]:
        """The core's rows of a map that the application declared."""
        ...

    def timers(self, spec: TimersSpec) -> NamedTimers:
        """The core's named timers of a spec that the application declared."""
        ...

    def table(self, spec: TableSpec[Row]) -> Table[Row]:
        """A global table that the application declared, as the slot has read it: not of this checkpoint (`TableSpec`)."""
        ...

    def emit(
        self,
        topic: Topic,
        key: bytes,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...] = (),
        *,
        by_key: bool = False,
    ) -> None:
        """Produces a record (None: a tombstone) with this checkpoint: to the partition of its number or, `by_key`, to its key's.

        Where the topic has fewer partitions than the input, the number is counted round.

        By its own number what belongs together stays together; by key is for what another application reads under other keys.
        """
        ...

    def request_media(self, key: bytes, request: MediaRequest) -> None:
        """Wants an object stored (`engine.media_requests`): one at a time under a key."""
        ...

    def tally(self, name: str, change: int) -> None:
        """Changes a number, declared as one of the application's `tallies`, that operators see; it begins at 0."""
        ...


class Processor(Protocol):
    """The fold of an application on one partition. Deterministic: its inputs are its arguments and its stores."""

    def fold(self, record: Record) -> None:
        """Takes one record in. Raises `shared.codec.Undecodable` for one that cannot be understood: it is rejected."""
        ...

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        """The clock has reached the deadline of a row: give it another one, or delete it."""
        ...


@runtime_checkable
class FiringTimers(Protocol):
    """A processor of an application that declares named timers."""

    def fire_timer(self, spec: TimersSpec, key: bytes, name: bytes) -> None:
        """The clock has reached the timer `name` of the row of `key`. It is cancelled already: set it to have it again.

        If this raises, the row is rejected, with its timers and all that goes with it.
        """
        ...


@runtime_checkable
class ReleasingRows(Protocol):
    """A processor that has more to do when one of its rows is rejected or quarantined."""

    def release(self, spec: StoreSpec[Any], key: bytes) -> None:
        """The row is about to be removed: undo what it counts for elsewhere.

        The row still exists. The engine then deletes it, and what `goes_with` it. If this raises, its changes are dropped.
        """
        ...


@runtime_checkable
class NamingRows(Protocol):
    """A processor that knows the rows of a record key: where keys of rows are made of record keys, they need not be looked for."""

    def row_keys(self, key: bytes) -> Sequence[bytes]:
        """The keys of rows of a record key, in any store but maps, beside the record key itself. If this raises, they are looked
        for."""
        ...


@dataclass(frozen=True)
class EventTime:
    """The time of an application that trusts its clients: what the records say, not when the broker got them.

    The clock is the largest event time seen, but never later than the broker's append time. So a client whose clock is ahead makes
    no other record late. `of` gives a record's, in ms since 1970, and raises `shared.codec.Undecodable` for one without. A record
    older than the clock by more than `grace_ms` is late. A record ahead of its append time by more than `ahead_ms_max` is rejected.

    While a partition has nothing to read, its clock stands for `silence_ms` and then runs on. A producer that was away for no
    longer finds the clock where it was, so that nothing that it brings in order is late.
    """

    of: Callable[[Record], int]
    grace_ms: int
    ahead_ms_max: int = 60_000
    silence_ms: int = 0


class NotCoPartitioned(ValueError):
    """The inputs and the changelog do not have the same number of partitions, so no core could work them."""


@dataclass(frozen=True)
class Application:
    """A stateful application: its id, by default its name, is part of the names of its transactions and its consumer group.

    Its inputs and its changelog have the same number of partitions. The core of partition n reads n of every input and writes n
    of every output, modulo the number of partitions of an output that has fewer. It runs on the broker's append time unless it
    says otherwise.
    """

    name: str
    inputs: tuple[Topic, ...]
    outputs: tuple[Topic, ...]
    changelog: Topic
    stores: tuple[StoreSpec[Any], ...]
    start: Callable[[Context], Processor]
    event_time: EventTime | None = None
    input_wait_ms_max: int = INPUT_WAIT_MS_MAX
    #: Whether the application gets only the headers of its records. Large values stay in Kafka, and a rejected record names its
    #: place there.
    by_headers: bool = False
    #: Whether its inputs have records that delete all that it holds of their key (`shared.forgetting`).
    is_forgetting: bool = False
    #: The one of its stores that holds its media requests (`engine.media_requests`); its processor is `MediaHandler`.
    media: StoreSpec[MediaRequest] | None = None
    lookups: tuple[Lookup, ...] = ()
    #: What it answers over HTTP in steps, and the questions that these ask its owners.
    routes: tuple[Route, ...] = ()
    queries: tuple[Query, ...] = ()
    #: Names of the numbers that it keeps of each partition for operators to see.
    tallies: tuple[str, ...] = ()
    #: The release that runs: any text that another release does not have.
    version: str = ""
    failure_rules: FailureRules = DEFAULT_RULES
    #: How its state is divided when its partitions grow; None: they cannot, and `cannot_grow` says why.
    growth: Growth | None = None
    cannot_grow: str = "it does not say how its state is divided"
    #: What every slot has whole of compacted topics, for folds to look up.
    tables: tuple[TableSpec[Any], ...] = ()
    #: The id under which its state is, where that is not its name.
    moved_to: str = ""

    def __post_init__(self) -> None:
        if any(store.id == QUARANTINE_STORE_ID for store in self.stores):
            raise ValueError(f"store id {QUARANTINE_STORE_ID} is the engine's own")
        names = {store.name for store in self.stores}
        for store in self.stores:
            if isinstance(store, TimersSpec) and store.goes_with not in names:
                raise ValueError(f"timers {store.name} are of store {store.goes_with}, which is not declared")
        read = [*self.inputs, *(table.topic for table in self.tables)]
        if len({topic.name for topic in read}) != len(read):
            raise ValueError(f"{self.name} reads a topic twice: as an input and as a table, or as two of one kind")

    @property
    def id(self) -> str:
        """What its group, its transactions, its changelog and its local stores are named by."""
        return self.moved_to or self.name

    def under(self, application_id: str) -> "Application":
        """The same application with the state of this id."""
        if application_id == self.name:
            return self
        changelog = replace(self.changelog, name=f"{application_id}.changelog")
        return replace(self, moved_to=application_id, changelog=changelog)

    @property
    def topics(self) -> tuple[Topic, ...]:
        """Every topic it reads or writes."""
        return (*self.inputs, *self.outputs, self.changelog, *(table.topic for table in self.tables))

    def partitions(self, profile: Profile) -> int:
        """How many partitions it works in an installation of this profile; raises `NotCoPartitioned`."""
        counts = {topic.name: topic.partitions(profile) for topic in (*self.inputs, self.changelog)}
        if len(set(counts.values())) != 1:
            declared = ", ".join(f"{name} {number}" for name, number in counts.items())
            raise NotCoPartitioned(
                f"{self.name} needs inputs and a changelog of one partition count, these are declared: {declared}"
            )
        return next(iter(counts.values()))

    def row_formats(self, stands_at: Meta) -> dict[int, int]:
        """The formats that rows may have from now on, by store id; raises `NewerFormat` for one that cannot be read here."""
        specs = {spec.id: spec for spec in self.stores}
        for store_id, row_format in stands_at.store_formats.items():
            if store_id not in specs:
                raise NewerFormat(f"the state has a store {store_id} that this version does not know: upgrade it")
            if not specs[store_id].reads(row_format):
                raise NewerFormat(specs[store_id].newer_format(row_format))
        return {spec.id: max(spec.format, stands_at.store_formats.get(spec.id, 0)) for spec in self.stores}
