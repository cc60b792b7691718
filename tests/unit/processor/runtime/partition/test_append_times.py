"""Append times that are far ahead of the present move no clock; those that differ as brokers' clocks do are believed."""

import time

import pytest
from prometheus_client import REGISTRY

from services.processor.engine.record import Record
from services.processor.runtime.partition import append_times
from services.processor.runtime.partition.append_times import AppendTimes
from services.processor.runtime.partition.transaction import Durable
from shared.topics import BEACONS

NOW_MS = 1_800_000_000_000
LEAD_MS = 300_000
NEVER_COMMITTED = Durable(0, 0)


@pytest.fixture(autouse=True)
def present(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_times.time, "time_ns", lambda: NOW_MS * 1_000_000)


def records(*times_ms: int) -> list[Record]:
    return [Record(BEACONS.name, 0, offset, at_ms, b"a", b"") for offset, at_ms in enumerate(times_ms)]


def bounded(last_commit: Durable, *times_ms: int, of: AppendTimes | None = None) -> list[int]:
    found = (of or AppendTimes("video_views", 0, LEAD_MS)).bounded(records(*times_ms), last_commit)
    assert [record.offset for record in found] == list(range(len(times_ms)))
    return [record.timestamp_ms for record in found]


def test_what_brokers_clocks_differ_by_is_believed() -> None:
    times = (0, NOW_MS - 86_400_000, NOW_MS, NOW_MS + 60_000, NOW_MS + LEAD_MS)
    assert bounded(NEVER_COMMITTED, *times) == list(times)


@pytest.mark.parametrize("lead_ms", [LEAD_MS + 1, 600_000, 7_200_000, 10**12])
def test_a_record_that_leaps_is_taken_as_appended_now_and_the_others_stay(lead_ms: int) -> None:
    assert bounded(NEVER_COMMITTED, NOW_MS - 5, NOW_MS + lead_ms, NOW_MS - 4) == [NOW_MS - 5, NOW_MS, NOW_MS - 4]


def test_a_machine_whose_own_clock_is_slow_believes_the_broker_that_confirmed_its_commit() -> None:
    broker_ms = NOW_MS + 3_600_000
    # Where the partition was before this machine took it over, a minute ago.
    of = AppendTimes("video_views", 0, LEAD_MS, clock_ms=broker_ms - 60_000)
    assert bounded(NEVER_COMMITTED, broker_ms + 1_000, of=of) == [broker_ms + 1_000]
    committed = Durable(7, broker_ms, ended_at=time.monotonic())
    assert bounded(committed, broker_ms + LEAD_MS - 1_000, of=of) == [broker_ms + LEAD_MS - 1_000]
    (held,) = bounded(committed, broker_ms + 2 * LEAD_MS, of=of)
    assert broker_ms <= held < broker_ms + LEAD_MS


def test_a_broker_whose_clock_leaps_is_not_believed_for_stamping_commits_too() -> None:
    of = AppendTimes("video_views", 0, LEAD_MS, clock_ms=NOW_MS - 1_000)
    right = Durable(7, NOW_MS + 60_000, ended_at=time.monotonic())
    assert bounded(right, NOW_MS + LEAD_MS + 30_000, of=of) == [NOW_MS + LEAD_MS + 30_000]
    for number in range(1, 4):
        leapt = Durable(7 + number, NOW_MS + number * 7_200_000, ended_at=time.monotonic())
        (held,) = bounded(leapt, NOW_MS + number * 7_200_000, of=of)
        assert NOW_MS + 60_000 <= held < NOW_MS + LEAD_MS


def test_a_leap_at_the_first_commit_is_not_believed_either() -> None:
    leapt = Durable(7, NOW_MS + 7_200_000, ended_at=time.monotonic())
    assert bounded(leapt, NOW_MS + 7_200_000) == [NOW_MS]


def test_nothing_read_is_nothing_bounded() -> None:
    assert bounded(NEVER_COMMITTED) == []


def test_leaps_are_counted_from_0_before_the_first() -> None:
    AppendTimes("video_views", 61, LEAD_MS)
    labels = {"application": "video_views", "partition": "61"}
    assert REGISTRY.get_sample_value("playhead_processor_append_time_leaps_total", labels) == 0
