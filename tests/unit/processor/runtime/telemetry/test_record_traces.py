"""A traced record's spans: to the commit that has it, and to its key's row; bounded, and never of what is not committed."""

from typing import Any

import pytest

from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.record import Output
from services.processor.engine.state.meta import Meta
from services.processor.runtime.telemetry import record_traces
from services.processor.runtime.telemetry.record_traces import RecordTraces

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
KEY = b"acme:v1"


class Noted:
    """Stands in for `Traces`: keeps what is noted."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, str, int, dict[str, Any]]] = []

    def note(self, name: str, parent: str, begin_ns: int, end_ns: int, **attributes: Any) -> str:
        assert end_ns > begin_ns
        self.spans.append((name, parent, begin_ns, attributes))
        return parent[3:35]

    @property
    def names(self) -> list[str]:
        return [span[0] for span in self.spans]


class Message:
    def __init__(self, offset: int, *, key: bytes = KEY, partition: int = 0, headers: object = None) -> None:
        self._record = ("beacons", partition, offset, key, headers)

    def topic(self) -> str:
        return self._record[0]

    def partition(self) -> int:
        return self._record[1]

    def offset(self) -> int:
        return self._record[2]

    def key(self) -> bytes:
        return self._record[3]

    def headers(self) -> object:
        return self._record[4]

    def timestamp(self) -> tuple[int, int]:
        return 1, 5_000


TRACED = [("other", b"x"), ("traceparent", PARENT.encode())]


def checkpoint(next_offset: int, *keys: bytes) -> Checkpoint:
    meta = Meta(next_offsets={"beacons": next_offset}, clock_ms=0, commit_number=1)
    return Checkpoint({}, [Output("views", key, b"{}") for key in keys], meta, 1, {})


@pytest.fixture
def noted() -> Noted:
    return Noted()


@pytest.fixture
def seen(noted: Noted) -> RecordTraces:
    return RecordTraces(noted)  # type: ignore[arg-type]


def test_a_record_is_reported_when_it_is_committed_and_again_with_its_row(seen: RecordTraces, noted: Noted) -> None:
    seen.read(Message(7, headers=TRACED))  # type: ignore[arg-type]
    seen.committed(0, checkpoint(7))
    assert noted.names == []
    seen.committed(0, checkpoint(8, b"acme:another"))
    assert noted.spans == [("fold", PARENT, 5_000 * 1_000_000, {"partition": 0, "offset": 7})]
    seen.committed(0, checkpoint(20, KEY))
    assert noted.names == ["fold", "row"]
    assert noted.spans[1][3] == {"topic": "views"}
    seen.committed(0, checkpoint(30, KEY))
    assert noted.names == ["fold", "row"]


def test_records_without_a_context_cost_and_report_nothing(seen: RecordTraces, noted: Noted) -> None:
    for headers in (None, [], [("traceparent", None)], [("reason", b"late")]):
        seen.read(Message(1, headers=headers))  # type: ignore[arg-type]
    seen.committed(0, checkpoint(9, KEY))
    assert noted.names == []


def test_a_record_that_is_read_again_after_an_abort_is_reported_once(seen: RecordTraces, noted: Noted) -> None:
    for _ in range(2):
        seen.read(Message(7, headers=TRACED))  # type: ignore[arg-type]
    seen.committed(0, checkpoint(8, KEY))
    assert noted.names == ["fold", "row"]


def test_another_partition_s_commit_reports_nothing_of_it(seen: RecordTraces, noted: Noted) -> None:
    seen.read(Message(7, partition=1, headers=TRACED))  # type: ignore[arg-type]
    seen.committed(0, checkpoint(100))
    assert noted.names == []


def test_only_so_many_rows_are_waited_for(seen: RecordTraces, noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_traces, "OPEN_MAX", 2)
    for offset in range(4):
        seen.read(Message(offset, key=b"%d" % offset, headers=TRACED))  # type: ignore[arg-type]
    seen.committed(0, checkpoint(4))
    seen.committed(0, checkpoint(5, b"0", b"1", b"2", b"3"))
    assert noted.names.count("fold") == 4
    assert noted.names.count("row") == 2
