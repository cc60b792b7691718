"""Plan: what the runtime of a slot was told: the application and its limits. Sizes in bytes, times in s or ms as named."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from services.processor.engine.application.application import Application
from services.processor.runtime.objects.object_store import ObjectStore
from services.processor.runtime.telemetry.record_traces import RecordTraces
from services.rim.process.crash_points import CrashPoints
from shared.settings import Settings

_MIB: Final = 1024 * 1024


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
    """One slot's work."""

    settings: Settings
    application: Application
    #: The slot's static id in the group, `<host>/<slot>`.
    slot: str
    state_dir: Path
    #: Where others reach the lookups of this process; None when they are off.
    lookup_url: str | None = None
    #: 0: at home; others stand by for the slot, in their order.
    replica: int = 0
    #: How many others stand by for the slot.
    standbys: int = 0
    commit_interval_ms: int = 200
    #: Cut before the interval is over when so many rows wait.
    dirty_rows_max: int = 20_000
    flush_interval_seconds: float = 15.0
    #: The slot's memory beside RocksDB's and the fetch queue: shared out evenly among its partitions, see `limits`.
    cache_rows_max: int = 200_000
    cache_bytes_max: int = 128 * 1024 * 1024
    waiting_bytes_max: int = 64 * 1024 * 1024
    dirty_bytes_max: int = 128 * 1024 * 1024
    unflushed_bytes_max: int = 256 * 1024 * 1024
    #: Records taken from Kafka at once, and records of a partition that may wait to be folded.
    poll_records_max: int = 5_000
    waiting_records_max: int = 20_000
    #: Not over `poll_interval_ms_max`: the client refuses that.
    session_ms: int = 6_000
    poll_interval_ms_max: int = 20_000
    fetch_kbytes_max: int = 32_768
    #: What a commit, and everything done while a partition is given up, may take.
    commit_seconds_max: float = 10.0
    revoke_seconds_max: float = 5.0
    #: How long Kafka may refuse what the slot needs (rights, settings) before the slot ends.
    refused_seconds_max: float = 30.0
    open_seconds_max: float = 30.0
    block_cache_bytes: int = 64 * 1024 * 1024
    write_buffer_bytes: int = 64 * 1024 * 1024
    #: Where media requests store; None where the application makes none.
    objects: ObjectStore | None = None
    media_threads: int = 4
    #: Where traces are on.
    record_traces: RecordTraces | None = None
    crash_points: CrashPoints = field(default_factory=CrashPoints)

    def limits(self, partitions: int) -> Limits:
        """Each partition's share when the slot has so many. A part of it has a floor, so that every record fits, and a cap."""
        number = max(1, partitions)
        return Limits(
            cache_rows_max=max(1_000, self.cache_rows_max // number),
            cache_bytes_max=max(_MIB, self.cache_bytes_max // number),
            waiting_bytes_max=max(_MIB, self.waiting_bytes_max // number),
            dirty_bytes_max=max(_MIB, min(32 * _MIB, self.dirty_bytes_max // number)),
            unflushed_bytes_max=max(_MIB, min(64 * _MIB, self.unflushed_bytes_max // number)),
        )

    def store_path(self, partition: int) -> Path:
        """Where this process keeps the local store of a partition: its own, so that slots can share a volume."""
        owner = f"{self.slot.replace('/', '-')}.{self.replica}"
        return self.state_dir / self.application.name / owner / str(partition)
