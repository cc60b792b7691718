"""The sink before which a spool stands: what waits, what is sent apart, and what ends it."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from services.collector.sink import spool_files, spooled_sink
from services.collector.sink.records import Record
from services.collector.sink.sink import MemorySink, Unstored
from services.collector.sink.spool_files import Spool
from services.collector.sink.spooled_sink import SpooledSink
from tests.contracts.sink_contract import SinkContract, Stored, beacon_record, number_of
from tests.unit.collector.sink.test_spool_files import counted, drained, files

SECONDS_MAX = 20.0


class GatedSink(MemorySink):
    """A sink in memory whose calls can be kept waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._gate: asyncio.Event | None = None
        self._reached = asyncio.Event()

    async def store(self, records: Sequence[Record]) -> None:
        if self._gate is not None:
            self._reached.set()
            await self._gate.wait()
        await super().store(records)

    @contextlib.asynccontextmanager
    async def blocked(self) -> AsyncIterator[None]:
        """Does not fail, and has a call waiting from the beginning to the end."""
        self.failing, self._gate = None, asyncio.Event()
        await asyncio.wait_for(self._reached.wait(), SECONDS_MAX)
        yield
        self._gate.set()
        self._gate = None


class ScriptedSink(GatedSink):
    """A sink in memory; the test decides the outcome of each call."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[asyncio.Future[None]] = []
        self._called = asyncio.Condition()

    async def store(self, records: Sequence[Record]) -> None:
        self._calls.append(outcome := asyncio.get_running_loop().create_future())
        async with self._called:
            self._called.notify_all()
        await outcome
        await super().store(records)

    async def call(self, number: int) -> asyncio.Future[None]:
        """The outcome of the call of that number, once it is there."""
        async with asyncio.timeout(SECONDS_MAX), self._called:
            await self._called.wait_for(lambda: len(self._calls) > number)
        return self._calls[number]


class Spooled:
    """A sink that can be set to fail, with a spool before it."""

    def __init__(self, folder: Path, behind: MemorySink | None = None, **limits: float) -> None:
        self.now_ms = 1_000
        self.dead = asyncio.Event()
        self.behind: Any = behind or GatedSink()
        self.spool = Spool(folder)
        self.sink = SpooledSink(
            self.behind,
            self.spool,
            bytes_max=int(limits.get("bytes_max", 100_000)),
            seconds_max=limits.get("seconds_max", 60.0),
            now_ms=lambda: self.now_ms,
            on_death=self.dead.set,
        )

    async def until_empty(self) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while self.sink.bytes_held():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)

    def numbers(self) -> list[int]:
        return [number_of(record) for record in self.behind.records]


@pytest.fixture
async def spooled(tmp_path: Path) -> AsyncIterator[Spooled]:
    spooled = Spooled(tmp_path)
    yield spooled
    spooled.behind.failing = None
    await spooled.sink.close(SECONDS_MAX)


class TestSpooledSink(SinkContract):
    @pytest.fixture
    async def sink(self, spooled: Spooled) -> SpooledSink:
        return spooled.sink

    @pytest.fixture
    def stored(self, spooled: Spooled) -> Stored:
        async def first(count: int) -> list[Record]:
            assert len(spooled.behind.records) == count
            return spooled.behind.records

        return first


async def test_nothing_is_spooled_while_the_sink_takes_it(spooled: Spooled, tmp_path: Path) -> None:
    await spooled.sink.store([beacon_record(0)])
    assert (spooled.numbers(), files(tmp_path)) == ([0], [])


async def test_everything_newer_waits_behind_what_is_spooled(spooled: Spooled) -> None:
    spooled.behind.failing = "deadline"
    await asyncio.gather(*(spooled.sink.store([beacon_record(number)]) for number in range(20)))
    assert spooled.sink.bytes_held() > 0
    spooled.behind.failing = None
    await spooled.sink.store([beacon_record(20)])
    await spooled.until_empty()
    assert spooled.numbers() == list(range(21))
    await spooled.sink.store([beacon_record(21)])
    await spooled.until_empty()
    assert spooled.numbers()[-1] == 21


async def test_under_steady_traffic_the_spool_is_left_again(spooled: Spooled) -> None:
    """A request that comes while the last of the spool is sent does not go behind it: there would be no last one ever."""
    spooled.behind.failing = "deadline"
    await spooled.sink.store([beacon_record(0)])
    async with spooled.behind.blocked():
        bytes_held = spooled.sink.bytes_held()
        newer = [asyncio.create_task(spooled.sink.store([beacon_record(number)])) for number in range(1, 4)]
        await asyncio.sleep(0)
    # These come while those before them are on their way.
    while not newer[0].done():
        newer.append(asyncio.create_task(spooled.sink.store([beacon_record(len(newer) + 1)])))
        await asyncio.sleep(0)
    await asyncio.gather(*newer)
    assert spooled.numbers() == list(range(len(newer) + 1))
    assert spooled.sink.bytes_held() == 0
    assert bytes_held > 0


async def test_a_request_that_fails_while_the_last_of_the_spool_is_sent_is_sent_too(tmp_path: Path) -> None:
    """It was on its way to the sink before anything was spooled, so nobody held it."""
    behind = ScriptedSink()
    spooled = Spooled(tmp_path, behind)
    first, early = (asyncio.create_task(spooled.sink.store([beacon_record(number)])) for number in range(2))
    (await behind.call(0)).set_exception(Unstored("deadline", "the first"))
    await first
    last_of_the_spool = await behind.call(2)
    (await behind.call(1)).set_exception(Unstored("deadline", "the early one"))
    await early
    newer = asyncio.create_task(spooled.sink.store([beacon_record(2)]))
    last_of_the_spool.set_result(None)
    for number in range(3, 5):
        (await behind.call(number)).set_result(None)
        await asyncio.sleep(0)
    await newer
    await spooled.until_empty()
    assert spooled.numbers() == [0, 1, 2]
    assert await spooled.sink.close(SECONDS_MAX) == 0


async def test_what_is_held_when_the_sink_fails_again_is_spooled(spooled: Spooled) -> None:
    spooled.behind.failing = "deadline"
    await spooled.sink.store([beacon_record(0)])
    async with spooled.behind.blocked():
        held = asyncio.create_task(spooled.sink.store([beacon_record(1)]))
        await asyncio.sleep(0)
        spooled.behind.failing = "deadline"
    await asyncio.wait_for(held, SECONDS_MAX)
    assert spooled.numbers() == []
    spooled.behind.failing = None
    await spooled.until_empty()
    assert spooled.numbers() == [0, 1]


async def test_what_is_held_when_the_collector_stops_is_refused(tmp_path: Path) -> None:
    spooled = Spooled(tmp_path)
    spooled.behind.failing = "deadline"
    await spooled.sink.store([beacon_record(0)])
    async with spooled.behind.blocked():
        held = asyncio.create_task(spooled.sink.store([beacon_record(1)]))
        await asyncio.sleep(0)
        await spooled.sink.close(0)
    with pytest.raises(Unstored, match="closed"):
        await held
    assert spooled.numbers() == []


class PartedSink(MemorySink):
    """A sink in memory that does not take records of one partition while it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.partition: int | None = None
        self.refused = 0
        self.refused_often = asyncio.Event()

    async def store(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.partition == self.partition:
                self.refused += 1
                if self.refused == 5:
                    self.refused_often.set()
                raise Unstored("delivery_failed", "no leader")
            self.records.append(record)


async def test_while_one_partition_refuses_the_others_are_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooled_sink, "RETRY_SECONDS", 0.01)
    behind = PartedSink()
    records = [
        Record(one.topic, number % 3, one.key, one.value, one.headers)
        for number, one in enumerate(map(beacon_record, range(12)))
    ]
    spool = Spool(tmp_path)
    spool.append([[record] for record in records], now_ms=1)
    spool.close()
    behind.partition = 1
    with structlog.testing.capture_logs() as lines:
        spooled = Spooled(tmp_path, behind)
        await asyncio.wait_for(behind.refused_often.wait(), SECONDS_MAX)
        behind.partition = None
        await spooled.until_empty()
        assert await spooled.sink.close(SECONDS_MAX) == 0
    assert sorted(map(number_of, behind.records)) == list(range(12))
    for partition in range(3):
        of_it = [number_of(record) for record in behind.records if record.partition == partition]
        assert of_it == sorted(of_it)
    assert [(line["why"], line["partitions"]) for line in lines if line["event"] == "spool_waits"] == [
        ("delivery_failed", 1)
    ]


