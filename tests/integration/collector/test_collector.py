"""The collector as a process on a real broker: what it answered 200 to is in Kafka, through failures around it."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import wait_until
from services.collector.intake.cmcd import cmcd
from services.collector.intake.mux import mux
from services.collector.intake.post import Rules
from services.collector.sink.kafka_sink import KafkaSink, producer_config
from services.collector.sink.records import Record
from shared.codec import BEACON
from shared.partitioning import partition_of
from shared.schemas.beacon import Beacon
from shared.settings import Settings
from shared.topics import BEACONS, REJECTED, Topic
from tests.contracts.sink_contract import SinkContract, Stored
from tests.integration.collector.collecting import SECONDS_MAX, Collector, answered, reading, until
from tests.integration.parts.brokers import OF_COLLECTOR, at_work
from tests.integration.parts.installed import PARTITIONS
from tests.unit.collector.intake.bodies import CMCD_RECORD, cmcd_bodies, mux_body, mux_event, mux_posts, post

pytestmark = pytest.mark.integration

LIMITS = {"queue_records_max": 10_000, "queue_kbytes_max": 16_384}
#: Of collectors that must answer 200: a broker without CPU for some seconds makes none of it a 503.
PATIENCE = "60"


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_COLLECTOR


@pytest.fixture
def own(broker: Broker) -> Broker:
    """The file's broker, which a test may hang or kill. Readers begin at its end, so nothing of other tests is read."""
    return at_work(broker)


class TestKafkaSink(SinkContract):
    @pytest.fixture
    async def sink(self, settings: Settings) -> AsyncIterator[KafkaSink]:
        deaths: list[str] = []
        config = producer_config(settings, "sink-contract", linger_ms=5, **LIMITS)
        sink = KafkaSink(config, ack_seconds_max=SECONDS_MAX, on_death=deaths.append, **LIMITS)
        yield sink
        await sink.close(SECONDS_MAX)
        assert deaths == []

    @pytest.fixture
    def stored(self, settings: Settings) -> Iterator[Stored]:
        with reading(settings.kafka_bootstrap, BEACONS.name, REJECTED.name) as reader:

            async def first(count: int) -> list[Record]:
                return await asyncio.to_thread(reader.until, lambda records: len(records) >= count)

            yield first


_ADDED_BY_THE_COLLECTOR = {
    *("recv_time_ms", "clock_offset_ms", "collector_id", "batch_id"),
    *("ip_trunc", "user_agent", "browser", "os", "device", "is_bot"),
}


def sent_fields(beacon: Beacon) -> dict[str, Any]:
    """What the client sent in a beacon, without what the collector adds by the hour and the connection."""
    return {name: getattr(beacon, name) for name in Beacon.__struct_fields__ if name not in _ADDED_BY_THE_COLLECTOR}


async def test_two_processes_on_one_port_store_what_real_players_sent(broker: Broker, tmp_path: Path) -> None:
    customers = [f"two-{number}" for number in range(16)]
    mux_bodies = [
        json.dumps(real["body"]).replace("cust123", customer).encode() for customer in customers for real in mux_posts()
    ]
    expected = [sent_fields(b) for body in mux_bodies for b in mux.parse_beacons(post(body), Rules()).accepted]
    expected += [
        sent_fields(b)
        for body in cmcd_bodies()
        for b in cmcd.parse_records(post(body, key="two-cmcd"), Rules()).accepted
    ]
    port = free_port()
    with (
        Collector(broker.bootstrap, tmp_path, port, "left", ack_seconds_max=PATIENCE) as left,
        Collector(broker.bootstrap, tmp_path, port, "right", ack_seconds_max=PATIENCE) as right,
        reading(broker.bootstrap, BEACONS.name, REJECTED.name) as reader,
    ):
        async with aiohttp.ClientSession() as client:
            statuses = [await answered(client, left.url + "/", body) for body in mux_bodies]
            assert set(statuses) == {200}
            statuses = [await answered(client, left.url + "/cmcd/two-cmcd", body) for body in cmcd_bodies()]
            assert set(statuses) == {204}
            assert await answered(client, left.url + "/cmcd/two-cmcd", b"nonsense(") == 204
        records = reader.until(lambda found: len(found) == len(expected) + 1)
        assert [left.child.stop(SECONDS_MAX), right.child.stop(SECONDS_MAX)] == [0, 0]

    (rejected,) = [record for record in records if record.topic == REJECTED.name]
    assert (rejected.value, dict(rejected.headers)["reason"]) == (b"nonsense(", b"undecodable")
    beacons = [BEACON.decode(record.value) for record in records if record.topic == BEACONS.name]
    assert {beacon.collector_id for beacon in beacons} == {"left", "right"}

    def key(each: dict[str, Any]) -> str:
        return json.dumps(each, sort_keys=True)

    assert sorted((sent_fields(beacon) for beacon in beacons), key=key) == sorted(expected, key=key)
    for record, beacon in zip((r for r in records if r.topic == BEACONS.name), beacons, strict=True):
        assert record.key == f"{beacon.customer_id}:{beacon.view_id}".encode()
        assert record.partition == partition_of(record.key, PARTITIONS)


