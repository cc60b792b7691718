"""What is counted of a partition's checkpoints."""

import pytest
from prometheus_client import REGISTRY

from services.processor.runtime.telemetry.counts import Counts


@pytest.mark.parametrize("reason", ["fold_failed", "fire_failed"])
def test_failures_of_the_application_are_counted_from_0_before_the_first(reason: str) -> None:
    Counts("video_views", 61)
    labels = {"application": "video_views", "partition": "61", "reason": reason}
    assert REGISTRY.get_sample_value("playhead_processor_rejected_total", labels) == 0
