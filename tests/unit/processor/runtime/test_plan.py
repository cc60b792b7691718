"""A slot's memory in the hands of its partitions."""

import pytest

from services.processor.runtime.plan import Plan
from services.processor.settings import ProcessorSettings
from tests.unit.processor.engine.counting import APPLICATION


@pytest.mark.parametrize("partitions", [1, 64, 768])
def test_a_slots_memory_limits_hold_with_all_partitions_of_recordings(partitions: int) -> None:
    settings = ProcessorSettings()
    limits = Plan(settings, APPLICATION).limits(partitions)
    assert limits.cache_rows_max * partitions <= settings.cache_rows_max
    assert limits.cache_bytes_max * partitions <= settings.cache_bytes_max
    assert limits.waiting_bytes_max * partitions <= settings.waiting_bytes_max
    assert limits.dirty_bytes_max * partitions <= settings.dirty_bytes_max
    assert limits.unflushed_bytes_max * partitions <= settings.unflushed_bytes_max
