"""Makes the metrics declared in `shared.metrics` countable, on one registry a process."""

from functools import cache

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from shared.metrics import LATENCY_BUCKETS_S, Metric


@cache
def counter(metric: Metric) -> Counter:
    """The counter of a declared metric."""
    _expect(metric, "counter")
    return Counter(metric.name, metric.meaning, metric.labels, registry=REGISTRY)


@cache
def gauge(metric: Metric) -> Gauge:
    """The gauge of a declared metric."""
    _expect(metric, "gauge")
    return Gauge(metric.name, metric.meaning, metric.labels, registry=REGISTRY)


@cache
def histogram(metric: Metric) -> Histogram:
    """The histogram (seconds) of a declared metric."""
    _expect(metric, "histogram")
    return Histogram(metric.name, metric.meaning, metric.labels, buckets=LATENCY_BUCKETS_S, registry=REGISTRY)


def _expect(metric: Metric, kind: str) -> None:
    if metric.kind != kind:
        raise ValueError(f"{metric.name} is a {metric.kind}, not a {kind}")
