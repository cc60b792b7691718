"""A reprocess folds as the processor does: the same rows, however the records come in pieces."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from services.finalizer import folding
from services.finalizer.folding import COLUMNS, columns_of
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.settings import SettingsError
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, T0, mux, watch

Row = tuple[int, int, int, bytes, bytes]


@dataclass
class Batch:
    """As much of an Arrow batch as is used."""

    rows: list[Row]

    def to_pydict(self) -> dict[str, list[Any]]:
        return {name: [row[at] for row in self.rows] for at, name in enumerate(COLUMNS)}


def beacons(names: str) -> list[Beacon]:
    """A whole view for each name, one after the other, then one of hours later that lets the clock run."""
    found = []
    for number, name in enumerate(names):
        for one in watch():
            at_ms = one.client_time_ms - T0
            found.append(mux(one.seq or 0, one.event, at_ms + number * 60_000, view_id=name, **one.attrs))
    return [*found, mux(1, "viewstart", 3 * HOUR_MS, view_id="last")]


def rows_of(partition: int, records: list[Beacon]) -> list[Row]:
    return [
        (
            partition,
            offset,
            one.client_time_ms + 2_000,
            view_key(one.customer_id, one.view_id),
            codec.BEACON.encode(one),
        )
        for offset, one in enumerate(records)
    ]


def by_the_processor(records: list[Beacon]) -> list[bytes]:
    driver = Driver(APPLICATIONS["video_views"]({}))
    for one in records:
        driver.pipe(
            topics.BEACONS,
            view_key(one.customer_id, one.view_id),
            codec.BEACON.encode(one),
            at_ms=one.client_time_ms + 2_000,
        )
    return [output.value for output in driver.outputs(topics.VIEWS)]


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("checkpoint", [1, 5, 5_000])
def test_the_rows_are_the_processors_own_however_the_records_come(
    monkeypatch: pytest.MonkeyPatch, size: int, checkpoint: int
) -> None:
    monkeypatch.setattr(folding, "CHECKPOINT_RECORDS", checkpoint)
    first, second = beacons("abc"), beacons("xyz")
    records = rows_of(0, first) + rows_of(5, second)

    def batches() -> Iterator[Batch]:
        for at in range(0, len(records), size):
            yield Batch(records[at : at + size])

    folded = list(columns_of(batches(), {}))

    values = [value for columns in folded for value in columns["value"]]
    assert values == by_the_processor(first) + by_the_processor(second)
    assert len(values) == 6
    assert {partition for columns in folded for partition in columns["partition"]} == {0, 5}


def test_a_record_that_cannot_be_folded_is_passed_over_as_the_processor_did() -> None:
    records = rows_of(0, beacons("ab"))
    spoilt = [(p, 2 * offset, at_ms, key, value) for p, offset, at_ms, key, value in records]
    spoilt.insert(3, (0, spoilt[2][1] + 1, spoilt[2][2], b"acme:a", b"[no beacon"))

    (folded,) = columns_of([Batch(spoilt)], {})

    assert folded["value"] == by_the_processor(beacons("ab"))


def test_what_is_not_finished_is_left_to_the_processor() -> None:
    (folded,) = columns_of([Batch(rows_of(0, watch()))], {})
    assert folded["value"] == []


def test_a_changed_formula_comes_from_the_applications_own_settings() -> None:
    records = rows_of(0, beacons("a"))
    environ = {"VIDEO_VIEWS_GENERATION": "7", "VIDEO_VIEWS_GOOD_REBUFFER_SHARE_MAX": "0.5"}
    (folded,) = columns_of([Batch(records)], environ)
    row = codec.VIEW.decode(folded["value"][0])
    assert (row.generation, row.spi_good) == (7, True)
    (before,) = columns_of([Batch(records)], {})
    assert codec.VIEW.decode(before["value"][0]).spi_good is False
    with pytest.raises(SettingsError, match="VIDEO_VIEWS_GENERATION"):
        folding.refuse_wrong_settings({"VIDEO_VIEWS_GENERATION": "0"})
