"""Open views as a slot would have left them in the changelog, a slot's process on them, and a backlog of beacons."""

import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child, wait_until
from services.processor.applications.video_views import app as video_views
from services.processor.applications.video_views.live.gauges import OPEN_VIEWS
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from services.processor.engine.state.meta import META_KEY, Meta, encode_meta
from services.processor.runtime.kafka.clients import partition_producer
from shared import codec, topics
from shared.partitioning import partition_of, view_key
from shared.schemas.beacon import Beacon
from shared.settings import Settings
from shared.topics import PROFILES, ProfileName

DAY_MS: Final = 24 * 3_600_000
#: Beacons of each view that were folded before the slot starts.
FOLDED: Final = 3
ROWS_A_COMMIT: Final = 2_500
PHASE_SECONDS_MAX: Final = 3_600.0
_ID: Final = f"{0:032x}"
#: Views stay open for any duration of the run; all other settings are defaults.
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


class Slot:
    """The slot's process, seen from outside."""

    def __init__(
        self, broker: Broker, folder: Path, profile: ProfileName, environ: Mapping[str, str] | None = None
    ) -> None:
        self._port = free_port()
        self._state = folder / "state"
        whole = {
            **os.environ,
            **_OPEN,
            "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
            "PLAYHEAD_TOPICS_PROFILE": profile,
            "PROCESSOR_STATE_DIR": str(self._state),
            "PROCESSOR_ADMIN_HOST": "127.0.0.1",
            "PROCESSOR_ADMIN_PORT": str(self._port),
            **(environ or {}),
        }
        argv = [sys.executable, "-m", "services.processor"]
        self.child = Child("slot", argv, log_file=folder / "slot.log", env=whole)

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

    def lag(self) -> int:
        """Beacons that it has not folded, as it says."""
        return int(self._sum("playhead_processor_lag_records"))

    def disk_bytes(self) -> int:
        """What its stores take on disk."""
        return sum(file.stat().st_size for file in self._state.rglob("*") if file.is_file())

    def cpu_seconds(self) -> float:
        """User and system time that it has used since its start."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def print_phase(self, phase: str, began: float) -> int:
        """Prints a line; the highest resident memory since its start, MiB."""
        now, highest = status(self.child.pid or 0, "VmRSS"), status(self.child.pid or 0, "VmHWM")
        print(f"{phase:<34}{now:>8,}{highest:>9,}{time.monotonic() - began:>9.0f}", flush=True)
        return highest


def status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) // 1024


def wait(condition: Callable[[], bool], slot: Slot, what: str) -> None:
    def holds() -> bool:
        if not slot.child.is_running:
            raise RuntimeError(f"the slot ended: {slot.child.log_file.read_text()[-2000:]}")
        return condition()

    wait_until(holds, PHASE_SECONDS_MAX, what, every=0.5)


def folded(broker: Broker, partitions: int) -> int:
    """Beacons that the group has folded, by its committed offsets: the slot's own counter misses what a lost commit held."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "video_views", "enable.auto.commit": False})
    try:
        at = [TopicPartition(topics.BEACONS.name, partition) for partition in range(partitions)]
        return sum(max(0, one.offset) for one in consumer.committed(at, timeout=60))
    finally:
        consumer.close()


def create(broker: Broker, name: ProfileName) -> None:
    """The topics as the profile has them, but for the copies: there is one broker."""
    profile = PROFILES[name]
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


def fill(broker: Broker, views: int, partitions: int) -> int:
    """Commits the rows of open views to the changelog, of each a number of beacons folded; returns the bytes of a view's rows."""
    application = video_views.application(
        FinishRules(**dict.fromkeys(("silent_ms", "paused_ms", "live_silence_ms"), DAY_MS))
    )
    core = Core(application, 0, MemoryStore())
    now_ms = time.time_ns() // 1_000_000
    key = view_key("acme", _ID)
    for seq in range(1, FOLDED + 1):
        core.fold([Record(topics.BEACONS.name, 0, seq - 1, now_ms, key, beacon(_ID, seq))])
    rows = {row_key: row for row_key, row in core.cut().changes.items() if row is not None and row_key.endswith(key)}
    settings = Settings(kafka_bootstrap=broker.bootstrap)
    for partition, numbers in _by_partition(views, partitions).items():
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
    return sum(len(row_key) + len(row) for row_key, row in rows.items())


def _key(number: int) -> bytes:
    return view_key("acme", f"{number:032x}")


def _by_partition(views: int, partitions: int) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
    for number in range(views):
        numbers[partition_of.__wrapped__(_key(number), partitions)].append(number)
    return numbers


def produce(
    broker: Broker, views: int, partitions: int, *, beacons: int | None = None, rate: int | None = None
) -> None:
    """Beacons of the views in turn, each the next one of its view: one of each, or so many in all; `rate` a second at most."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, "compression.codec": "lz4"})
    at = [partition_of.__wrapped__(_key(number), partitions) for number in range(views)]
    ids = [f"{number:032x}".encode() for number in range(views)]
    wanted = views if beacons is None else beacons
    began = time.monotonic()
    for begin in range(0, wanted, views):
        template = beacon(_ID, FOLDED + 1 + begin // views)
        for number in range(min(views, wanted - begin)):
            value = template.replace(_ID.encode(), ids[number])
            _send(producer, topics.BEACONS.name, value, _key(number), at[number])
            if rate is not None and number % 100 == 0:
                time.sleep(max(0.0, began + (begin + number) / rate - time.monotonic()))
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


def beacon(view_id: str, seq: int) -> bytes:
    """A view's beacon of this number, from 1 on, as topic `beacons` has it; they are a second apart."""
    event = {1: "viewstart", 2: "playing"}.get(seq, "heartbeat")
    at_ms = 1_790_000_000_000 + 1_000 * seq
    attrs: dict[str, object] = {"view_watch_time": 1_000 * seq, "view_playing_time_ms_cumulative": 900 * seq}
    return codec.BEACON.encode(
        Beacon(
            schema_version=1,
            source="mux",
            customer_id="acme",
            view_id=view_id,
            event=event,
            source_event=event,
            recv_time_ms=at_ms,
            client_time_ms=at_ms,
            sent_time_ms=at_ms,
            clock_offset_ms=0,
            seq=seq,
            attrs=_METADATA | attrs if seq == 1 else attrs,
        )
    )