async def test_a_spool_that_cannot_be_drained_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spooled = Spooled(tmp_path)

    def fails(_bytes_max: int) -> spool_files.Oldest:
        raise OSError("Input/output error")

    monkeypatch.setattr(spooled.spool, "oldest", fails)
    spooled.behind.failing = "deadline"
    with structlog.testing.capture_logs() as lines:
        await spooled.sink.store([beacon_record(0)])
        await asyncio.wait_for(spooled.dead.wait(), SECONDS_MAX)
    assert [line["event"] for line in lines] == ["spooling", "spool_drainer_ended"]
    assert not spooled.sink.health().ok
    await spooled.sink.close(0)


async def test_a_full_spool_and_an_old_one_take_no_more(tmp_path: Path) -> None:
    spooled = Spooled(tmp_path, bytes_max=2_000, seconds_max=1.0)
    spooled.behind.failing = "queue_full"
    answers = await asyncio.gather(
        *(spooled.sink.store([beacon_record(number)]) for number in range(100)), return_exceptions=True
    )
    taken = answers.count(None)
    assert 1 < taken < 100
    assert {answer.reason for answer in answers[taken:] if isinstance(answer, Unstored)} == {"spool_full"}
    spooled.behind.failing = None
    await spooled.until_empty()
    spooled.behind.failing = "queue_full"
    await spooled.sink.store([beacon_record(taken)])
    spooled.now_ms += 1_001
    with pytest.raises(Unstored, match="too long"):
        await spooled.sink.store([beacon_record(taken + 1)])
    spooled.behind.failing = None
    assert await spooled.sink.close(SECONDS_MAX) == 0
    assert spooled.numbers() == list(range(taken + 1))


