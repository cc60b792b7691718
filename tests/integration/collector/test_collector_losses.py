"""Everything a collector answered 200 is in Kafka, through failures around it: processes, broker, replicas, queue, disk."""

import asyncio
import contextlib
import gzip
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

import aiohttp
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from services.collector.sink.records import Record
from shared.codec import BEACON
from shared.topics import BEACONS, Topic
from tests.integration.collector.collecting import SECONDS_MAX, Collector, answered, reading, until
from tests.integration.parts.brokers import OF_COLLECTOR, at_work
from tests.unit.collector.intake.bodies import CMCD_RECORD, mux_body, mux_event

pytestmark = pytest.mark.integration

PLAYERS = 8
MIB = 1024 * 1024
Stored = set[tuple[str, int]]


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_COLLECTOR


@pytest.fixture
def own(broker: Broker) -> Broker:
    """The file's broker, which a test may hang or kill. Readers begin at its end, so nothing of other tests is read."""
    return at_work(broker)


class Crowd:
    """Players that send one beacon after another, each until it is answered with success."""

    def __init__(self, url: str, *, is_mux: bool) -> None:
        self._url = url
        self.is_mux = is_mux
        self.statuses: list[int] = []
        self.stored: list[tuple[str, int]] = []
        self._stopped = False

    def move_to(self, url: str) -> None:
        self._url = url

    async def play(self, client: aiohttp.ClientSession, number: int) -> None:
        view_id, seq = f"{'m' if self.is_mux else 'c'}-{number}", 0
        while not self._stopped:
            if self.is_mux:
                url, body = self._url, mux_body(mux_event(ake="losses", xid=view_id, xsqno=seq))
            else:
                record = CMCD_RECORD.replace("s-1", view_id).replace("sn=4", f"sn={seq}")
                url, body = self._url + "/cmcd/losses", record.encode()
            status = await answered(client, url, body)
            self.statuses.append(status)
            if status in {200, 204}:
                self.stored.append((view_id, seq))
                seq += 1
            else:
                await asyncio.sleep(0.01)

    async def more(self, count: int = 3 * PLAYERS) -> None:
        """Returns when so many more are stored."""
        wanted = len(self.stored) + count
        await until(lambda: len(self.stored) >= wanted)

    async def more_refused(self, status: int = 503) -> None:
        """Returns when some more are answered `status`."""
        wanted = self.statuses.count(status) + 2
        await until(lambda: self.statuses.count(status) >= wanted)

    @contextlib.asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        async with aiohttp.ClientSession() as client:
            players = [asyncio.create_task(self.play(client, number)) for number in range(PLAYERS)]
            yield
            self._stopped = True
            await asyncio.gather(*players)


def numbers(records: list[Record]) -> list[tuple[str, int]]:
    beacons = [BEACON.decode(record.value) for record in records]
    return [(beacon.view_id, beacon.seq or 0) for beacon in beacons]


def is_of(crowd: Crowd, record: Record) -> bool:
    return BEACON.decode(record.value).source == ("mux" if crowd.is_mux else "cmcd")


def assert_all_there_in_order(records: list[Record], stored: list[tuple[str, int]]) -> None:
    first_seen = dict.fromkeys(numbers(records))
    for view_id in {view_id for view_id, _ in stored}:
        found = [seq for view, seq in first_seen if view == view_id]
        assert found[: sum(view == view_id for view, _ in stored)] == [seq for view, seq in stored if view == view_id]


async def test_a_collector_that_is_killed_loses_nothing_it_answered(broker: Broker, tmp_path: Path) -> None:
    port = free_port()
    with reading(broker.bootstrap, BEACONS.name) as reader:
        with Collector(broker.bootstrap, tmp_path, port, "first") as first:
            crowd = Crowd(first.url, is_mux=True)
            async with crowd.playing():
                await crowd.more(100)
                await asyncio.to_thread(first.child.kill)
                await until(lambda: 0 in crowd.statuses)
                with Collector(broker.bootstrap, tmp_path, port, "second"):
                    await crowd.more(100)
        records = reader.until(lambda found: set(numbers(found)) >= set(crowd.stored))
    assert_all_there_in_order(records, crowd.stored)


