"""The benchmark's input of real clients: each copy of a view is one of its own, whose whole row is known."""

import json
from typing import Any

import pytest

from bench.fold.inputs import of_mux
from bench.processor import captured
from bench.processor.check import Checked, compare
from bench.processor.systems import ALL

_CLEAN_MS = 1_000


class _Producer:
    """Keeps what is produced."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes]] = []

    def produce(self, topic: str, value: bytes, key: bytes, partition: int) -> None:
        assert 0 <= partition < 8
        self.records.append((key, value))

    def flush(self, seconds: float) -> int:
        return 0


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> tuple[captured.Loaded, _Producer]:
    to_kafka = _Producer()
    monkeypatch.setattr(captured, "DISTINCT", 20)
    monkeypatch.setattr(captured, "producer", lambda bootstrap: to_kafka)
    return captured.load_captured("", "beacons", "mux", views=60, in_flight=40, clean_ms=_CLEAN_MS), to_kafka


def test_each_copy_has_beacons_and_a_truth_of_its_own(loaded: tuple[captured.Loaded, _Producer]) -> None:
    found, to_kafka = loaded
    inputs = of_mux(20)
    assert found.beacons == len(to_kafka.records) == 3 * len(inputs)
    assert len({key for key, _ in to_kafka.records}) == 3 * len({one.key for one in inputs}) == 60
    assert len(found.views) + found.never_ended == 60
    for key, value in to_kafka.records:
        beacon = json.loads(value)
        assert f"{beacon['customer_id']}:{beacon['view_id']}".encode() == key


def test_a_row_is_right_in_every_field_or_wrong(loaded: tuple[captured.Loaded, _Producer]) -> None:
    truth = loaded[0].views
    rows = {
        key: {**row, "first_append_ms": 1, "last_append_ms": 2, "day": 3, "view_id": "x"} for key, row in truth.items()
    }
    assert _checked(rows, truth) == Checked(right=len(truth), missing=0, doubled=0, wrong=0)
    first = next(iter(rows))
    rows[first] = {**rows[first], "score_view": 1.0}
    assert _checked(rows, truth) == Checked(right=len(truth) - 1, missing=0, doubled=0, wrong=1)


def _checked(rows: dict[bytes, dict[str, Any]], truth: Any) -> Checked:
    return compare([(key, json.dumps(row).encode()) for key, row in rows.items()], truth, fold="captured")


def test_a_peer_has_a_group_and_topics_of_its_own_run() -> None:
    ours, theirs = ALL["playhead-full-200"], ALL["kafka-streams-full-200"]
    assert (ours.group("run"), ours.rows_topic("run"), ours.other_topics("run")) == ("video_views", "views", [])
    assert (theirs.group("run"), theirs.rows_topic("run"), theirs.other_topics("run")) == (
        "run",
        "run.rows",
        ["run.live"],
    )
    assert theirs.changelog_topics("run")[0] == "run-views-changelog"
