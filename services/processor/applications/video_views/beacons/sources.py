"""From a beacon of any client to a step (docs/view.md)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from services.processor.applications.video_views.beacons.cmcd import cmcd_step
from services.processor.applications.video_views.beacons.mux import mux_step
from services.processor.applications.video_views.beacons.native_epas import epas_step, native_step
from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import SEQ_MAX
from shared.codec import Undecodable
from shared.schemas.beacon import Beacon
from shared.sources import SOURCES

_NUMBERED: Final[Mapping[str, Callable[[Beacon, int], Step]]] = {"mux": mux_step, "cmcd": cmcd_step}
_BY_TIME: Final[Mapping[str, Callable[[Beacon], Step]]] = {"epas": epas_step, "native": native_step}

#: What the collector knows of the client itself: it stands in where the client does not say.
_STAMPS: Final = ("browser", "os", "device", "country", "asn", "is_bot")


def to_step(beacon: Beacon) -> Step:
    """What the beacon says of its view. Raises `Undecodable` when its source or shape is not known."""
    numbered = _NUMBERED.get(beacon.source)
    if numbered is not None:
        first = SOURCES[beacon.source].first_number or 0
        if beacon.seq is None or not first <= beacon.seq <= SEQ_MAX:
            raise Undecodable(f"the beacon's sequence number is {beacon.seq}; it must be {first}..{SEQ_MAX}")
        step = numbered(beacon, beacon.seq)
    else:
        by_time = _BY_TIME.get(beacon.source)
        if by_time is None:
            raise Undecodable(f"no view can be made of beacons from {beacon.source!r}")
        step = by_time(beacon)
    # With every beacon it would cost a look at the dimensions each; and a view without a beginning has no row.
    if step.begins:
        _stamp(step.dimensions, beacon)
        if SOURCES[beacon.source].names_session:
            step.dimensions["session_id"] = beacon.view_id
    return step


def _stamp(dimensions: dict[str, Any], beacon: Beacon) -> None:
    for name in _STAMPS:
        value = getattr(beacon, name)
        if value and not dimensions.get(name):
            dimensions[name] = value
