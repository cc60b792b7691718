"""The sink in memory keeps the sink's contract."""

import pytest

from services.collector.sink.records import Record
from services.collector.sink.sink import MemorySink, Unstored
from tests.contracts.sink_contract import SinkContract, Stored, beacon_record


class TestMemorySink(SinkContract):
    @pytest.fixture
    def sink(self) -> MemorySink:
        return MemorySink()

    @pytest.fixture
    def stored(self, sink: MemorySink) -> Stored:
        async def first(count: int) -> list[Record]:
            return sink.records[:count]

        return first


async def test_a_failing_memory_sink_keeps_nothing() -> None:
    sink = MemorySink()
    sink.failing = "queue_full"
    with pytest.raises(Unstored, match="queue_full"):
        await sink.store([beacon_record(0)])
    assert sink.records == []
