"""The live picture of earlier: series of values from landed minutes, with holes where nothing is known."""

from typing import Any

import msgspec
import pytest

from services.dashboard.live.landed.past import (
    POINTS_MAX,
    AskedPast,
    PastPicture,
    Row,
    Wrong,
    assembled,
    checked,
    minutes_of,
    orders_of,
)
from shared.schemas.live import OTHER, SLICE_VALUES_MAX, UNKNOWN
from shared.schemas.live_minute import MINUTE_MS, STEPS, LiveMinute, LiveSteps

HOUR_MS = 60 * MINUTE_MS
BEGIN = 1_000


def asked(minutes: int = 3, **given: Any) -> AskedPast:
    begin_ms = BEGIN * MINUTE_MS
    return AskedPast(customer="acme", from_ms=begin_ms, until_ms=begin_ms + minutes * MINUTE_MS, **given)


def minute(at: int, dimension: str, values: dict[str, dict[str, int]], steps: int = STEPS) -> Row:
    return Row(dimension, BEGIN + at, msgspec.json.encode(LiveMinute(steps=steps, values=values)).decode())


def ask(question: AskedPast, *rows: Row) -> PastPicture:
    return assembled(question, checked(question), rows)


def series(answer: PastPicture, value: str = "", field: str = "viewers_now") -> list[Any]:
    return next(one.series[field] for one in answer.values if one.value == value)


def test_gauges_are_means_counts_sums_and_what_is_not_known_is_null() -> None:
    answer = ask(
        asked(fields="viewers_now,views_started,viewers_max"),
        minute(0, "", {"": {"viewers_now": 24, "viewers_max": 4, "views_started": 5}}),
        # Half of it.
        minute(2, "", {"": {"viewers_now": 24, "viewers_max": 5}}, steps=6),
    )
    assert series(answer) == [2, None, 4]
    assert series(answer, field="views_started") == [5, None, 0]
    assert series(answer, field="viewers_max") == [4, None, 5]


def test_a_figure_that_is_named_twice_counts_once() -> None:
    row = minute(0, "", {"": {"viewers_now": 24, "views_started": 5}})
    answer = ask(asked(1, fields="views_started,viewers_now,views_started"), row)
    assert series(answer, field="views_started") == [5]
    assert list(answer.values[0].series) == ["views_started", "viewers_now"]


def test_longer_steps_add_minutes_up() -> None:
    rows = [minute(at, "", {"": {"viewers_now": 12 * (at + 1), "viewers_max": at, "beacons": 1}}) for at in range(4)]
    answer = ask(asked(4, step_ms=2 * MINUTE_MS, fields="viewers_now,viewers_max,beacons"), *rows)
    assert series(answer) == [1.5, 3.5]
    assert series(answer, field="viewers_max") == [1, 3]
    assert series(answer, field="beacons") == [2, 2]


def test_steps_of_five_seconds_have_what_each_bucket_had() -> None:
    figures = {"viewers_now": list(range(STEPS)), "views_started": [0, 3, *[0] * 10]}
    heard = [1, 2, *[0] * 4, *[1] * 6]
    rows = [
        Row("", BEGIN, msgspec.json.encode(LiveSteps(heard=heard, values={"": figures})).decode()),
        Row("cdn", BEGIN, msgspec.json.encode(LiveSteps(values={"x": figures})).decode()),
    ]
    answer = ask(asked(1, step_ms=5_000, dimension="cdn", fields="viewers_now,views_started"), *rows)
    assert series(answer, "x") == [0, 1, None, None, None, None, 6, 7, 8, 9, 10, 11]
    assert series(answer, "x", "views_started")[:3] == [0, 3, None]


def test_the_largest_values_are_named_and_all_others_are_one() -> None:
    many = {f"v{number:02}": {"viewers_now": 12 * (100 - number)} for number in range(SLICE_VALUES_MAX + 2)}
    rows = [
        minute(0, "", {"": {"viewers_now": 0}}),
        minute(0, "cdn", many | {UNKNOWN: {"viewers_now": 12 * 500}, OTHER: {"viewers_now": 12}}),
    ]
    answer = ask(asked(1, dimension="cdn"), *rows)
    assert [one.value for one in answer.values] == [
        *(f"v{number:02}" for number in range(SLICE_VALUES_MAX)),
        OTHER,
        UNKNOWN,
    ]
    assert series(answer, OTHER) == [1 + 80 + 79]
    assert series(answer, UNKNOWN) == [500]


def test_pairs_have_names_of_two_values() -> None:
    none = f"{UNKNOWN}\x1f{UNKNOWN}"
    rows = [minute(0, "", {}), minute(0, "cdn,country", {"a\x1fDE": {"viewers_now": 12}, none: {"viewers_now": 24}})]
    answer = ask(asked(1, dimension="cdn,country"), *rows)
    assert [one.value for one in answer.values] == ["a\x1fDE", UNKNOWN]
    # Who asks need not know in which order the processor has them.
    turned = asked(1, dimension="country,cdn")
    assert orders_of(turned.dimension) == ["country,cdn", "cdn,country"]
    assert [one.value for one in ask(turned, *rows).values] == ["DE\x1fa", UNKNOWN]


def test_what_was_rejected_is_known_without_viewers() -> None:
    answer = ask(asked(2, dimension="rejected", fields="count"), minute(1, "rejected", {"invalid": {"count": 7}}))
    assert series(answer, "invalid", "count") == [0, 7]


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_ms": 7_000},
        {"until_ms": 0},
        {"step_ms": 5_000, "until_ms": BEGIN * MINUTE_MS + (POINTS_MAX + 1) * 5_000},
        {"step_ms": HOUR_MS, "until_ms": BEGIN * MINUTE_MS + 15 * 24 * HOUR_MS},
        {"fields": "viewers_now,password"},
        {"fields": ""},
        {"value": "fastly"},
        {"dimension": "cdn", "value": OTHER},
    ],
    ids=str,
)
def test_a_question_that_is_wrong_or_too_large_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Wrong):
        checked(msgspec.structs.replace(asked(), **wrong))


@pytest.mark.parametrize("dimension", ["password", "cdn,", "cdn,country,asn", "rejected,cdn"])
def test_a_dimension_that_is_none_is_refused(dimension: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(
            {"customer": "a", "from_ms": "1", "until_ms": "2", "dimension": dimension}, AskedPast, strict=False
        )


def test_whole_minutes_are_read() -> None:
    question = msgspec.structs.replace(asked(), step_ms=5_000, from_ms=61_000, until_ms=121_000)
    assert minutes_of(question) == (1, 3)


def test_what_was_received_and_rejected_is_shown_by_release_also_where_nobody_watches() -> None:
    answer = ask(
        asked(2, dimension="release", fields="received,rejected"),
        minute(0, "release", {"1.0": {"received": 60, "rejected": 6}, "2.0": {"received": 90}}),
    )
    assert [one.value for one in answer.values] == ["2.0", "1.0"]
    assert series(answer, "1.0", "rejected") == [6, 0]
    whole = ask(asked(2, fields="received,rejected"), minute(1, "", {"": {"received": 60, "rejected": 6}}, steps=0))
    assert series(whole, field="received") == [0, 60]
