"""What a client can make a trace hold and cost: no row comes near what a record takes, and no span is written with others."""

import dataclasses
import random
from collections.abc import Callable

import msgspec
import pytest

from services.processor.applications.traces.app import Traces
from services.processor.engine.application.application import Application
from services.processor.engine.application.failure_rules import FailureRules
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.meta import META_KEY
from shared import codec, topics
from shared.topics import REJECTED
from tests.unit.processor.applications.traces.spans import APPLICATION, KEY, RULES, T0, pass_time, pipe, rows, span

#: Above the limit: the critical path and what is known of parts.
ROW_BYTES_MAX = 2 * RULES.span_bytes_max


def largest_row(driver: Driver) -> int:
    return max(len(row or b"") for _, row in driver.changelog)


def test_known_spans_sent_again_with_later_ends_are_counted_by_their_bytes() -> None:
    driver = Driver(APPLICATION)
    pipe(driver, *(span(f"{number:04d}", 0, 10) for number in range(40)))
    large = {"text": "x" * 60_000}
    pipe(driver, *(span(f"{number:04d}", 0, 11, attrs=large) for number in range(40)), at_ms=11)
    pass_time(driver, 2_000)
    assert driver.outputs(REJECTED) == []
    assert largest_row(driver) < ROW_BYTES_MAX
    (row,) = rows(driver)
    assert (row.span_count, row.duplicate_count) == (40, 40)
    assert row.dropped_count > 0


@pytest.mark.parametrize("seed", range(5))
def test_random_hostile_spans_are_never_rejected(seed: int) -> None:
    random_ = random.Random(seed)
    driver = Driver(APPLICATION)
    for _ in range(300):
        from_ms = random_.choice([0, 0, 500, 3_000, 9_000])
        attrs = {"text": random_.choice(["x", "\x00", "\u20ac", '"']) * random_.choice([0, 10, 30_000, 100_000])}
        name = f"{random_.randrange(60):04d}"
        pipe(driver, span(name, from_ms, from_ms + random_.randrange(2_000), attrs=attrs), at_ms=12_000)
    driver.advance_to(driver.clock_ms + 200_000)
    assert driver.outputs(REJECTED) == []
    assert largest_row(driver) < ROW_BYTES_MAX
    assert all(len(output.value or b"") < topics.RECORD_BYTES_MAX for output in driver.outputs(topics.TRACES))


def written_bytes(spans: int, commits: int) -> int:
    """What one trace writes to the changelog until it is forgotten, keys and tombstones included."""
    driver = Driver(APPLICATION)
    came = [span(f"{number:04d}", number, number + 1, "a", attrs={"n": number}) for number in range(spans)]
    records = [(topics.SPANS, KEY, codec.SPAN.encode(one), one.end_us // 1000) for one in came]
    driver.pipe_all(records, commit_every=spans // commits)
    driver.advance_to(T0 + 1_000_000)
    (row,) = rows(driver)
    assert row.span_count == spans
    assert driver.rows == {"traces": 0, "spans": 0, "called_spans": 0}
    return sum(len(key) + len(row or b"") for key, row in driver.changelog if key != META_KEY)


def test_a_span_costs_its_own_bytes_however_many_commits_its_trace_takes() -> None:
    """A trace was written whole with each commit: 300 spans in 30 commits took ten times as many bytes."""
    once, slowly = written_bytes(300, 1), written_bytes(300, 30)
    assert slowly < 1.1 * once
    assert written_bytes(600, 60) < 2.1 * slowly


def test_parts_that_are_joined_one_by_one_move_few_spans() -> None:
    """The rarer direction: each bridge joins the next earlier part to all later ones."""
    driver = Driver(APPLICATION)
    parts = 100
    pipe(driver, *(span(f"{number:04d}", number * 1_100, number * 1_100) for number in range(parts)), at_ms=110_000)
    before = len(driver.changelog)
    rules_gap_ms = RULES.gap_ms
    for number in reversed(range(parts - 1)):
        pipe(driver, span(f"b{number}", number * 1_100 + 50, number * 1_100 + rules_gap_ms), at_ms=110_000)
    moved = [key for key, row in driver.changelog[before:] if row is None]
    assert len(moved) < 2 * parts


@pytest.mark.parametrize("room_bytes", [10, 100, 400, 1_000_000])
def test_a_trace_that_was_quarantined_with_some_of_its_spans_goes_on(
    drive: Callable[[Application], Driver], room_bytes: int
) -> None:
    class Failing(Traces):
        def fold(self, record: Record) -> None:
            super().fold(record)
            if b"poison" in (record.value or b""):
                raise ZeroDivisionError("a bug in the application")

    driver = drive(
        dataclasses.replace(
            APPLICATION,
            start=lambda context: Failing(context, RULES),
            failure_rules=FailureRules(quarantine_failures=2, quarantined_bytes_max=room_bytes),
        )
    )
    pipe(driver, span("a", 0, 10), span("b", 1, 11), span("c", 2, 12))
    pipe(driver, span("poison", 3, 12), span("poison", 3, 12), span("lost", 3, 12))
    assert driver.rows == {"traces": 0, "spans": 0, "called_spans": 0}
    (held,) = driver.quarantined.values()
    stores = [dict(one.headers)["origin"].decode().partition("store ")[2] for one in driver.outputs(REJECTED)]
    assert held.rows + stores.count("traces") + stores.count("spans") == 4
    driver.release(KEY)
    if room_bytes == 400:
        (lookup,) = APPLICATION.lookups
        found = msgspec.json.decode(driver.look(lookup, KEY) or b"")
        assert len(found["data"][0]["spans"]) == held.rows - 1 > 0
    pass_time(driver, 10_000)
    assert [row.span_count for row in rows(driver)] == ([held.rows - 1] if held.rows > 1 else [])
    driver.advance_to(T0 + 1_000_000)
    assert driver.rows == {"traces": 0, "spans": 0, "called_spans": 0}
