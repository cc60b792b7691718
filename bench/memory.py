"""What memory one slot takes with many partitions and open views: `python -m bench.memory [--views N] [--backlog N]`.

Fills the changelog with open views, as a slot would have left them; a slot with default limits and an empty disk restores
them all and then, started again, works off a backlog of one beacon of each of some: by then its caches are full. Checked
before anything is told: every view is open and every beacon folded. Resident memory is the kernel's figure (VmRSS, and
VmHWM for the highest).
"""

import argparse
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child, wait_until
from services.processor.applications.video_views import app as video_views
from services.processor.applications.video_views.finish import FinishRules
from services.processor.applications.video_views.gauges import OPEN_VIEWS
from services.processor.engine.core import Core
from services.processor.engine.local import MemoryStore
from services.processor.engine.record import Record
from services.processor.engine.rows import META_KEY, Meta, encode_meta
from services.processor.runtime.clients import partition_producer
from shared import codec, topics
from shared.partitioning import partition_of, view_key
from shared.schemas.beacon import Beacon
from shared.settings import Settings

DAY_MS: Final = 24 * 3_600_000
#: Beacons of each view that were folded before the slot starts.
FOLDED: Final = 3
ROWS_A_COMMIT: Final = 2_500
PHASE_SECONDS_MAX: Final = 3_600.0
PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES["production"])
GOAL_MIB: Final = 2_048
_ID: Final = f"{0:032x}"
#: Views stay open whatever this machine takes; everything else is as it is by default.
_OPEN: Final = {f"VIDEO_VIEWS_{name}_MS": str(DAY_MS) for name in ("FINISH_SILENT", "FINISH_PAUSED", "LIVE_SILENCE")}
#: What a player says of a view when it starts, as many fields as Mux's own sends.
_METADATA: Final[dict[str, object]] = {
    "video_id": "film-20871",
    "video_title": "A film with a title of a common length",
    "video_series": "Season of films",
    "video_stream_type": "on-demand",
    "video_duration": 5_400_000,
    "video_encoding_variant": "hevc-1080p",
    "video_cdn": "cdn-one",
    "video_source_url": "https://media.example/films/20871/master.m3u8",
    "video_source_hostname": "media.example",
    "player_name": "Main player",
    "player_version": "4.11.2",
    "player_software_name": "hls.js",
    "player_software_version": "1.6.2",
    "page_url": "https://www.example/watch/20871",
    "page_type": "watchpage",
    "viewer_user_id": "user-1234567",
    "experiment_name": "control",
    "view_start": 1_790_000_000_000,
}


def main() -> int:
    """Runs the phases; prints a table. 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--views", type=int, default=1_000_000)
    parser.add_argument("--backlog", type=int, default=200_000, help="beacons that wait, of as many views")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory") as folder, Broker(Path(folder) / "broker") as broker:
        _create(broker)
        slot = Slot(broker, Path(folder))
        print(f"{told.views:,} open views on {PARTITIONS} partitions, one slot; resident memory, MiB")
        print(f"{'':<34}{'now':>8}{'highest':>9}{'seconds':>9}")
        try:
            return _run(broker, slot, told.views, min(told.backlog, told.views))
        finally:
            slot.child.kill()


def _run(broker: Broker, slot: "Slot", views: int, backlog: int) -> int:
    _fill(broker, views)
    slot.child.start()
    began = time.monotonic()
    _wait(lambda: slot.is_ready() and slot.open_views() == views, slot, "everything is restored")
    restored = slot.tell("restored from the changelog", began)
    slot.child.kill()
    _produce(broker, backlog)
    slot.child.start()
    began = time.monotonic()
    _wait(lambda: _folded(broker) == backlog and slot.open_views() == views, slot, "everything is folded")
    folded = slot.tell(f"a backlog of {backlog:,} worked off", began)
    print(f"highest of all: {max(restored, folded):,} MiB; the goal is below {GOAL_MIB:,}")
    return 0 if max(restored, folded) < GOAL_MIB else 1


class Slot:
    """The slot's process, seen from outside."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._port = free_port()
        self._state = folder / "state"
        environ = {
            **os.environ,
            **_OPEN,
            "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
            "PLAYHEAD_TOPICS_PROFILE": "production",
            "PROCESSOR_STATE_DIR": str(self._state),
            "PROCESSOR_ADMIN_HOST": "127.0.0.1",
            "PROCESSOR_ADMIN_PORT": str(self._port),
        }
        argv = [sys.executable, "-m", "services.processor"]
        self.child = Child("slot", argv, log_file=folder / "slot.log", env=environ)

    def _get(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def is_ready(self) -> bool:
        """Whether it works every partition."""
        return self._get("/readyz") is not None

    def _sum(self, name: str) -> float:
        lines = (self._get("/metrics") or "").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def open_views(self) -> int:
        """Views that have begun and not finished, as it says."""
        return int(self._sum('playhead_processor_tally{name="open_views"'))

    def tell(self, phase: str, began: float) -> int:
        """Prints a line; the highest resident memory since its start, MiB."""
        now, highest = _status(self.child.pid or 0, "VmRSS"), _status(self.child.pid or 0, "VmHWM")
        print(f"{phase:<34}{now:>8,}{highest:>9,}{time.monotonic() - began:>9.0f}", flush=True)
        return highest


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) // 1024


