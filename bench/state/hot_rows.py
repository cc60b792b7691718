"""Hot rows of many finished views: `python -m bench.state.hot_rows [--rate R] [--seconds S]`.

A steady rate of finished views is committed to topic `views` in transactions of 100 ms; one process of `serving` lands them, with
broker and Postgres on the same machine. A view can be seen when the position behind its record is committed in Postgres, because
its row and the sums are in the same transaction. Checked before any figure: rows, sums and watch time are those of what was sent.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
from confluent_kafka import Producer

from bench.collector.client import cpu_seconds
from bench.finalizer.inputs import A_VIEW
from bench.report.results import Compared, Part, keep, table
from deploy.demo.comparing.compare import nearest_rank
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child, wait_until
from deploy.topics import create_topics
from services.finalizer.serving.database import Serving
from shared.codec import VIEW
from shared.partitioning import partition_of, view_key
from shared.settings import Settings
from shared.topics import PROFILES, VIEWS

PARTITIONS: Final = VIEWS.partitions(PROFILES["laptop"])
CUSTOMERS: Final = 20
COMMIT_SECONDS: Final = 0.1
#: Goal of the slowest hundredth.
P99_SECONDS: Final = 2.0
WAIT_SECONDS_MAX: Final = 300.0
#: Not measured: the first transactions meet empty caches.
WARM_SECONDS: Final = 3.0


class Looking:
    """Notes when each position was first seen in Postgres."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        #: partition → (next offset, when it was seen)
        self.seen: dict[int, list[tuple[int, float]]] = {partition: [] for partition in range(PARTITIONS)}

    def __enter__(self) -> "Looking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._stop.wait(0.02):
                found = connection.execute("SELECT partition, next_offset FROM serving.positions").fetchall()
                now = time.monotonic()
                for partition, offset in found:
                    seen = self.seen[partition]
                    if not seen or seen[-1][0] != offset:
                        seen.append((offset, now))

    def is_past(self, sent: dict[int, dict[int, float]]) -> bool:
        """Whether everything sent is in Postgres."""
        return all(not ones or (self.seen[at] and self.seen[at][-1][0] > max(ones)) for at, ones in sent.items())

    def waits(self, sent: dict[int, dict[int, float]], since: float) -> list[int]:
        """How long each record that was sent from `since` on took until it could be seen, ms."""
        found = []
        for partition, ones in sent.items():
            seen = iter(self.seen[partition])
            position, at = next(seen)
            for offset, sent_at in sorted(ones.items()):
                while position <= offset:
                    position, at = next(seen)
                if sent_at >= since:
                    found.append(round(1_000 * (at - sent_at)))
        return found


