"""The time from a beacon's answer until users see its effect: `python -m bench.e2e [--views-per-second N] [--probes N]`.

The whole system as `make demo` starts it, warmed up until the finalizer has published (Spark needs a minute or more for its first
batch), then under a steady load of simulated players. Meanwhile a probe a second, each a customer of its own with one view: how
long from the 200 of its first beacon until topic `live` counts its viewer, and from the 200 of its `viewend` until the API counts
it by customer, minus the grace period of a closed view. Pages ask for that once a second. Checked before any figure: every probe
was counted once, and its one row is right. Otherwise the exit code is 1, and no result file is written.
"""

import argparse
import json
import math
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import psycopg
from confluent_kafka import Consumer

from bench.report.results import Compared, Part, keep, table
from deploy.demo import accounts, customers
from deploy.demo.comparing.compare import nearest_rank
from deploy.demo.services import DemoServices
from deploy.demo.shortened import FINISH_MS, TRIGGER_SECONDS
from deploy.demo.viewers import places
from deploy.demo.viewers.crowd import Players
from deploy.local.broker import Broker
from deploy.local.paths import ROOT
from deploy.local.postgres import Postgres
from deploy.local.process import DeadlinePassed, ProcessDied, wait_until
from deploy.local.supervisor import Supervisor
from deploy.topics import create_topics
from services.dashboard.live.kafka_reader import consumer_config
from shared import codec
from shared.schemas.live import BUCKET_MS
from shared.settings import Settings
from shared.topics import LIVE, VIEWS

#: A probe plays so long, so that a live bucket ends while it does.
PLAYED_SECONDS: Final = 8.0
#: Deadlines, for a machine that is several times slower than expected.
SETTLE_SECONDS_MAX: Final = 300.0
WARM_SECONDS_MAX: Final = 600.0
#: Views before the probes, one after another: the first meets Spark's first batch.
WARM_UPS: Final = 2
#: Players come evenly over their run, and a view lasts 8 to 45 s: after so long as many come as go.
RAMP_SECONDS: Final = 25.0
#: Open pages, which ask at moments evenly apart. Each probe is looked for by one of them.
PAGES: Final = 5
PAGE_ASKS_EVERY_SECONDS: Final = 1.0
CUSTOMERS_MAX: Final = 1_000
#: From a player's last beacon to the page, less the grace: p50 and p99.
GOAL_SECONDS: Final = (1.0, 3.0)


@dataclass
class Probe:
    """One view of one customer; times in s since 1970 by this machine's clock."""

    customer: str
    started_at: float = 0.0
    ended_at: float = 0.0
    live_at: float | None = None
    row_at: float | None = None
    served_at: float | None = None
    shown_at: float | None = None

    @property
    def is_seen(self) -> bool:
        """Whether it was counted, its row written, and the row served and on the page."""
        return None not in (self.live_at, self.row_at, self.served_at, self.shown_at)