Trouble = Callable[[Broker], Awaitable[Callable[[], Awaitable[None]]]]


async def hang(own: Broker) -> Callable[[], Awaitable[None]]:
    own.child.signal(signal.SIGSTOP)

    async def mend() -> None:
        own.child.signal(signal.SIGCONT)

    return mend


async def lack_replicas(own: Broker) -> Callable[[], Awaitable[None]]:
    await asyncio.to_thread(_set_min_isr, own.bootstrap, 2)
    return lambda: asyncio.to_thread(_set_min_isr, own.bootstrap, 1)


def _set_min_isr(bootstrap: str, replicas: int) -> None:
    entry = ConfigEntry("min.insync.replicas", str(replicas), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, BEACONS.name, incremental_configs=[entry])
    # Its answers come only while the client lives.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(SECONDS_MAX)


async def test_a_full_queue_and_too_few_replicas_lose_nothing(own: Broker, tmp_path: Path) -> None:
    """The queue holds five records, so that eight players fill it; none of them is ever cut in two by it."""
    limits = {"queue_records_max": "5", "ack_seconds_max": "1"}
    with (
        Collector(own.bootstrap, tmp_path, free_port(), **limits) as collector,
        reading(own.bootstrap, BEACONS.name) as reader,
    ):
        crowd = Crowd(collector.url, is_mux=False)
        full = 'playhead_collector_unstored_total{reason="queue_full"}'
        async with crowd.playing():
            await crowd.more()
            for trouble in (hang, lack_replicas):
                mend = await trouble(own)
                await crowd.more_refused()
                # The first that are refused may have been taken, and not acknowledged in time.
                await until(lambda: collector.metric(full) > 0)
                await mend()
                await crowd.more()
        records = reader.until(lambda found: set(numbers(found)) >= set(crowd.stored))
        assert_all_there_in_order(records, crowd.stored)
        assert set(crowd.statuses) == {204, 503}
        assert collector.metric(full) > 0


async def test_a_broker_that_is_away_under_load_loses_nothing(
    own: Broker, tmp_path: Path, outage_seconds: float
) -> None:
    """Without a spool, and with players that do not wait: what is answered 200 or 204 before, meanwhile and after is in Kafka."""
    with (
        Collector(own.bootstrap, tmp_path, free_port(), ack_seconds_max="1") as collector,
        reading(own.bootstrap, BEACONS.name) as reader,
    ):
        crowds = [Crowd(collector.url, is_mux=True), Crowd(collector.url, is_mux=False)]
        async with contextlib.AsyncExitStack() as stack:
            for crowd in crowds:
                await stack.enter_async_context(crowd.playing())
            for crowd in crowds:
                await crowd.more()
            await asyncio.to_thread(own.stop)
            # Not a wait for something to happen: the time is what is tried.
            await asyncio.sleep(outage_seconds)
            for crowd in crowds:
                await crowd.more_refused()
            await asyncio.to_thread(own.start)
            for crowd in crowds:
                await crowd.more()
        stored = [each for crowd in crowds for each in crowd.stored]
        records = reader.until(lambda found: set(numbers(found)) >= set(stored))
        for crowd, success in zip(crowds, (200, 204), strict=True):
            assert_all_there_in_order([record for record in records if is_of(crowd, record)], crowd.stored)
            assert set(crowd.statuses) == {success, 503}
        print(f"\naway {outage_seconds:g} s: {len(stored)} answered with success, all of them in Kafka")
        assert collector.child.stop(SECONDS_MAX) == 0


