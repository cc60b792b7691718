"""Live records become minutes: exact in sum however they are cut into transactions, with gauges carried over holes."""

import random
from typing import Any

import msgspec

from services.serving.live.minutes import Counting, Intake, Minutes, Place, Queues, Refusal, Waiting
from shared.codec import LIVE, RECEIVED
from shared.schemas.live import BUCKET_MS, Live, LiveSlice
from shared.schemas.live_minute import (
    COUNT,
    FIELDS,
    GAUGES,
    MINUTE_MS,
    REJECTED,
    WHOLE,
    LiveSteps,
    add_steps,
    minute_of,
)
from shared.schemas.received import COLLECTOR, RELEASE
from tests.unit.serving.live.received import received

PLACE = Place("live", 0)


def record(bucket: int, *, partition: int = 0, slices: dict[str, LiveSlice] | None = None, **figures: int) -> Live:
    known: dict[str, Any] = dict.fromkeys(FIELDS, 0) | figures
    return Live(
        schema_version=2,
        partition=partition,
        customer_id="acme",
        bucket_ms=bucket * BUCKET_MS,
        slices=slices or {},
        **known,
    )


def waiting(offset: int, live: Live) -> Waiting:
    return Waiting(offset, live.bucket_ms, LIVE.encode(live))


def minutes_of(*records: Live) -> Minutes:
    counting, found = Counting(), Minutes()
    for partition in {one.partition for one in records}:
        of_partition = [one for one in records if one.partition == partition]
        counting.count([waiting(at, one) for at, one in enumerate(of_partition)], found)
    return found


def whole(minutes: Minutes) -> dict[str, list[int]]:
    return minutes["acme", WHOLE, 0].values.get("", {})


def test_a_minute_has_the_sums_over_partitions_of_each_of_its_steps() -> None:
    found = minutes_of(
        record(0, viewers_now=3, beacons=10),
        record(1, viewers_now=4, beacons=5),
        record(0, partition=1, viewers_now=2),
        record(1, partition=1, viewers_now=2),
    )
    steps = found["acme", WHOLE, 0]
    assert steps.heard == [2, 2, *[0] * 10]
    assert whole(found)["viewers_now"] == [5, 6, *[0] * 10]
    assert whole(found)["beacons"] == [10, 5, *[0] * 10]
    assert "late" not in whole(found)
    minute = minute_of(steps, steps.heard)
    assert (minute.steps, minute.values[""]) == (2, {"viewers_now": 11, "viewers_max": 6, "beacons": 15})


def test_slices_of_dimensions_and_pairs_have_rows_of_their_own() -> None:
    slices = {
        "cdn=a=b": LiveSlice(viewers_now=1),
        "cdn=zero\0": LiveSlice(viewers_now=1),
        "cdn,country=a=b\x1fDE": LiveSlice(views_started=1),
        "country=(unknown)": LiveSlice(),
    }
    found = minutes_of(record(2, viewers_now=2, slices=slices))
    assert set(found) == {("acme", dimension, 0) for dimension in (WHOLE, "cdn", "cdn,country")}
    assert set(found["acme", "cdn", 0].values) == {"a=b", "zero "}
    assert found["acme", "cdn,country", 0].values == {"a=b\x1fDE": {"views_started": [0, 0, 1, *[0] * 9]}}


def test_gauges_are_carried_over_the_steps_that_a_partition_leaves_out_and_counts_are_not() -> None:
    before = record(
        0, viewers_now=3, open_now=3, beacons=7, slices={"cdn=x": LiveSlice(viewers_now=3, views_started=1)}
    )
    found = minutes_of(before, record(3, viewers_now=1, open_now=1))
    assert whole(found)["viewers_now"][:5] == [3, 3, 3, 1, 0]
    assert sum(whole(found)["beacons"]) == 7
    assert found["acme", "cdn", 0].values["x"]["viewers_now"][:4] == [3, 3, 3, 0]
    assert sum(found["acme", "cdn", 0].values["x"]["views_started"]) == 1
    # For half a minute: then nobody knows.
    found = minutes_of(before, record(11, viewers_now=1))
    assert whole(found)["viewers_now"] == [3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 1]
    assert found["acme", WHOLE, 0].heard == [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1]