class Watching:
    """Looks, on a thread each, at topics, at Postgres and at the API's figures for what the probes have become."""

    def __init__(self, bootstrap: str, dsn: str, page_url: str, probes: list[Probe]) -> None:
        self._probes = probes
        self._page_url = page_url
        self._token = accounts.token(dsn)
        self._by_customer = {probe.customer: probe for probe in probes}
        self._dsn = dsn
        self._stop = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **consumer_config(), "group.id": "bench-e2e"})
        self._consumer.subscribe([LIVE.name, VIEWS.name])
        looks = (self._topics, self._postgres, *(partial(self._page, number) for number in range(PAGES)))
        self._threads = [threading.Thread(target=self._guarded, args=(look,), daemon=True) for look in looks]
        #: What was wrong, in words.
        self.wrong: list[str] = []
        #: How often the API said that it has no answer now, by why.
        self.away: Counter[str] = Counter()

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

    def wait_seen(self, probe: Probe, seconds_max: float) -> None:
        """Waits until the probe is counted, its row written and served, or something was wrong. Raises `DeadlinePassed`."""
        wait_until(lambda: probe.is_seen or bool(self.wrong), seconds_max, f"{probe} is counted, in a row and served")

    def _guarded(self, look: Callable[[], None]) -> None:
        try:
            look()
        except Exception as error:  # noqa: BLE001 - a thread's top
            self.wrong.append(f"looking ended: {type(error).__name__}: {error}")

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

    def _page(self, number: int) -> None:
        mine = {probe.customer: probe for probe in self._probes[number::PAGES]}
        self._stop.wait(number * PAGE_ASKS_EVERY_SECONDS / PAGES)
        asks_at = time.monotonic()
        while not self._stop.is_set():
            asked = urllib.request.Request(f"{self._page_url}v1/breakdown?by=customer&limit={CUSTOMERS_MAX}")  # noqa: S310 - http
            asked.add_header("Authorization", f"Bearer {self._token}")
            try:
                with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
                    groups = json.load(answer)["groups"]
            except urllib.error.HTTPError as error:
                with error:
                    groups = self._without(error)
            now = time.time()
            for one in groups:
                if (probe := mine.get(one["key"][0] or "")) is not None:
                    probe.shown_at = probe.shown_at or now
                    if one["n"] != 1:
                        self.wrong.append(f"the API counts {one['n']} views of {probe.customer}")
            asks_at = max(asks_at + PAGE_ASKS_EVERY_SECONDS, time.monotonic())
            self._stop.wait(asks_at - time.monotonic())

    def _without(self, error: urllib.error.HTTPError) -> list[dict[str, Any]]:
        """A page that gets a 503 keeps what it has and asks again: nothing is shown meanwhile. Raises any other refusal."""
        problem = json.load(error)
        if error.code != HTTPStatus.SERVICE_UNAVAILABLE or str(problem["type"]).endswith("query-away"):
            raise RuntimeError(f"{error.code}: {problem}")
        self.away[str(problem["title"])] += 1
        return []


def _post(url: str, probe: Probe, seq: int, event: str) -> float:
    """Posts one beacon in the native format; when it was answered (s since 1970)."""
    now_ms = time.time_ns() // 1_000_000
    beacon = {"view_id": "one", "event": event, "time_ms": now_ms, "seq": seq, "playhead_ms": 0}
    body = json.dumps({"sent_time_ms": now_ms, "beacons": [beacon]}).encode()
    address = f"{url}/v1/beacons?key={probe.customer}"
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310 - our own address
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        assert json.load(answer)["beacons"] == [{"status": "stored"}]
    return time.time()


def _play(url: str, probe: Probe) -> None:
    probe.started_at = _post(url, probe, 1, "viewstart")
    _post(url, probe, 2, "playing")
    time.sleep(PLAYED_SECONDS)
    probe.ended_at = _post(url, probe, 3, "viewend")


def _probe(url: str, probes: list[Probe]) -> None:
    threads = []
    for probe in probes:
        threads.append(threading.Thread(target=_play, args=(url, probe)))
        threads[-1].start()
        time.sleep(1.0)
    for thread in threads:
        thread.join()


def _run(folder: Path, given: argparse.Namespace) -> int:
    broker, postgres = Broker(folder / "broker"), Postgres(folder / "postgres")
    supervisor = Supervisor(folder, cwd=ROOT)
    probes = [Probe(f"probe-{number}") for number in range(given.probes)]
    try:
        services = _start(folder, broker, postgres, supervisor)
        wrong = _measure(services, supervisor, (broker.bootstrap, postgres.dsn), probes, given)
        supervisor.check()
    except (DeadlinePassed, ProcessDied) as problem:
        wrong = [str(problem)]
    finally:
        supervisor.stop()
        postgres.remove()
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    result = _part(probes, given)
    keep(result)
    print("\n".join([f"checked: {result.checked}", *table([result])]))
    return 0


def _start(folder: Path, broker: Broker, postgres: Postgres, supervisor: Supervisor) -> DemoServices:
    broker.launch()
    supervisor.adopt(broker.child, broker.stop)
    postgres.start()
    assert postgres.child is not None
    supervisor.adopt(postgres.child, postgres.stop)
    customers.make_table(postgres.dsn)
    broker.wait_ready()
    create_topics(Settings(kafka_bootstrap=broker.bootstrap, topics_profile="laptop"))
    services = DemoServices(folder, bootstrap=broker.bootstrap, postgres_dsn=postgres.dsn)
    services.places_file.write_bytes(places.database())
    of_rows = [services.finalizer(), services.serving(), services.query(), services.dashboard()]
    all_services = [*services.processors(), *services.collectors(), *of_rows]
    for service in all_services:
        supervisor.start(service)
    supervisor.wait_ready(*(service.name for service in all_services))
    return services


