"""How long a takeover takes, cold (empty disk) and warm (a standby's copies), once the partitions are known.

Fills the changelog of `video_views` on a broker of its own with open views over 8 partitions, as a slot would have left them, then
takes all partitions as a slot does: fence, open, replay. Checked before anything is printed: each store holds every row.
"""

import logging
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from deploy.local.broker import Broker
from deploy.topics import create_topics
from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.stores import VIEWS
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.applications.video_views.view.order.by_number import ByNumber
from services.processor.applications.video_views.view.progress.progress import Progress
from services.processor.applications.video_views.view.state import new_view
from services.processor.engine.core.core import Core
from services.processor.engine.state.meta import META_KEY, Meta, encode_meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.kafka.clients import partition_producer
from services.processor.runtime.partition.changelog import RestoreProgress
from services.processor.runtime.partition.takeover import TakenPartition, take_over
from services.processor.runtime.plan import Plan
from services.processor.runtime.standby.copies import Standby
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.settings import ProcessorSettings
from shared import topics
from shared.partitioning import partition_of, view_key
from shared.settings import Settings

PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES["laptop"])
SIZES: Final = (10_000, 100_000, 1_000_000)
ROWS_A_COMMIT: Final = 5_000
COPY_SECONDS_MAX: Final = 300.0
#: Twice the slot's default: all stores of a million views.
CACHE_BYTES: Final = 128 * 1024 * 1024
_APPLICATION: Final = application(FinishRules())
_NOW_MS: Final = 1_795_000_000_000


class Took(NamedTuple):
    """One size."""

    views: int
    cold_seconds: float
    rows_a_cpu_second: float
    warm_seconds: float


class NotWhole(RuntimeError):
    """A store lacks rows."""


def measure(sizes: list[int]) -> list[Took]:
    """Runs every size; prints a table. Raises `NotWhole`."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    found = []
    print(f"{'views':>10} {'cold, s':>9} {'rows/CPU-s':>11} {'warm, s':>9}   ({PARTITIONS} partitions, one slot)")
    for views in sizes:
        with tempfile.TemporaryDirectory(prefix="handover") as folder, Broker(Path(folder) / "broker") as broker:
            settings = Settings(kafka_bootstrap=broker.bootstrap)
            create_topics(settings)
            keys = _fill(settings, views)
            cold_seconds, used, whole = _take(_plan(settings, folder, "cold"), {}, keys)
            rate = views / used
            warm_plan = _plan(settings, folder, "warm")
            copies = _copy(warm_plan)
            warm_seconds, _, also_whole = _take(warm_plan, copies, keys)
            if not (whole and also_whole):
                raise NotWhole(f"{views:,} views: a store lacks rows")
            found.append(Took(views, cold_seconds, rate, warm_seconds))
            print(f"{views:>10,} {cold_seconds:>9.2f} {rate:>11,.0f} {warm_seconds:>9.2f}", flush=True)
    return found


def _plan(settings: Settings, folder: str, slot: str) -> Plan:
    of_slot = ProcessorSettings(
        kafka_bootstrap=settings.kafka_bootstrap,
        topics_profile=settings.topics_profile,
        slot=f"{slot}/0",
        state_dir=Path(folder) / "state",
        standbys=1,
        block_cache_bytes=CACHE_BYTES,
        write_buffer_bytes=CACHE_BYTES,
    )
    return Plan(of_slot, _APPLICATION)


def _fill(settings: Settings, views: int) -> dict[int, list[bytes]]:
    """Commits an open view's row for each key; returns the row keys by partition."""
    state = new_view("mux", _NOW_MS)
    state.order = ByNumber(first_seq=1, next_seq=40)
    state.folded.progress = Progress(
        state=2, at_ms=_NOW_MS, has_begun=True, counters={"watch_ms": 390_000, "playing_ms": 380_000}
    )
    state.last_append_ms = _NOW_MS + 390_000
    state.beacon_count = 39
    payload = VIEWS.encode(state)
    keys: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for number in range(views):
        key = view_key("acme", f"{number:032x}")
        keys[partition_of.__wrapped__(key, PARTITIONS)].append(bytes([VIEWS.id]) + key)
    threads = [threading.Thread(target=_fill_one, args=(settings, *item, payload)) for item in keys.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return keys


def _fill_one(settings: Settings, partition: int, keys: list[bytes], payload: bytes) -> None:
    producer = partition_producer(settings, _APPLICATION, partition)
    producer.init_transactions(30)
    changelog = _APPLICATION.changelog.name
    for start in range(0, len(keys), ROWS_A_COMMIT):
        producer.begin_transaction()
        for at, key in enumerate(keys[start : start + ROWS_A_COMMIT]):
            producer.produce(changelog, pack(_NOW_MS + 300_000 + at, payload), key, partition)
        meta = encode_meta(Meta({topics.BEACONS.name: start}, _NOW_MS, start + 1))
        producer.produce(changelog, meta, META_KEY, partition)
        producer.commit_transaction(60)


def _copy(plan: Plan) -> dict[int, RocksStore]:
    """What a standby has once it is caught up."""
    standby = Standby(plan, Stores(plan))
    standby.follow(range(PARTITIONS))
    deadline = time.monotonic() + COPY_SECONDS_MAX
    while standby.lags() != dict.fromkeys(range(PARTITIONS), 0):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the standby is not caught up after {COPY_SECONDS_MAX} s")
        standby.copy()
    stores = standby.promote()
    standby.close()
    return stores


def _take(plan: Plan, warm: dict[int, RocksStore], keys: dict[int, list[bytes]]) -> tuple[float, float, bool]:
    """Takes all partitions at once: seconds until the last can be worked, CPU-seconds, whether every row is there."""
    stores = Stores(plan)
    given_up = threading.Event()

    def take(partition: int) -> TakenPartition:
        partition_store = take_over(
            plan, partition, stores, given_up, progress=RestoreProgress(), wait_seconds=0, warm=warm.get(partition)
        )
        Core(_APPLICATION, partition, partition_store.store)
        return partition_store

    with ThreadPoolExecutor(PARTITIONS) as pool:
        started, used = time.monotonic(), time.process_time()
        partitions = _all(pool, take)
        seconds = time.monotonic() - started
    used = time.process_time() - used
    whole = all(
        partitions[partition].store.get(key) is not None
        for partition, of_partition in keys.items()
        for key in of_partition
    )
    for each in partitions:
        each.store.close()
    return seconds, used, whole


def _all(pool: ThreadPoolExecutor, take: Callable[[int], TakenPartition]) -> list[TakenPartition]:
    return list(pool.map(take, range(PARTITIONS)))