def test_rejected_input_is_counted_by_reason() -> None:
    counting, found = Counting(), Minutes()
    counting.count([Waiting(at, 61_000 + at, Refusal("acme", "invalid")) for at in range(3)], found)
    assert found["acme", REJECTED, 1].values == {"invalid": {COUNT: [3, *[0] * 11]}}


def test_only_what_comes_first_and_is_over_is_taken() -> None:
    queues = Queues()
    for offset, bucket in enumerate([0, 11, 12, 3, 30]):
        queues.put(PLACE, waiting(offset, record(bucket)))
    assert queues.has(0)
    assert [one.offset for one in queues.take_until(0)[PLACE]] == [0, 1]
    # A record of minute 0 behind one of minute 1 waits with it: the position is before both.
    assert not queues.has(0)
    assert queues.take_until(0) == {}
    assert [one.offset for one in queues.take_until(1)[PLACE]] == [2, 3]
    assert queues.size_bytes > 0
    assert [one.offset for one in queues.take_until(None)[PLACE]] == [4]
    assert queues.size_bytes == 0


def test_any_cut_into_transactions_and_any_restart_give_the_same_minutes() -> None:
    chance = random.Random(5)
    for _ in range(30):
        bucket, records = 0, []
        for _ in range(60):
            bucket += chance.choice([1, 1, 1, 2, 4, 9])
            figures = {field: chance.randrange(5) for field in FIELDS}
            sliced = LiveSlice(**{field: figures[field] for field in LiveSlice.__struct_fields__})
            records.append(record(bucket, slices={f"cdn={chance.randrange(2)}": sliced}, **figures))
        wanted = minutes_of(*records)

        landed: Minutes = {}
        counting, at = Counting(), 0
        while at < len(records):
            if chance.random() < 0.3:
                # Another process goes on, and reads what was landed of the last minute again.
                counting = Counting()
                for one in records[:at]:
                    if one.bucket_ms >= records[at - 1].bucket_ms - MINUTE_MS:
                        counting.see(LIVE.encode(one))
            more: Minutes = {}
            until = min(len(records), at + chance.randrange(1, 9))
            counting.count([waiting(offset, records[offset]) for offset in range(at, until)], more)
            for key, steps in more.items():
                # As Postgres keeps it.
                known = landed.get(key, LiveSteps())
                known = msgspec.json.decode(msgspec.json.encode(known), type=LiveSteps)
                add_steps(known, steps)
                landed[key] = known
            at = until
        assert landed == wanted
        for field in FIELDS:
            if field not in GAUGES:
                total = sum(sum(s.values.get("", {}).get(field, ())) for key, s in landed.items() if key[1] == WHOLE)
                assert total == sum(getattr(one, field) for one in records)


def test_what_collectors_received_adds_up_beside_the_customers_live_figures_by_collector_and_release() -> None:
    found, counting = Minutes(), Counting()
    reports = [
        received(bucket * BUCKET_MS, collector, {"1.0": (10, 1), "2.0": (5, 5)})
        for bucket in (0, 11)
        for collector in ("a", "b")
    ]
    counting.count([waiting(0, record(0, viewers_now=3))], found)
    counting.count([Waiting(at, one.bucket_ms, Intake(RECEIVED.encode(one))) for at, one in enumerate(reports)], found)
    whole_minute = minute_of(found["acme", WHOLE, 0], found["acme", WHOLE, 0].heard)
    # Of which partitions anything is known only topic `live` says.
    assert whole_minute.steps == 1
    assert whole_minute.values[""] == {"viewers_now": 3, "viewers_max": 3, "received": 60, "rejected": 24}
    assert found["acme", COLLECTOR, 0].values["a"]["rejected"] == [6, *[0] * 10, 6]
    assert found["acme", RELEASE, 0].values["2.0"]["received"] == [10, *[0] * 10, 10]
