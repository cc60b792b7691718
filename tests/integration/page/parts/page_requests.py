"""Views of real players, with the beacons that their rows were made of: as captured, and moved to another day."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
from deltalake import write_deltalake

from services.collector.intake.cmcd import cmcd
from services.collector.intake.post import Rules
from shared import codec
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.collector.intake.bodies import FIXTURES, post
from tests.unit.processor.applications.video_views import captured
from tests.unit.processor.applications.video_views.beacons import T0, folded_fast, mux, rows
from tests.unit.query.parts.recounting import DAY_MS

#: Before all other views of the page: no figure of theirs changes.
AGO_MS: Final = 40 * DAY_MS
#: One whose beacons were deleted since.
NOT_KEPT: Final = "captured-shaka"
#: One of which beacons were deleted in the middle of its life.
PART_KEPT: Final = "captured-dash"
CUSTOMER: Final = "acme"
#: More stalls than a row keeps events of; of two of these views beacons are missing, of one from the middle on, of one before it.
STORMY: Final = "stormy"
STORMY_PART: Final = "stormy-part"
STORMY_TORN: Final = "stormy-torn"
STALLS: Final = 300
STORMY_KEPT: Final = 400
#: Times since 1970 alone are so large.
_EPOCH_MS: Final = 10**12


def captured_views(now_ms: int) -> list[tuple[View, list[Beacon]]]:
    """The rows of captured views, each with its beacons."""
    found = {
        "captured-mux": list(captured.mux_with_ads()),
        "captured-hls": _cmcd("cmcd-hls.js-1.7.4-seek.txt"),
        PART_KEPT: _cmcd("cmcd-dash.js-5.2.1-error.txt"),
        NOT_KEPT: _cmcd("cmcd-shaka-5.2.12-error.txt"),
        **{name: stormy() for name in (STORMY, STORMY_PART, STORMY_TORN)},
    }
    return [_moved(name, beacons, now_ms - AGO_MS) for name, beacons in found.items()]


def stormy() -> list[Beacon]:
    """A view that stalls again and again, and has an error behind the events that its row keeps."""
    found = [mux(1, "viewstart", 0, view_start=T0, video_id="storm"), mux(2, "playing", 400)]
    for at in range(STALLS):
        rate = 1_000_000 * (1 + at % 3)
        found.append(mux(3 + 2 * at, "rebufferstart", 1_000 + 1_000 * at, playhead_ms=100 * at))
        found.append(mux(4 + 2 * at, "rebufferend", 1_400 + 1_000 * at, video_source_bitrate=rate))
    last, end_ms = 3 + 2 * STALLS, 2_000 + 1_000 * STALLS
    return [
        *found,
        mux(last, "error", end_ms, player_error_code="storm-1", player_error_message="no segment"),
        mux(last + 1, "error", end_ms + 900, player_error_code="storm-2"),
        mux(last + 2, "viewend", end_ms + 2_000),
    ]


def land(warehouse: Path, views: Sequence[tuple[View, list[Beacon]]]) -> None:
    """What the finalizer stores of their beacons, as far as it is still kept."""
    records = []
    for view, beacons in views:
        kept = {
            NOT_KEPT: [],
            PART_KEPT: beacons[: len(beacons) // 2],
            STORMY_PART: beacons[:STORMY_KEPT],
            STORMY_TORN: [beacons[0], *beacons[100:]],
        }.get(view.view_id, beacons)
        key = view_key(view.customer_id, view.view_id)
        records += [(key, codec.BEACON.encode(one), one.recv_time_ms) for one in kept]
    write_deltalake(
        warehouse / "bronze",
        pa.table(
            {
                "key": pa.array([key for key, _, _ in records], pa.binary()),
                "value": pa.array([value for _, value, _ in records], pa.binary()),
                "kafka_partition": pa.array([0] * len(records), pa.int32()),
                "kafka_offset": pa.array(range(1_000, 1_000 + len(records)), pa.int64()),
                "kafka_timestamp_ms": pa.array([at_ms for _, _, at_ms in records], pa.int64()),
                "day": pa.array([at_ms // DAY_MS for _, _, at_ms in records], pa.int64()),
            }
        ),
        partition_by=["day"],
        mode="append",
    )


def _cmcd(name: str) -> list[Beacon]:
    sent = post((Path(FIXTURES) / name).read_bytes(), key=CUSTOMER, origin=f"/cmcd/{CUSTOMER}")
    parsed = cmcd.parse_records(sent, Rules())
    # They came in one body here; each was a body of its own.
    return [msgspec.structs.replace(one, recv_time_ms=one.client_time_ms + 40) for one in parsed.accepted]


def _moved(name: str, beacons: list[Beacon], to_ms: int) -> tuple[View, list[Beacon]]:
    by_ms = to_ms - beacons[0].client_time_ms

    def moved(value: Any) -> Any:
        return value + by_ms if isinstance(value, int) and value > _EPOCH_MS else value

    at = [
        msgspec.structs.replace(
            one,
            customer_id=CUSTOMER,
            view_id=name,
            client_time_ms=moved(one.client_time_ms),
            recv_time_ms=moved(one.recv_time_ms),
            sent_time_ms=moved(one.sent_time_ms),
            clock_offset_ms=one.clock_offset_ms if one.source == "mux" else 40,
            attrs={key: moved(value) for key, value in one.attrs.items()},
        )
        for one in beacons
    ]
    *_, row = rows(folded_fast(at, ()))
    times = [one.recv_time_ms for one in at]
    arrived = {"first_append_ms": min(times), "last_append_ms": max(times), "day": min(times) // DAY_MS}
    return msgspec.structs.replace(row, **arrived), at
