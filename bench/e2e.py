"""From a beacon's answer to what people see: `python -m bench.e2e [--views N] [--seconds S] [--probes N]`.

The whole system as `make demo` starts it, under a steady load of simulated players. Meanwhile a probe a second, each a customer
of its own with one view: how long from the 200 of its first beacon until the live picture (topic `live`) counts its viewer,
and from the 200 of its `viewend` until its row is in Postgres, less the grace that follows a player's goodbye. Checked before
anything is told: every probe was counted, and its one row says what was played.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka import Consumer

from bench.results import Compared, Part, keep, table
from deploy.local.broker import Broker
from deploy.local.compare import nearest_rank
from deploy.local.demo_services import FINISH_MS, TRIGGER_SECONDS, DemoServices, Players
from deploy.local.paths import ROOT
from deploy.local.postgres import Postgres
from deploy.local.process import DeadlinePassed, wait_until
from deploy.local.supervisor import Supervisor
from deploy.topics import create_topics
from services.dashboard.live_feed import consumer_config
from shared import codec
from shared.schemas.live import BUCKET_MS
from shared.settings import Settings
from shared.topics import LIVE, VIEWS

#: A probe plays so long, so that a live bucket ends while it does.
PLAYED_SECONDS: Final = 8.0
SETTLE_SECONDS_MAX: Final = 60.0
_READY_SECONDS: Final = 20.0


@dataclass
class Probe:
    """One view of one customer; times in s since 1970 by this machine's clock."""

    customer: str
    started_at: float = 0.0
    ended_at: float = 0.0
    live_at: float | None = None
    row_at: float | None = None
    served_at: float | None = None


