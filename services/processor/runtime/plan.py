"""Plan: the configuration of a slot's runtime: the application, the settings, and each partition's share of the memory."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from services.processor.engine.application.application import Application
from services.processor.runtime.objects.object_store import ObjectStore
from services.processor.runtime.telemetry.record_traces import RecordTraces
from services.processor.settings import ProcessorSettings
from services.rim.process.crash_points import CrashPoints
from shared.settings import Settings
from shared.topics import PROFILES

_MIB: Final = 1024 * 1024
#: Of a partition: small, for a slot may have all 768 of recordings.
_SHARE_BYTES_MIN: Final = 64 * 1024
_SHARE_ROWS_MIN: Final = 100


def first_partitions(settings: Settings, application: Application) -> int:
    """The number of an application's partitions before any growth. Raises `NotCoPartitioned`."""
    return application.partitions(PROFILES[settings.topics_profile])


@dataclass(frozen=True)
class Limits:
    """What one partition may hold in memory."""

    #: Decoded rows in the cache.
    cache_rows_max: int
    #: Bytes of these rows as they were last stored.
    cache_bytes_max: int
    #: Read and not yet folded, of each input.
    waiting_bytes_max: int
    #: Folded and not yet cut; as much again may be in flight.
    dirty_bytes_max: int
    #: Committed, and not yet in the local store.
    unflushed_bytes_max: int


@dataclass(frozen=True)
class Plan:
    """One slot's work: its settings, its application, and what is built from the settings."""

    settings: ProcessorSettings
    application: Application
    #: Where others reach the lookups of this process; None when they are off.
    lookup_url: str | None = None
    #: Where media requests store; None where the application makes none.
    objects: ObjectStore | None = None
    #: None where traces are off.
    record_traces: RecordTraces | None = None
    crash_points: CrashPoints = field(default_factory=CrashPoints)

    @property
    def slot(self) -> str:
        """The slot's static id in the group, `<host>/<slot>`."""
        return self.settings.slot

    @property
    def partitions(self) -> int:
        """The number of the application's partitions. Raises `NotCoPartitioned`."""
        return self.application.partitions(self.settings.profile)

    @property
    def has_grown(self) -> bool:
        """Whether there are more partitions than the profile creates."""
        return self.partitions != first_partitions(self.settings, self.application)

    def limits(self, partitions: int) -> Limits:
        """Each partition's share for this number of partitions: of each part at least a little, so that it gets on.

        A partition may pass its share by one record: it looks after each. Up to a thousand partitions the shares of default limits
        add up to no more than these.
        """
        settings, number = self.settings, max(1, partitions)
        return Limits(
            cache_rows_max=max(_SHARE_ROWS_MIN, settings.cache_rows_max // number),
            cache_bytes_max=max(_SHARE_BYTES_MIN, settings.cache_bytes_max // number),
            waiting_bytes_max=max(_SHARE_BYTES_MIN, settings.waiting_bytes_max // number),
            dirty_bytes_max=max(_SHARE_BYTES_MIN, min(32 * _MIB, settings.dirty_bytes_max // number)),
            unflushed_bytes_max=max(_SHARE_BYTES_MIN, min(64 * _MIB, settings.unflushed_bytes_max // number)),
        )

    def store_path(self, partition: int) -> Path:
        """Where this process keeps the local store of a partition: its own, so that slots can share a volume."""
        owner = f"{self.slot.replace('/', '-')}.{self.settings.replica}"
        return self.settings.state_dir / self.application.id / owner / str(partition)