def main() -> int:
    """1 when a view is missing, doubled or wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.hot_rows", description=__doc__)
    parser.add_argument("--rate", type=int, default=2_000, help="finished views a second")
    parser.add_argument("--seconds", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hot-rows") as name, _stores(Path(name)) as (bootstrap, dsn):
        service = _service(Path(name), bootstrap, dsn)
        service.start()
        try:
            return _run(service, bootstrap, dsn, given)
        finally:
            service.kill()


@contextmanager
def _stores(folder: Path) -> Iterator[tuple[str, str]]:
    postgres = Postgres(folder / "postgres")
    with Broker(folder / "broker") as broker:
        postgres.start()
        try:
            create_topics(Settings(kafka_bootstrap=broker.bootstrap, topics_profile="laptop"))
            with closing(Serving(postgres.dsn, away_seconds_max=60, stop=threading.Event())) as serving:
                serving.open()
                serving.keep_views(0)
            yield broker.bootstrap, postgres.dsn
        finally:
            postgres.stop()
            postgres.remove()


def _service(folder: Path, bootstrap: str, dsn: str) -> Child:
    environ = {
        **os.environ,
        "PLAYHEAD_KAFKA_BOOTSTRAP": bootstrap,
        "PLAYHEAD_TOPICS_PROFILE": "laptop",
        "SERVING_POSTGRES_DSN": dsn,
        "SERVING_ADMIN_HOST": "127.0.0.1",
        "SERVING_ADMIN_PORT": str(free_port()),
    }
    return Child("serving", [sys.executable, "-m", "services.serving"], log_file=folder / "serving.log", env=environ)


def _run(service: Child, bootstrap: str, dsn: str, given: argparse.Namespace) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection, Looking(dsn) as looking:
        is_whole = "SELECT is_whole FROM serving.coverage"
        wait_until(lambda: connection.execute(is_whole).fetchone() == (True,), WAIT_SECONDS_MAX, "the service reads")
        cpu_before, began = cpu_seconds(service), time.monotonic()
        sent, watch_ms = _send(bootstrap, given.rate, given.seconds)
        seconds = time.monotonic() - began
        wait_until(lambda: looking.is_past(sent), WAIT_SECONDS_MAX, "all views are in Postgres")
        cpu = cpu_seconds(service) - cpu_before
        count = sum(map(len, sent.values()))
        rows = connection.execute("SELECT count(*)::bigint, sum(watch_ms)::bigint FROM serving.views").fetchone()
        sums = connection.execute(
            "SELECT sum(views)::bigint, sum(watch_ms)::bigint FROM serving.sums WHERE grain = 'hour'"
        ).fetchone()
    if not rows == sums == (count, watch_ms):
        print(f"sent {(count, watch_ms)}, rows {rows}, sums {sums}", file=sys.stderr)
        return 1
    result = _part(looking.waits(sent, began + WARM_SECONDS), count / seconds, count / cpu, given)
    keep(result)
    print("\n".join([f"checked: {result.checked}", *table([result])]))
    return 0


def _send(bootstrap: str, rate: int, seconds: int) -> tuple[dict[int, dict[int, float]], int]:
    """Sends views; partition → offset → when each was sent (monotonic), and their watch time."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "hot-rows", "linger.ms": 5, "compression.type": "lz4"}
    )
    producer.init_transactions(60)
    sent: dict[int, dict[int, float]] = {partition: {} for partition in range(PARTITIONS)}

    def noted(at: float) -> Callable[[Any, Any], None]:
        def note(error: Any, message: Any) -> None:
            assert error is None, error
            sent[message.partition()][message.offset()] = at

        return note

    count, watch_ms = 0, 0
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        producer.begin_transaction()
        for number in range(count, round(passed * rate)):
            producer.poll(0)
            key, value = _record(number)
            watch_ms += number % 600_000
            at = time.monotonic()
            producer.produce(VIEWS.name, value, key, partition_of(key, PARTITIONS), on_delivery=noted(at))
            count += 1
        producer.commit_transaction(60)
        time.sleep(max(0.0, began + passed + COMMIT_SECONDS - time.monotonic()))
    return sent, watch_ms


def _record(number: int) -> tuple[bytes, bytes]:
    now_ms = time.time_ns() // 1_000_000
    times = dict.fromkeys(("first_append_ms", "last_append_ms", "view_start_ms", "view_end_ms"), now_ms)
    measures = dict.fromkeys(("watch_ms", "playing_ms", "bitrate_integral", "bitrate_time_ms"), number % 600_000)
    view = msgspec.structs.replace(
        A_VIEW,
        customer_id=f"customer_{number % CUSTOMERS}",
        view_id=f"{number:032x}",
        revision=1,
        day=now_ms // 86_400_000,
        viewer_id=f"viewer-{number}",
        cdn=("fast", "near", "own")[number % 3],
        startup_ms=number % 5_000,
        **times,
        **measures,
    )
    return view_key(view.customer_id, view.view_id), VIEW.encode(view)


def _part(waits_ms: list[int], rate: float, per_cpu_second: float, given: argparse.Namespace) -> Part:
    p50, p99 = ((nearest_rank(waits_ms, rank) or 0) / 1_000 for rank in (0.5, 0.99))
    return Part(
        name="hot-rows",
        title="Hot rows: from topic `views` to the page's tables",
        command="python -m bench.state.hot_rows",
        checked="rows, views and watch time of the sums are those of what was sent: missing, doubled or wrong 0",
        compared=[
            Compared(
                f"{given.rate:,} finished views/s to their hot rows and sums, p50 / p99",
                f"{p50:.2f} s / {p99:.2f} s",
                f"p99 ≤ {P99_SECONDS:g} s",
                p99 <= P99_SECONDS and rate >= 0.95 * given.rate,
            ),
            Compared("finished views landed a CPU-second of `serving`", f"{per_cpu_second:,.0f}"),
        ],
        lines=[
            (
                f"One process of `serving`, {PARTITIONS} partitions, {rate:,.0f} views/s sent for {given.seconds} s in"
                f" transactions of {COMMIT_SECONDS * 1_000:g} ms, from the call that sends a view. Broker, Postgres and the"
                " sender are on the same two cores."
            )
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
