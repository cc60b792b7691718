"""Traffic in which nothing changes, and how often it is called an anomaly all the same.

`.venv/bin/python -m tests.unit.processor.applications.api_baselines.stationary` prints both for eight weeks of each kind.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

from services.processor.applications.api_baselines.endpoint import Endpoint, close
from services.processor.applications.api_baselines.season import Season
from services.processor.applications.api_baselines.settings import BaselineRules
from services.processor.applications.api_baselines.window import Window
from shared.statistics.histogram import GAMMA
from tests.unit.processor.applications.api_baselines.calls import T0

#: As an installation has them by default: windows of five minutes.
RULES = BaselineRules()
WEEK_WINDOWS = 7 * 86_400_000 // RULES.window_ms

Durations = Callable[[Generator, int], np.ndarray]


@dataclass(frozen=True)
class Kind:
    """One kind of traffic: calls a window on average, chances of errors, and durations in µs."""

    name: str
    calls: float
    errors: float
    durations: Durations
    #: By how much the rate itself differs from window to window, as a fraction: bursts.
    unsteady: float = 0.0


def usual(sigma: float) -> Durations:
    return lambda rng, count: rng.lognormal(11.5, sigma, count)


def two_kinds(share: float) -> Durations:
    """From a cache, or, this share of the calls, not: a hundred times slower."""
    return lambda rng, count: rng.lognormal(8, 0.2, count) * np.where(rng.random(count) < share, 100.0, 1.0)


def swinging(rng: Generator, count: int) -> np.ndarray:
    """Of which whole windows are slower or faster than others, as the load of the machines swings."""
    return rng.lognormal(11.5, 0.5, count) * rng.lognormal(0, 0.4)


def heavy(rng: Generator, count: int) -> np.ndarray:
    return 20_000 * (1 + rng.pareto(1.5, count))


KINDS = (
    Kind("busy", 2_000, 0.01, usual(0.5)),
    Kind("middling, wide latency", 120, 0.002, usual(1.2)),
    Kind("quiet", 25, 0.05, usual(0.5)),
    Kind("hardly called", 0.8, 0.1, usual(0.5)),
    Kind("half from a cache", 150, 0.0, two_kinds(0.5)),
    Kind("5 % not from a cache", 150, 0.0, two_kinds(0.05)),
    Kind("heavy tail", 300, 0.3, heavy),
    Kind("swinging latency", 200, 0.01, swinging),
    Kind("in bursts", 200, 0.02, usual(0.5), unsteady=0.5),
)


def buckets_of(values: np.ndarray) -> np.ndarray:
    """`shared.statistics.histogram.bucket_of` of each value; all are positive."""
    return np.floor(np.log(values) / math.log(GAMMA)).astype(int)


def windows_of(kind: Kind, count: int, seed: int) -> Iterator[Window]:
    """So many windows of this kind."""
    rng = default_rng(seed)
    for _ in range(count):
        rate = kind.calls * (rng.gamma(kind.unsteady**-2, kind.unsteady**2) if kind.unsteady else 1.0)
        calls = int(rng.poisson(rate))
        buckets, counts = np.unique(buckets_of(kind.durations(rng, calls)), return_counts=True)
        latency = dict(zip(buckets.tolist(), counts.tolist(), strict=True))
        yield Window(calls, int(rng.binomial(calls, kind.errors)), int(rng.binomial(calls, kind.errors / 2)), latency)


def false_alarms(kind: Kind, count: int, seed: int) -> tuple[int, int]:
    """Windows that were judged, and those of them that were called unusual."""
    endpoint = Endpoint(next_ms=T0, since_ms=T0 - 1, called_ms=T0)
    seasons: dict[int, Season] = {}
    judged = unusual = 0
    for window in windows_of(kind, count, seed):
        endpoint.windows[endpoint.next_ms] = window
        closed = close(endpoint, seasons.get, RULES)
        judged += closed.state != "learning"
        unusual += closed.state == "anomalous"
        if closed.learned is not None:
            seasons[closed.learned[0]] = closed.learned[1]
    return judged, unusual


def main() -> None:
    """Prints false alarms of every kind."""
    whole = np.zeros(2, dtype=int)
    for seed, kind in enumerate(KINDS):
        found = false_alarms(kind, 8 * WEEK_WINDOWS, seed)
        whole += found
        print(f"{kind.name:<25}{found[0]:>10,} windows{found[1]:>8,} unusual")
    print(f"{'all':<25}{whole[0]:>10,} windows{whole[1]:>8,} unusual: 1 in {whole[0] / max(whole[1], 1):,.0f}")


if __name__ == "__main__":
    main()