async def test_many_bombs_at_once_take_no_more_memory_than_the_limits_say(own: Broker, tmp_path: Path) -> None:
    """Bodies of a few kB become 1.6 MB of records each, and wait for a broker that hangs. A tenth of them fits."""
    bomb = gzip.compress(mux_body(*(mux_event(ake="bombs", xsqno=seq) for seq in range(2_000))))
    assert len(bomb) < 20_000
    limits = {"in_flight_bytes_max": str(16 * MIB), "queue_kbytes_max": "2000000", "queue_records_max": "10000000"}
    with (
        Collector(own.bootstrap, tmp_path, free_port(), ack_seconds_max="100", **limits) as collector,
    ):
        async with aiohttp.ClientSession() as client:
            assert await answered(client, collector.url, bomb) == 200
            before = collector.peak_bytes()
            own.child.signal(signal.SIGSTOP)
            bombs = [asyncio.create_task(answered(client, collector.url, bomb)) for _ in range(120)]
            await until(lambda: sum(task.done() for task in bombs) >= 60)
            assert {task.result() for task in bombs if task.done()} == {503}
            # What is in flight is there twice, here and in the producer's queue.
            grown = collector.peak_bytes() - before
            print(f"\n{grown / MIB:.0f} MiB more for 120 bombs at once")
            assert grown < 100 * MIB
            own.child.signal(signal.SIGCONT)
            # How many have a place when the broker is back follows from the machine: 4 to 18.
            assert set(await asyncio.gather(*bombs)) == {200, 503}
            assert await answered(client, collector.url, bomb) == 200
        refused = [f'playhead_collector_unstored_total{{reason="{why}"}}' for why in ("in_flight", "waiting_turns")]
        assert sum(collector.metric(sample) for sample in refused) >= 60
        assert collector.metric("playhead_collector_in_flight_bytes") == 0


async def test_a_spool_takes_over_and_outlives_its_process(own: Broker, tmp_path: Path) -> None:
    """The broker dies, Mux clients are answered 200 all the same, the collector dies, both come back."""
    port = free_port()
    limits = {"spool_dir": str(tmp_path / "spool"), "ack_seconds_max": "1", "drain_seconds_max": "30"}
    with reading(own.bootstrap, BEACONS.name) as reader:
        with Collector(own.bootstrap, tmp_path, port, "first", **limits) as first:
            crowd = Crowd(first.url, is_mux=True)
            async with crowd.playing():
                await crowd.more()
                await asyncio.to_thread(own.kill)
                await crowd.more(10 * PLAYERS)
                assert 503 not in crowd.statuses
                assert first.metric("playhead_collector_spool_bytes") > 0
                await asyncio.to_thread(first.child.kill)
                await asyncio.to_thread(own.start)
                with Collector(own.bootstrap, tmp_path, port, "second", **limits) as second:
                    await crowd.more()
                    await until(lambda: second.metric("playhead_collector_spool_bytes") == 0)
                    await crowd.more()
                    assert await asyncio.to_thread(second.child.stop, SECONDS_MAX) == 0
        records = reader.until(lambda found: set(numbers(found)) >= set(crowd.stored))
    assert_all_there_in_order(records, crowd.stored)


async def test_a_spool_that_cannot_be_drained_is_reported_by_the_exit_code(own: Broker, tmp_path: Path) -> None:
    limits = {"spool_dir": str(tmp_path / "spool"), "ack_seconds_max": "0.5", "drain_seconds_max": "1"}
    with Collector(own.bootstrap, tmp_path, free_port(), **limits) as collector:
        await asyncio.to_thread(own.kill)
        async with aiohttp.ClientSession() as client:
            assert await answered(client, collector.url, mux_body(mux_event())) == 200
            # Other clients get a 503: their retries do no harm.
            assert await answered(client, collector.url + "/cmcd/losses", CMCD_RECORD.encode()) == 503
        assert await asyncio.to_thread(collector.child.stop, SECONDS_MAX) == 5
        assert collector.log_lines()[-1]["event"] == "stopped_with_a_spool"