async def test_what_has_waited_too_long_is_sent_all_the_same_and_counted(tmp_path: Path) -> None:
    spooled = Spooled(tmp_path, seconds_max=1.0)
    before = {outcome: counted(outcome) for outcome in ("written", "drained", "drained_overdue")}
    spooled.behind.failing = "deadline"
    await spooled.sink.store([beacon_record(0), beacon_record(1)])
    spooled.now_ms += 1_000
    await spooled.sink.store([beacon_record(2)])
    spooled.now_ms += 1
    with structlog.testing.capture_logs() as lines:
        spooled.behind.failing = None
        await spooled.until_empty()
        assert await spooled.sink.close(SECONDS_MAX) == 0
    assert spooled.numbers() == [0, 1, 2]
    grown = {outcome: counted(outcome) - count for outcome, count in before.items()}
    assert grown == {"written": 2, "drained": 2, "drained_overdue": 1}
    # Whether it was tried once more before the sink behind was back is left open.
    assert [(line["event"], line.get("requests_overdue")) for line in lines if line["event"] != "spool_waits"] == [
        ("spool_overdue", None),
        ("spool_drained", 1),
    ]


async def test_a_disk_that_fails_is_no_success(spooled: Spooled, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_descriptor: int) -> None:
        raise OSError("no space left")

    spooled.behind.failing = "queue_full"
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        with structlog.testing.capture_logs() as lines:
            for _ in range(3):
                with pytest.raises(Unstored) as unstored:
                    await spooled.sink.store([beacon_record(0)])
                assert unstored.value.reason == "spool_failed"
    # As long as it is the same.
    assert [line["problem"] for line in lines if line["event"] == "spool_failed"] == ["no space left"]
    spooled.behind.failing = None
    await spooled.sink.store([beacon_record(1)])
    await spooled.until_empty()
    assert spooled.numbers() == [1]


async def test_a_folder_that_cannot_be_made_durable_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, fsync, fails = Spool(tmp_path), os.fsync, True

    def fsync_of_files(descriptor: int) -> None:
        if fails and Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError("no folder")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync_of_files)
    for _ in range(2):
        with pytest.raises(OSError, match="no folder"):
            spool.append([[beacon_record(0)]], 1_000)
    fails = False
    spool.append([[beacon_record(1)]], 1_000)
    assert [number_of(record) for record in drained(spool)] == [1]
    spool.close()


async def test_what_cannot_be_drained_is_left_for_the_next_process(tmp_path: Path) -> None:
    first = Spooled(tmp_path)
    first.behind.failing = "deadline"
    await first.sink.store([beacon_record(0), beacon_record(1)])
    await first.sink.close(0)
    assert first.sink.bytes_held() > 0
    second = Spooled(tmp_path)
    await second.until_empty()
    await second.sink.close(SECONDS_MAX)
    assert second.numbers() == [0, 1]
