"""Local stores in a process's life: opened where the plan says, and thrown away when they cannot be relied on."""

import structlog

from services.processor.engine.local import LocalMeta
from services.processor.runtime.plan import Plan
from services.processor.runtime.rocks_store import Memory, RocksStore, delete_store
from services.rim.metrics import counter
from shared.metrics import PROCESSOR_STORES_DISCARDED
from shared.topics import Topic

log = structlog.get_logger(__name__)


class StoreTooOld(RuntimeError):
    """The changelog no longer has all that the local store lacks. Throw its files away and replay from the beginning."""


def open_store(plan: Plan, partition: int, memory: Memory) -> RocksStore:
    """Opens this process's store of a partition, as it stands."""
    path, seconds_max = plan.store_path(partition), plan.open_seconds_max
    return RocksStore(path, memory, open_seconds_max=seconds_max, crash_points=plan.crash_points)


def discard_store(plan: Plan, partition: int, why: str) -> None:
    """Deletes the closed store of a partition: the changelog has everything. Logged and counted."""
    log.error("store_discarded", partition=partition, why=why)
    counter(PROCESSOR_STORES_DISCARDED).labels(plan.application.name).inc()
    delete_store(plan.store_path(partition))


class StoreAhead(RuntimeError):
    """The local store stands beyond the changelog's end: the changelog lost committed records. Do not go on."""


def check_reach(changelog: Topic, partition: int, position: LocalMeta, low: int, end: int) -> None:
    """Raises `StoreTooOld` when the changelog begins after the position, `StoreAhead` when it ends before it."""
    stands_at = position.changelog_offset
    if stands_at < low:
        raise StoreTooOld(f"the local store stands at {stands_at}, {changelog.name}/{partition} begins at {low}")
    if stands_at > end:
        raise StoreAhead(
            f"{changelog.name}/{partition}: the local store stands at {stands_at}, the changelog ends at {end}: it has lost"
            " committed records. Find out why; going on would lose them silently."
        )


def check_age(changelog: Topic, position: LocalMeta, now_ms: int) -> None:
    """Raises `StoreTooOld` when deletions later than the position may be gone: what they deleted would rise again.

    The broker keeps them for a stated time after their append. Half of that is the limit, since this machine's clock
    (`now_ms`, ms since 1970) and the broker's may differ.
    """
    kept_ms = changelog.tombstones_kept_ms
    age_ms = now_ms - position.current_ms
    if kept_ms is not None and age_ms > kept_ms // 2:
        raise StoreTooOld(f"the local store is {age_ms} ms old; {changelog.name} keeps deletions for {kept_ms} ms")