class Watching:
    """Looks, on a thread each, at topics and at Postgres for what the probes have become."""

    def __init__(self, bootstrap: str, dsn: str, probes: list[Probe]) -> None:
        self._by_customer = {probe.customer: probe for probe in probes}
        self._dsn = dsn
        self._stop = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **consumer_config(), "group.id": "bench-e2e"})
        self._consumer.subscribe([LIVE.name, VIEWS.name])
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._topics, self._postgres)]
        #: What was wrong, in words.
        self.wrong: list[str] = []

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._consumer.close()

    def _topics(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(500, 0.05):
                if message.error() is None:
                    self._take(message.topic() or "", message.value() or b"", time.time())

    def _take(self, topic: str, value: bytes, now: float) -> None:
        if topic == LIVE.name:
            live = codec.LIVE.decode(value)
            probe = self._by_customer.get(live.customer_id)
            if probe is not None and live.viewers_now and probe.live_at is None:
                probe.live_at = now
            return
        row = codec.VIEW.decode(value)
        probe = self._by_customer.get(row.customer_id)
        if probe is not None:
            if probe.row_at is not None or row.beacon_count != 3:
                self.wrong.append(f"{row.customer_id}: revision {row.revision} with {row.beacon_count} beacons")
            probe.row_at = now

    def _postgres(self) -> None:
        query = "SELECT customer_id FROM serving.views WHERE customer_id LIKE 'probe-%' AND NOT deleted"
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._stop.wait(0.1):
                now = time.time()
                for (customer,) in connection.execute(query).fetchall():
                    probe = self._by_customer[customer]
                    probe.served_at = probe.served_at or now


def _post(url: str, probe: Probe, seq: int, event: str) -> float:
    """Posts one beacon in the native format; when it was answered (s since 1970)."""
    now_ms = time.time_ns() // 1_000_000
    beacon = {"view_id": "one", "event": event, "time_ms": now_ms, "seq": seq, "playhead_ms": 0}
    body = json.dumps({"sent_time_ms": now_ms, "beacons": [beacon]}).encode()
    address = f"{url}/v1/beacons?key={probe.customer}"
    asked = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310 - our own address
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
        assert json.load(answer)["beacons"] == [{"status": "stored"}]
    return time.time()


def _play(url: str, probe: Probe) -> None:
    probe.started_at = _post(url, probe, 1, "viewstart")
    _post(url, probe, 2, "playing")
    time.sleep(PLAYED_SECONDS)
    probe.ended_at = _post(url, probe, 3, "viewend")


def _probe(services: DemoServices, probes: list[Probe]) -> None:
    threads = []
    for probe in probes:
        threads.append(threading.Thread(target=_play, args=(services.collector_url, probe)))
        threads[-1].start()
        time.sleep(1.0)
    for thread in threads:
        thread.join()


def _run(folder: Path, given: argparse.Namespace) -> int:
    broker, postgres = Broker(folder / "broker"), Postgres(folder / "postgres")
    supervisor = Supervisor(folder, cwd=ROOT)
    probes = [Probe(f"probe-{number}") for number in range(given.probes)]
    try:
        broker.launch()
        supervisor.adopt(broker.child, broker.stop)
        postgres.start()
        assert postgres.child is not None
        supervisor.adopt(postgres.child, postgres.stop)
        broker.wait_ready()
        create_topics(Settings(kafka_bootstrap=broker.bootstrap, topics_profile="laptop"))
        services = DemoServices(folder, bootstrap=broker.bootstrap, postgres_dsn=postgres.dsn)
        all_services = [*services.processors(), *services.collectors(), services.finalizer()]
        for service in all_services:
            supervisor.start(service)
        supervisor.wait_ready(*(service.name for service in all_services))
        supervisor.start(Players(given.views, given.seconds, 7).service(services.collector_url, services.truth))
        watching = Watching(broker.bootstrap, postgres.dsn, probes)
        watching.start()
        time.sleep(_READY_SECONDS)
        try:
            _probe(services, probes)
            wait_until(
                lambda: all(each.live_at and each.row_at and each.served_at for each in probes),
                SETTLE_SECONDS_MAX,
                "every probe is counted, told and served",
            )
        except DeadlinePassed:
            watching.wrong += [f"never counted, told or served: {probe}" for probe in probes]
        finally:
            watching.stop()
        supervisor.check()
    finally:
        supervisor.stop()
        postgres.remove()
    if watching.wrong:
        print("\n".join(watching.wrong))
        return 1
    result = _part(probes, given)
    keep(result)
    print("\n".join(table([result])))
    return 0


def _part(probes: list[Probe], given: argparse.Namespace) -> Part:
    grace = FINISH_MS["finish_clean_ms"] / 1_000
    live = [(each.live_at or 0) - each.started_at for each in probes]
    rows = [(each.row_at or 0) - each.ended_at - grace for each in probes]
    served = [(each.served_at or 0) - each.ended_at - grace for each in probes]

    def told(what: str, seconds: list[float]) -> Compared:
        ms = [round(one * 1_000) for one in seconds]
        p50, p99 = nearest_rank(ms, 0.5) or 0, nearest_rank(ms, 0.99) or 0
        return Compared(f"{what}, p50 / p99", f"{p50 / 1_000:.2f} s / {p99 / 1_000:.2f} s")

    return Part(
        name="e2e",
        title="End to end: from a beacon's answer to what people see",
        command="python -m bench.e2e",
        checked=f"{len(probes)} probes: each counted live, each one row with all its beacons",
        compared=[
            told("beacon acked to viewer in topic live", live),
            told(f"viewend acked to row in topic views, less {grace:g} s of grace", rows),
            told(f"viewend acked to row in Postgres, less {grace:g} s of grace", served),
        ],
        lines=[
            (
                f"The demo's processes on two cores, {given.views} simulated views within {given.seconds} s beside the probes. The"
                f" live picture is told every {BUCKET_MS / 1_000:g} s, the finalizer takes a batch every {TRIGGER_SECONDS} s."
            )
        ],
    )


def main() -> int:
    """1 when a probe was counted wrongly."""
    parser = argparse.ArgumentParser(prog="python -m bench.e2e", description=__doc__)
    parser.add_argument("--views", type=int, default=600, help="of the simulated players")
    parser.add_argument("--seconds", type=int, default=120, help="that they play")
    parser.add_argument("--probes", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-e2e-") as folder:
        return _run(Path(folder), given)


if __name__ == "__main__":
    sys.exit(main())
