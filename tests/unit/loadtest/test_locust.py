"""Locust's players: shapes, a view lived step by step, accounts of several processes, and the real thing."""

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from deploy.demo.load.report import moments, routes
from deploy.local.paths import ROOT
from loadtest.expected.accounts import AccountReader, Accounts
from loadtest.expected.ledger import Ledger, ViewRecord
from loadtest.expected.truth import SimulatedBeacon
from loadtest.shapes import SHAPES, players_at
from loadtest.story import story_of
from loadtest.visit import Answer, Visit

LOCUST = (sys.executable, "-m", "locust", "-f", str(ROOT / "loadtest/locustfile.py"))


class Time:
    """The time of a test: it passes when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        # As a loop that wakes a little late.
        self.seconds += max(seconds, 0.001)


class Network:
    """Answers POSTs; every `fails_every`th is refused, with a wait, and is counted when it comes back too soon."""

    def __init__(self, time: Time, ledger: Ledger, fails_every: int, wait_ms: int = 0) -> None:
        self._time, self._ledger = time, ledger
        self._fails_every, self._wait_ms = fails_every, wait_ms
        self.posts = 0
        self.too_soon = 0
        self._not_before = 0.0
        self.stored: Counter[int] = Counter()

    def post(self, view: ViewRecord, beacons: Sequence[SimulatedBeacon], body: bytes, is_closing: bool) -> Answer:
        assert body
        self.posts += 1
        self.too_soon += self._time.seconds < self._not_before
        self._time.seconds += 0.02
        ok = not self._fails_every or self.posts % self._fails_every > 0
        if ok:
            self.stored.update(beacon.seq for beacon in beacons)
        else:
            self._not_before = self._time.seconds + self._wait_ms / 1_000
        self._ledger.posted(view, beacons, ok=ok)
        return Answer(ok, 0 if ok else self._wait_ms)


def lived(number: int, *, fails_every: int = 0, wait_ms: int = 0) -> tuple[ViewRecord, Network, Ledger]:
    time, ledger = Time(), Ledger(7, Path("unused"))
    record = ViewRecord(story_of(7, number, 60), 1_700_000_000_000)
    network = Network(time, ledger, fails_every, wait_ms)
    known = Visit(record, network.post, domain="localhost", sleep=time.sleep, now=time.now).live()
    assert known
    ledger.settle(record, is_known=known)
    return record, network, ledger


@pytest.mark.parametrize("number", range(40))
def test_a_view_is_lived_to_its_end_and_what_was_stored_is_what_the_ledger_knows(number: int) -> None:
    record, network, ledger = lived(number)
    # A reporter whose batch never gets full sends nothing, nor does a page that is gone before anything has happened.
    assert network.posts > 0 or record.story.player.source == "cmcd" or record.story.first("start") is None
    assert set(network.stored) == set(record.delivered)
    assert sum(network.stored.values()) == ledger.totals.beacons_acked
    assert ledger.totals.duplicates == ledger.totals.beacons_acked - len(record.delivered)
    assert ledger.totals.views_unresolved == 0


@pytest.mark.parametrize("number", range(20))
def test_refusals_lose_nothing_that_was_sent_and_are_repeated_no_sooner_than_retry_after(number: int) -> None:
    record, network, ledger = lived(number, fails_every=2, wait_ms=1_500)
    assert set(network.stored) == set(record.delivered)
    assert network.too_soon == 0
    assert ledger.totals.posts_failed == network.posts // 2


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_has_players_at_every_second_and_an_end(shape: Any) -> None:
    numbers = [players_at(shape, second, viewers=100, seconds=200) for second in range(200)]
    assert all(number is not None and 1 <= number <= 100 for number in numbers)
    assert max(number or 0 for number in numbers) == 100
    assert players_at(shape, 200, viewers=100, seconds=200) is None


def test_a_kick_off_brings_all_at_once_and_an_ad_break_sends_them_off_and_back() -> None:
    def at(shape: Any, second: int) -> int | None:
        return players_at(shape, second, viewers=100, seconds=100)

    assert [at("kickoff", second) for second in (24, 25, 79, 80)] == [10, 100, 100, 25]
    assert [at("ads", second) for second in (0, 13, 14, 19, 20)] == [100, 100, 33, 33, 100]
    assert [at("ramp", second) for second in (0, 10, 95)] == [10, 20, 100]
    assert [at("soak", second) for second in (0, 50, 99)] == [100, 100, 100]


def test_accounts_of_several_processes_are_one_and_no_row_is_read_twice() -> None:
    accounts, expected = Accounts(), 0
    for process in range(3):
        ledger = Ledger(7, Path("unused"))
        reader = AccountReader(ledger)
        for number in range(4):
            _, _, own = lived(process * 10 + number)
            ledger.rows.extend(own.rows)
            ledger.totals.beacons_acked += own.totals.beacons_acked
            expected += own.totals.beacons_acked
            accounts.take(f"w{process}", reader.read())
            accounts.take(f"w{process}", reader.read())
    assert accounts.totals.beacons_acked == expected
    ids = [row["view_id"] for row in accounts.rows]
    assert ids
    assert len(set(ids)) == len(ids)


class _Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stored: ClassVar[Counter[tuple[str, int]]] = Counter()
    posts = 0
    lock = threading.Lock()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with _Collector.lock:
            _Collector.posts += 1
            refuse = _Collector.posts % 7 == 0
            if not refuse:
                _Collector.stored.update(self._beacons(body))
        self.send_response(503 if refuse else 200)
        if refuse:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _beacons(self, body: bytes) -> list[tuple[str, int]]:
        if self.path == "/":
            return [(event["xid"], event["xsqno"]) for event in json.loads(body)["events"]]
        found = [
            (re.search(r'sid="([^"]+)"', line), re.search(r"sn=(\d+)", line)) for line in body.decode().splitlines()
        ]
        return [(sid[1], int(sn[1])) for sid, sn in found if sid and sn]

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[str]:
    _Collector.stored, _Collector.posts = Counter(), 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.integration
def test_locusts_processes_know_together_what_the_collector_has(collector: str, tmp_path: Path) -> None:
    truth, figures = tmp_path / "truth.json", tmp_path / "locust"
    arguments = ["--headless", "--only-summary", "--processes", "2", "--host", collector, "--csv", str(figures)]
    arguments += ["--shape", "soak", "--viewers", "8", "--seconds", "8", "--truth", str(truth)]
    run = subprocess.run(
        [*LOCUST, *arguments],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    document = json.loads(truth.read_text())
    assert document["done"]
    assert document["totals"]["posts_failed"] > 0
    assert document["totals"]["beacons_acked"] == _Collector.stored.total()
    assert document["totals"]["duplicates"] == _Collector.stored.total() - len(_Collector.stored)
    assert {row["view_id"] for row in document["views"]} <= {view for view, _ in _Collector.stored}
    for row in document["views"]:
        assert row["beacon_count"] == sum(view == row["view_id"] for view, _ in _Collector.stored)
    requests = routes((tmp_path / "locust_stats.csv").read_text().splitlines())
    assert {"/ (mux-embed)", "Aggregated"} <= {route.name for route in requests}
    assert (requests[-1].requests, requests[-1].failures) == (
        document["totals"]["posts"],
        document["totals"]["posts_failed"],
    )
    assert 0 < requests[-1].p50_ms <= requests[-1].p99_ms <= requests[-1].max_ms
    history = moments((tmp_path / "locust_stats_history.csv").read_text().splitlines())
    assert max(each.users for each in history) == 8


@pytest.mark.thorough
def test_load_is_never_sent_to_another_machine(tmp_path: Path) -> None:
    run = subprocess.run(
        [*LOCUST, "--headless", "--host", "http://192.0.2.1", "--truth", str(tmp_path / "truth.json")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode != 0
    assert "not a loopback URL" in run.stdout + run.stderr
