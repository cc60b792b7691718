"""Metrics are made once, in any order of first use."""

import sys
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY

from services.rim.telemetry.metrics import counter
from shared.metrics import Metric

THREADS = 8
METRICS = [Metric(f"playhead_test_{number}_total", "counter", "Of this test.") for number in range(200)]


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.thorough
@pytest.mark.usefixtures("restless")
def test_threads_that_meet_a_metric_at_once_get_the_same_one() -> None:
    together = threading.Barrier(THREADS)
    failed: list[Exception] = []

    def meet() -> None:
        for metric in METRICS:
            together.wait(60)
            try:
                counter(metric).inc()
            except ValueError as error:
                failed.append(error)

    threads = [threading.Thread(target=meet) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    assert {REGISTRY.get_sample_value(metric.name) for metric in METRICS} == {THREADS}
    for metric in METRICS:
        REGISTRY.unregister(counter(metric))