async def test_what_was_answered_200_is_stored_though_the_broker_hangs_and_dies(own: Broker, tmp_path: Path) -> None:
    with (
        Collector(own.bootstrap, tmp_path, free_port(), ack_seconds_max="1") as collector,
        reading(own.bootstrap, BEACONS.name) as reader,
    ):
        async with aiohttp.ClientSession() as client:
            statuses: list[int] = []
            stored: list[int] = []
            stop = asyncio.Event()

            async def player() -> None:
                """Sends one beacon after another, each until it is answered 200."""
                seq = 0
                while not stop.is_set():
                    body = mux_body(mux_event(ake="hangs", xsqno=seq, e="viewstart" if seq == 0 else "hb"))
                    statuses.append(await answered(client, collector.url, body))
                    if statuses[-1] == 200:
                        stored.append(seq)
                        seq += 1

            async def more_stored() -> None:
                count = len(stored) + 5
                await until(lambda: len(stored) >= count)

            async def more_refused() -> None:
                count = statuses.count(503) + 2
                await until(lambda: statuses.count(503) >= count)

            playing = asyncio.create_task(player())
            await more_stored()
            own.child.signal(signal.SIGSTOP)
            await more_refused()
            # Restarting a collector would not bring the broker back.
            assert await asyncio.to_thread(collector.status, "/livez") == 200
            own.child.signal(signal.SIGCONT)
            await more_stored()
            await asyncio.to_thread(own.kill)
            await more_refused()
            await asyncio.to_thread(own.start)
            await more_stored()
            stop.set()
            await playing
        assert set(statuses) == {200, 503}

        def seqs(records: list[Record]) -> set[int | None]:
            return {BEACON.decode(record.value).seq for record in records}

        # Duplicates there may be: of what was answered 503 and stored all the same.
        records = reader.until(lambda found: seqs(found) >= set(stored))
        first_seen = list(dict.fromkeys(BEACON.decode(record.value).seq for record in records))
        assert first_seen[: len(stored)] == stored
        assert collector.child.stop(SECONDS_MAX) == 0


async def test_a_collector_that_gets_a_stop_signal_finishes_what_it_began(broker: Broker, tmp_path: Path) -> None:
    # So long that players are answered meanwhile, and one asks whether it is ready, on a busy machine too.
    settings = {"drain_notice_seconds": "10", "ack_seconds_max": PATIENCE}
    # Eight players of one address that never pause: on a quick machine they ask more than an address may. What they waste shows
    # whether something is charged to them that is not theirs: here little is allowed.
    settings |= {"address_requests_per_second": "1e6", "wasted_ms_per_second_max": "20"}
    with (
        Collector(broker.bootstrap, tmp_path, free_port(), **settings) as collector,
        reading(broker.bootstrap, BEACONS.name) as reader,
    ):
        stored: list[int] = []
        unready_while_serving = False

        async def player(client: aiohttp.ClientSession, number: int) -> None:
            nonlocal unready_while_serving
            seq = number * 1_000_000
            while (
                status := await answered(client, collector.url, mux_body(mux_event(ake="drains", xsqno=seq)))
            ) == 200:
                stored.append(seq)
                seq += 1
                if is_stopping and not unready_while_serving:
                    unready_while_serving = await asyncio.to_thread(collector.status, "/readyz") == 503
            assert status == 0, collector.child.log_tail()

        is_stopping = False
        async with aiohttp.ClientSession() as client, asyncio.timeout(2 * SECONDS_MAX):
            players = [asyncio.create_task(player(client, number)) for number in range(8)]
            await until(lambda: len(stored) >= 50)
            collector.child.ask_to_stop()
            is_stopping = True
            await asyncio.gather(*players)
        assert collector.child.stop(SECONDS_MAX) == 0
        assert unready_while_serving
        assert collector.log_lines()[-1]["event"] == "stopped"
        found = reader.until(lambda records: len(records) >= len(stored))
        assert {BEACON.decode(record.value).seq for record in found} >= set(stored)


