"""Where nothing changes, fewer than one window in a thousand is called unusual; where something does, it is seen."""

import pytest
from numpy.random import default_rng

from services.processor.applications.api_baselines.endpoint import Endpoint, close
from services.processor.applications.api_baselines.season import Season
from shared.statistics.histogram import bucket_of
from tests.unit.processor.applications.api_baselines.calls import T0
from tests.unit.processor.applications.api_baselines.stationary import (
    KINDS,
    RULES,
    WEEK_WINDOWS,
    Kind,
    buckets_of,
    false_alarms,
    usual,
    windows_of,
)

#: Of each kind: five days and a quarter. Two days come before anything is judged.
WINDOWS = WEEK_WINDOWS * 3 // 4


def test_generated_durations_are_in_the_buckets_that_calls_are_counted_in() -> None:
    values = default_rng(1).lognormal(11.5, 3, 2_000)
    assert buckets_of(values).tolist() == [bucket_of(value) for value in values]


@pytest.mark.thorough
def test_fewer_than_one_window_in_a_thousand_is_a_false_alarm() -> None:
    found = [false_alarms(kind, WINDOWS, seed) for seed, kind in enumerate(KINDS)]
    judged, unusual = (sum(one) for one in zip(*found, strict=True))
    assert judged > 8_000
    assert unusual * 1_000 < judged, dict(zip((kind.name for kind in KINDS), found, strict=True))


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        ("latency", Kind("half as slow again", 500, 0.01, lambda rng, count: usual(0.5)(rng, count) * 1.5)),
        ("client_errors", Kind("more errors", 500, 0.08, usual(0.5))),
        ("traffic", Kind("half the calls", 250, 0.01, usual(0.5))),
        ("traffic", Kind("twice the calls", 1_000, 0.01, usual(0.5))),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_change_is_seen_in_its_first_window(measure: str, change: Kind) -> None:
    endpoint = Endpoint(next_ms=T0, since_ms=T0 - 1, called_ms=T0)
    seasons: dict[int, Season] = {}
    day = 86_400_000 // RULES.window_ms
    steady = Kind("steady", 500, 0.01, usual(0.5))
    states = []
    for window in (*windows_of(steady, 3 * day, seed=1), *windows_of(change, 1, seed=2)):
        endpoint.windows[endpoint.next_ms] = window
        closed = close(endpoint, seasons.get, RULES)
        states.append(closed.state)
        if closed.learned is not None:
            seasons[closed.learned[0]] = closed.learned[1]
    assert "anomalous" not in states[:-1]
    assert measure in endpoint.anomalies
