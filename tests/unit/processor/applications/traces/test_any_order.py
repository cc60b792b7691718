"""A trace is the same for any order and any duplication of its spans, as long as none is late."""

import random
from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.traces.app import application
from services.processor.applications.traces.settings import TraceRules
from services.processor.engine.driver import Driver, Weather
from shared import codec, topics
from shared.schemas.span import Span
from tests.unit.processor.applications.traces.spans import KEY, T0, rows, span

#: So that nothing is ever late, and every row is written at the end.
HOUR_MS = 3_600_000
RULES = TraceRules(gap_ms=100, grace_ms=HOUR_MS, kept_ms=HOUR_MS)
#: Fields of the arrival of spans, not of their content.
ARRIVAL_FIELDS = {"part", "revision", "duplicate_count"}

letters = st.sampled_from("abcdefghij")
spans = st.builds(
    lambda name, from_ms, ms, parent, service, status: span(
        name, from_ms, from_ms + ms, parent, service=service, status=status
    ),
    letters,
    st.integers(0, 3_000),
    st.integers(0, 400),
    st.none() | letters,
    st.sampled_from(["web", "cart"]),
    st.sampled_from(["unset", "error"]),
)


def final_rows(
    arriving: list[Span], weather: Weather = "calm", *, writes_between: bool = False
) -> list[dict[str, Any]]:
    """What holds in the end: of each part the last row, but for those that were taken back."""
    driver = Driver(application(RULES), weather)
    for number, one in enumerate(arriving):
        driver.pipe(topics.SPANS, KEY, codec.SPAN.encode(one), at_ms=T0 + HOUR_MS)
        if writes_between and number == len(arriving) // 2:
            driver.advance_to(T0 + 10_000)
    driver.advance_to(T0 + HOUR_MS)
    assert driver.rows["spans"] == sum(row.span_count for row in {row.part: row for row in rows(driver)}.values())
    newest = {row.part: row for row in rows(driver)}
    assert all(
        row.revision == max(other.revision for other in rows(driver) if other.part == row.part)
        for row in newest.values()
    )
    fields = [msgspec.structs.asdict(row) for row in newest.values() if row.absorbed_by is None]
    rest = [{name: value for name, value in one.items() if name not in ARRIVAL_FIELDS} for one in fields]
    return sorted(rest, key=lambda one: one["start_us"])


@given(
    st.lists(spans, min_size=1, max_size=12),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.sampled_from(get_args(Weather)),
)
def test_order_and_duplication_change_nothing(
    given_: list[Span], random_: random.Random, writes_between: bool, weather: Weather
) -> None:
    again = [*given_, *random_.choices(given_, k=3)]
    random_.shuffle(again)
    assert final_rows(again, weather, writes_between=writes_between) == final_rows(given_)
