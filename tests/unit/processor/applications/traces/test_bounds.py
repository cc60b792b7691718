"""What a client can make a trace hold: no row comes near what a record takes."""

import random

import pytest

from services.processor.engine.driver import Driver
from shared import topics
from shared.topics import REJECTED
from tests.unit.processor.applications.traces.spans import APPLICATION, RULES, pass_time, pipe, rows, span

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
