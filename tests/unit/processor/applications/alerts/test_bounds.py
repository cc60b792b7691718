"""No customer's rows come near what a store takes, for any input of its viewers and any number of its rules."""

from collections import Counter
from typing import cast

import pytest

from services.processor.engine.driver import Driver
from services.processor.engine.state.store_spec import ROW_BYTES_MAX
from shared import codec
from shared.schemas.alerts.rule import RULES_MAX, SCHEMA_VERSION, AlertRule, AlertRules
from shared.schemas.live import PAIR_SEPARATOR, PAIR_VALUES_MAX, SLICE_VALUE_CHARS_MAX, SLICE_VALUES_MAX, Live
from shared.topics import ALERT_EVENTS, ALERT_RULES, LIVE, REJECTED
from tests.unit.alerts.live import T0, live, slice_of
from tests.unit.processor.applications.alerts.test_alerts import ALERTS

DIMENSIONS = ("cdn", "country", "device", "player_software")
PAIR = ("cdn", "country")
#: Characters of four bytes each.
LONG = "\U0001f600" * (SLICE_VALUE_CHARS_MAX - 8)


def hostile(bucket: int) -> Live:
    """A gauge with as many slices as there are, under names as long as they may be, which no other bucket has."""

    def slice_named(name: str) -> dict[str, object]:
        return {name: slice_of(viewers_now=9_000_000_000, rebuffering_now=8_000_000_000 + bucket)}

    slices: dict[str, object] = {}
    for dimension in DIMENSIONS:
        for number in range(SLICE_VALUES_MAX):
            slices |= slice_named(f"{dimension}={bucket:04}-{number:02}{LONG}")
    for number in range(PAIR_VALUES_MAX):
        value = f"{bucket:04}-{number:02}{LONG}"
        slices |= slice_named(f"{','.join(PAIR)}={value}{PAIR_SEPARATOR}{value}")
    figures = {"viewers_now": 9_000_000_000, "rebuffering_now": 8_000_000_000}
    return live(T0 + bucket * 5_000, 0, **figures, slices=slices)


def rules(number: int) -> bytes:
    def rule(place: int) -> AlertRule:
        dimension = DIMENSIONS[place % len(DIMENSIONS)]
        pair = {PAIR[0]: f"0000-00{LONG}"} if place == 0 else {}
        by = PAIR[1] if pair else dimension
        return AlertRule(
            id=f"rule-{place}",
            version=1,
            name="n" * 100,
            metric="rebuffering",
            condition="threshold",
            threshold=0.0,
            filter=pair,
            by=by,
            viewers_min=0,
            for_seconds=300 if place % 3 == 0 else 0,
        )

    listed = [rule(place) for place in range(number)]
    return codec.ALERT_RULES.encode(
        AlertRules(schema_version=SCHEMA_VERSION, customer_id="acme", version=1, rules=listed)
    )


def largest_rows(driver: Driver) -> Counter[int]:
    """By store, bytes."""
    found: Counter[int] = Counter()
    for key, row in cast("list[tuple[bytes, bytes | None]]", driver.changelog):
        found[key[0]] = max(found[key[0]], len(row or b""))
    return found


@pytest.mark.thorough
def test_buckets_that_wait_after_an_outage_stay_within_a_row() -> None:
    driver = Driver(ALERTS)
    driver.pipe(ALERT_RULES, b"acme", rules(1), at_ms=T0)
    # A slot catches up: it reports minutes at once.
    for bucket in range(80):
        driver.pipe(LIVE, b"acme", codec.LIVE.encode(hostile(bucket)), at_ms=T0 + 80 * 5_000)
    assert driver.outputs(REJECTED) == []
    assert max(largest_rows(driver).values()) < 0.9 * ROW_BYTES_MAX


@pytest.mark.thorough
def test_incidents_of_very_many_rules_stay_within_a_row() -> None:
    driver = Driver(ALERTS)
    driver.pipe(ALERT_RULES, b"acme", rules(RULES_MAX), at_ms=T0)
    for bucket in range(20):
        driver.pipe(LIVE, b"acme", codec.LIVE.encode(hostile(bucket)), at_ms=T0 + bucket * 5_000 + 5_100)
    assert driver.outputs(REJECTED) == []
    assert max(largest_rows(driver).values()) < 0.9 * ROW_BYTES_MAX
    # Every rule has said what it found.
    opened = [codec.ALERT_EVENT.decode(output.value or b"") for output in driver.outputs(ALERT_EVENTS)]
    assert len({one.rule_id for one in opened}) > RULES_MAX // 2