def _measure(
    services: DemoServices,
    supervisor: Supervisor,
    stores: tuple[str, str],
    probes: list[Probe],
    given: argparse.Namespace,
) -> list[str]:
    """Warms up, loads and probes; what was wrong. `stores` are the addresses of broker and Postgres. Raises `DeadlinePassed`."""
    url, warm_ups = services.collector_url, [Probe(f"probe-warm-{number}") for number in range(WARM_UPS)]
    watching = Watching(*stores, services.page_url, [*warm_ups, *probes])
    watching.start()
    try:
        for probe in warm_ups:
            _play(url, probe)
            watching.wait_seen(probe, WARM_SECONDS_MAX)
        seconds = math.ceil(RAMP_SECONDS + len(probes) + PLAYED_SECONDS)
        views = round(given.views_per_second * seconds)
        supervisor.start(Players(views, seconds, 7).service(url, services.truth))
        time.sleep(RAMP_SECONDS)
        _probe(url, probes)
        for probe in probes:
            watching.wait_seen(probe, SETTLE_SECONDS_MAX)
    finally:
        watching.stop()
    for why, count in watching.away.items():
        print(f"{count} of the API's answers: {why}", file=sys.stderr)
    return watching.wrong


def _part(probes: list[Probe], given: argparse.Namespace) -> Part:
    grace = FINISH_MS["finish_clean_ms"] / 1_000
    live = [(each.live_at or 0) - each.started_at for each in probes]
    rows = [(each.row_at or 0) - each.ended_at - grace for each in probes]
    served = [(each.served_at or 0) - each.ended_at - grace for each in probes]
    shown = [(each.shown_at or 0) - each.ended_at - grace for each in probes]

    def percentiles(what: str, seconds: list[float], goal: tuple[float, float] | None = None) -> Compared:
        ms = [round(one * 1_000) for one in seconds]
        p50, p99 = ((nearest_rank(ms, rank) or 0) / 1_000 for rank in (0.5, 0.99))
        name, value = f"{what}, p50 / p99", f"{p50:.2f} s / {p99:.2f} s"
        if goal is None:
            return Compared(name, value)
        return Compared(name, value, f"≤ {goal[0]:g} s / {goal[1]:g} s", p50 <= goal[0] and p99 <= goal[1])

    return Part(
        name="e2e",
        title="End to end: from a beacon's answer to what people see",
        command="python -m bench.e2e",
        checked=f"{len(probes)} probes: missing, doubled or wrong 0; each counted live, each one row with all its beacons",
        compared=[
            percentiles("beacon acknowledged to viewer in topic live", live),
            percentiles(f"viewend acknowledged to row in topic views, minus the {grace:g} s grace period", rows),
            percentiles(f"viewend acknowledged to row in Postgres, minus the {grace:g} s grace period", served),
            percentiles(
                f"viewend acknowledged to the page's table, minus the {grace:g} s grace period", shown, GOAL_SECONDS
            ),
        ],
        lines=[
            (
                f"The demo's processes on two cores, {given.views_per_second:g} simulated views a second beside a probe a second."
                f" {PAGES} pages ask for their table every {PAGE_ASKS_EVERY_SECONDS:g} s."
                f" Live gauges are emitted every {BUCKET_MS / 1_000:g} s, the finalizer takes a batch every {TRIGGER_SECONDS} s."
            )
        ],
    )


def main() -> int:
    """1 when a probe was counted wrongly."""
    parser = argparse.ArgumentParser(prog="python -m bench.e2e", description=__doc__)
    parser.add_argument("--views-per-second", type=float, default=5.0, help="that simulated players begin, 0.1 to 10")
    parser.add_argument("--probes", type=int, default=60, help="one a second, 1 to 300")
    given = parser.parse_args()
    if not 0.1 <= given.views_per_second <= 10 or not 1 <= given.probes <= 300:
        parser.error("--views-per-second is 0.1 to 10, --probes 1 to 300")
    with tempfile.TemporaryDirectory(prefix="bench-e2e-") as folder:
        return _run(Path(folder), given)


if __name__ == "__main__":
    sys.exit(main())
