"""Partitions whose clocks differ: each bucket waits for all of them, whatever else waits beside it."""

import pytest

from services.alerts.core.environment import Environment, take_bucket
from services.alerts.core.gathering import OPEN_SLICES_MAX, Closed, Gathering, add_gauge, close_next
from services.alerts.core.metrics import FIELDS, VIEWERS
from services.alerts.core.slices import WHOLE
from shared.schemas.live import BUCKET_MS
from tests.unit.alerts.live import T0, live, slice_of

PARTITIONS = 3
#: What the clock of partition 0 is ahead, at most: what a broker's may be, as installed.
AHEAD_SECONDS_MAX = 300


def closed_of(ahead_seconds: int, slices: int, buckets: int = 120) -> list[Closed]:
    """The buckets that close while three partitions report, the first one so far ahead of the others."""
    gathering, found = Gathering(), list[Closed]()
    sliced = {f"cdn={number:03}": slice_of(viewers_now=1) for number in range(slices)}
    for bucket in range(buckets):
        for partition in range(PARTITIONS):
            start_ms = T0 + bucket * BUCKET_MS + (0 if partition else ahead_seconds * 1_000)
            clock_ms = T0 + (bucket + 1) * BUCKET_MS + 100 + partition
            gauge = live(start_ms, partition, viewers_now=1_000, slices=sliced)
            assert add_gauge(
                gathering, gauge, clock_ms, grace_ms=5_000, slices_max=slices + 1, pairs=frozenset()
            ), "counted, and not late"  # fmt: skip
            # A row has a limit.
            assert sum(len(one.counts) - 1 for one in gathering.open.values()) <= OPEN_SLICES_MAX
            while (closed := close_next(gathering, clock_ms)) is not None:
                found.append(closed)
    # In the first ones the partition that is ahead has not reported.
    return found[ahead_seconds * 1_000 // BUCKET_MS + 5 :]


@pytest.mark.parametrize("slices", [20, 180])
@pytest.mark.parametrize("ahead_seconds", [0, 20, 30, 120, AHEAD_SECONDS_MAX])
def test_a_bucket_is_what_all_partitions_counted_however_far_their_clocks_are_apart(
    ahead_seconds: int, slices: int
) -> None:
    closed = closed_of(ahead_seconds, slices)
    assert len(closed) > 20
    assert {one.counts[WHOLE][VIEWERS] for one in closed} == {PARTITIONS * 1_000}
    assert all(one.is_whole for one in closed)
    # What a slice lacks, its bucket says.
    lacking = [
        one for one in closed if {counts[VIEWERS] for name, counts in one.counts.items() if name} != {PARTITIONS}
    ]
    assert all(one.is_cut for one in lacking)
    if slices * (ahead_seconds * 1_000 // BUCKET_MS + 2) <= OPEN_SLICES_MAX:
        assert not any(one.is_cut for one in closed)


def test_slices_of_a_bucket_that_had_no_room_are_not_whole() -> None:
    environment, counts = Environment(), [1] * len(FIELDS)
    take_bucket(environment, Closed(T0, {WHOLE: counts, "cdn=a": counts}, True), lambda _: None)
    take_bucket(environment, Closed(T0 + BUCKET_MS, {WHOLE: counts}, True, is_cut=True), lambda _: None)
    whole = {name: [one.is_whole for one in series.buckets] for name, series in environment.series.items()}
    assert whole == {WHOLE: [True, True], "cdn=a": [True, False]}
