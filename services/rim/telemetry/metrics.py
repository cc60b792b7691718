"""Creates the metrics declared in `shared.metrics`, in one registry per process."""

import threading
from collections.abc import Sequence
from functools import cache
from itertools import product

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from shared.metrics import LATENCY_BUCKETS_S, Metric, ServiceName, of_service

#: Two threads that meet a metric for the first time must not both register it.
_making = threading.Lock()


def counter(metric: Metric) -> Counter:
    """The counter of a declared metric."""
    _expect(metric, "counter")
    with _making:
        return _counter(metric)


def gauge(metric: Metric) -> Gauge:
    """The gauge of a declared metric."""
    _expect(metric, "gauge")
    with _making:
        return _gauge(metric)


def histogram(metric: Metric) -> Histogram:
    """The histogram (seconds) of a declared metric."""
    _expect(metric, "histogram")
    with _making:
        return _histogram(metric)


def declare(service: ServiceName) -> None:
    """Makes every metric of a service, so that a scrape names it before it is first counted."""
    make = {"counter": counter, "gauge": gauge, "histogram": histogram}
    for metric in of_service(service):
        make[metric.kind](metric)


def begin(metric: Metric, *values: Sequence[str]) -> None:
    """Makes a counter's series at 0, one for each combination of these values of its labels.

    A rule that asks for an increase sees only what a series adds: a series that appears with its first count has added nothing.
    """
    for labels in product(*values):
        counter(metric).labels(*labels)


@cache
def _counter(metric: Metric) -> Counter:
    return Counter(metric.name, metric.meaning, metric.labels, registry=REGISTRY)


@cache
def _gauge(metric: Metric) -> Gauge:
    return Gauge(metric.name, metric.meaning, metric.labels, registry=REGISTRY)


@cache
def _histogram(metric: Metric) -> Histogram:
    return Histogram(metric.name, metric.meaning, metric.labels, buckets=LATENCY_BUCKETS_S, registry=REGISTRY)


def _expect(metric: Metric, kind: str) -> None:
    if metric.kind != kind:
        raise ValueError(f"{metric.name} is a {metric.kind}, not a {kind}")