async def test_processes_come_to_and_leave_a_shared_port_and_no_client_notices(broker: Broker, tmp_path: Path) -> None:
    """Every beacon comes on a connection of its own, so many are in a handshake with the one that leaves."""
    port, statuses, done = free_port(), list[int](), False

    async def player(client: aiohttp.ClientSession, number: int) -> None:
        while not done:
            body = mux_body(mux_event(ake="leaves", xid=f"v-{number}", xsqno=len(statuses)))
            statuses.append(await answered(client, f"http://127.0.0.1:{port}", body))
            # Players leave the newcomers some of the machine.
            await asyncio.sleep(0.02)

    async def more_answered() -> None:
        count = len(statuses) + 200
        await until(lambda: len(statuses) >= count)

    with contextlib.ExitStack() as stack:

        async def come(name: str) -> Collector:
            settings = {"drain_notice_seconds": "0", "ack_seconds_max": PATIENCE}
            collector = Collector(broker.bootstrap, tmp_path, port, name, **settings)
            return await asyncio.to_thread(stack.enter_context, collector)

        here = [await come("first"), await come("second")]
        async with aiohttp.ClientSession() as client, asyncio.timeout(4 * SECONDS_MAX):
            players = [asyncio.create_task(player(client, number)) for number in range(24)]
            for number in range(3):
                await more_answered()
                here.append(await come(f"newcomer-{number}"))
                await more_answered()
                goes = here.pop(0)
                assert await asyncio.to_thread(goes.child.stop, SECONDS_MAX) == 0
                # Requests leave no line in the log.
                assert len(goes.log_lines()) < 10
            await more_answered()
            done = True
            await asyncio.gather(*players)
    print(f"\n{len(statuses)} connections while three processes left their port: none refused or reset")
    assert set(statuses) == {200}


async def test_a_collector_that_must_leave_records_behind_says_how_many(own: Broker, tmp_path: Path) -> None:
    limits = {"ack_seconds_max": "0.5", "drain_seconds_max": "1"}
    with Collector(own.bootstrap, tmp_path, free_port(), **limits) as collector:
        own.child.signal(signal.SIGSTOP)
        async with aiohttp.ClientSession() as client:
            body = (CMCD_RECORD + "\n") * 3
            assert await answered(client, collector.url + "/cmcd/leaves", body.encode()) == 503
        assert collector.child.stop(SECONDS_MAX) == 1
        last = collector.log_lines()[-1]
        assert (last["event"], last["records_unstored"]) == ("stopped_with_records_unstored", 3)
        own.child.signal(signal.SIGCONT)


def test_a_collector_whose_topics_are_not_as_declared_does_not_start(own: Broker, tmp_path: Path) -> None:
    open_to = {"customers": "acme", "trusted_proxies": "none"}
    collector = Collector(own.bootstrap, tmp_path, free_port(), profile="production", **open_to)
    collector.child.start()
    try:
        wait_until(lambda: not collector.child.is_running, SECONDS_MAX, "the collector's end")
        assert collector.child.exit_code == 3
    finally:
        collector.child.kill()
    (line,) = collector.log_lines()
    assert line["event"] == "topics_wrong"
    assert f"topic beacons has {PARTITIONS} partitions, profile production declares 64" in line["problem"]
