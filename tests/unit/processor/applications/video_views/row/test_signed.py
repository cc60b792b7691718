"""A row says whether its view was signed: one beacon that was not decides, in any order."""

from typing import Any

import msgspec
import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import Drive, cmcd, mux
from tests.unit.processor.applications.video_views.row.test_definitions import row_of
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed


def story(source: Any) -> list[Beacon]:
    events = [("viewstart", 0), ("playing", 500), ("error", 9_000)]
    if source == "mux":
        return [mux(seq, event, at_ms) for seq, (event, at_ms) in enumerate(events, 1)]
    if source == "cmcd":
        states = ("s", "p", "f")
        return [cmcd(seq, event, at_ms, sta=states[seq]) for seq, (event, at_ms) in enumerate(events)]
    return [timed(source, event, at_ms) for event, at_ms in events]


@pytest.mark.parametrize("source", ["mux", "cmcd", "epas", "native"])
@pytest.mark.parametrize(
    ("signed", "row_says"),
    [
        ((None, None, None), None),
        ((True, True, True), True),
        ((True, True, False), False),
        ((False, True, True), False),
        # The customer had its first signing key while the view played.
        ((None, True, True), True),
    ],
)
def test_one_beacon_that_is_not_signed_decides(
    drive: Drive, source: Any, signed: tuple[bool | None, ...], row_says: bool | None
) -> None:
    beacons = [msgspec.structs.replace(beacon, signed=each) for beacon, each in zip(story(source), signed, strict=True)]
    found = {row_of(drive, order).signed for order in (beacons, beacons[::-1], beacons[1:] + beacons[:1])}
    assert found == {row_says}


def test_a_forged_end_that_comes_late_shows_in_the_row(drive: Drive) -> None:
    signed = [msgspec.structs.replace(beacon, signed=True) for beacon in story("mux")[:2]]
    later = [msgspec.structs.replace(mux(seq, "heartbeat", 1_000 * seq), signed=True) for seq in range(4, 90)]
    forged = msgspec.structs.replace(mux(3, "error", 900), signed=False)
    row = row_of(drive, [*signed, *later, forged])
    assert row.signed is False