def _wait(condition: Callable[[], bool], slot: Slot, what: str) -> None:
    def holds() -> bool:
        if not slot.child.is_running:
            raise RuntimeError(f"the slot ended: {slot.child.log_file.read_text()[-2000:]}")
        return condition()

    wait_until(holds, PHASE_SECONDS_MAX, what, every=0.5)


def _folded(broker: Broker) -> int:
    """Beacons that the group has folded, by its committed offsets: the slot's own counter misses what a lost commit held."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "video_views", "enable.auto.commit": False})
    try:
        at = [TopicPartition(topics.BEACONS.name, partition) for partition in range(PARTITIONS)]
        return sum(max(0, one.offset) for one in consumer.committed(at, timeout=60))
    finally:
        consumer.close()


def _create(broker: Broker) -> None:
    """The topics as they are in production, but for the copies: there is one broker."""
    profile = topics.PROFILES["production"]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = [
        NewTopic(
            topic.name,
            num_partitions=topic.partitions(profile),
            replication_factor=1,
            config=topic.config(profile) | {"min.insync.replicas": "1"},
        )
        for topic in topics.ALL
    ]
    for made in admin.create_topics(wanted, operation_timeout=60).values():
        made.result()


def _fill(broker: Broker, views: int) -> None:
    """Commits the rows of open views to the changelog, of each a number of beacons folded."""
    application = video_views.application(FinishRules(**dict.fromkeys(("silent_ms", "paused_ms"), DAY_MS)))
    core = Core(application, 0, MemoryStore())
    now_ms = time.time_ns() // 1_000_000
    key = view_key("acme", _ID)
    for seq in range(1, FOLDED + 1):
        core.fold([Record(topics.BEACONS.name, 0, seq - 1, now_ms, key, _beacon(seq))])
    rows = {row_key: row for row_key, row in core.cut().changes.items() if row is not None and row_key.endswith(key)}
    settings = Settings(kafka_bootstrap=broker.bootstrap)
    for partition, numbers in _by_partition(views).items():
        producer = partition_producer(settings, application, partition)
        producer.init_transactions(60)
        meta = Meta(
            {},
            now_ms,
            1,
            rows={row_key[0]: len(numbers) for row_key in rows},
            tallies={OPEN_VIEWS: len(numbers)},
        )
        producer.begin_transaction()
        for at, number in enumerate(numbers):
            view_id = f"{number:032x}".encode()
            for row_key, row in rows.items():
                _send(producer, application.changelog.name, row, row_key.replace(_ID.encode(), view_id), partition)
            if at % ROWS_A_COMMIT == ROWS_A_COMMIT - 1:
                producer.commit_transaction(60)
                producer.begin_transaction()
        _send(producer, application.changelog.name, encode_meta(meta), META_KEY, partition)
        producer.commit_transaction(60)


def _by_partition(views: int) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    for number in range(views):
        numbers[partition_of.__wrapped__(view_key("acme", f"{number:032x}"), PARTITIONS)].append(number)
    return numbers


def _produce(broker: Broker, views: int) -> None:
    """The next beacon of each view."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, "compression.codec": "lz4"})
    template = _beacon(FOLDED + 1)
    for number in range(views):
        view_id = f"{number:032x}"
        key = view_key("acme", view_id)
        value = template.replace(_ID.encode(), view_id.encode())
        _send(producer, topics.BEACONS.name, value, key, partition_of.__wrapped__(key, PARTITIONS))
    if producer.flush(300):
        raise RuntimeError("the broker does not take the beacons")


def _send(producer: Producer, topic: str, value: bytes, key: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def _beacon(seq: int) -> bytes:
    event = {1: "viewstart", 2: "playing"}.get(seq, "heartbeat")
    at_ms = 1_790_000_000_000 + 1_000 * seq
    attrs: dict[str, object] = {"view_watch_time": 1_000 * seq, "view_playing_time_ms_cumulative": 900 * seq}
    return codec.BEACON.encode(
        Beacon(
            schema_version=1,
            source="mux",
            customer_id="acme",
            view_id=_ID,
            event=event,
            source_event=event,
            recv_time_ms=at_ms,
            client_time_ms=at_ms,
            clock_offset_ms=0,
            seq=seq,
            attrs=_METADATA | attrs if seq == 1 else attrs,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
