"""From a beacon of any client to a step (docs/view.md)."""

from collections.abc import Callable, Mapping
from typing import Final

from services.processor.applications.video_views.beacons.cmcd import cmcd_step
from services.processor.applications.video_views.beacons.mux import mux_step
from services.processor.applications.video_views.beacons.native_epas import epas_step, native_step
from services.processor.applications.video_views.beacons.step import DERIVED, Step
from services.processor.applications.video_views.bounds import SEQ_MAX
from shared.codec import Undecodable
from shared.schemas.beacon import Beacon
from shared.sources import SOURCES

_NUMBERED: Final[Mapping[str, Callable[[Beacon, int], Step]]] = {"mux": mux_step, "cmcd": cmcd_step}
_BY_TIME: Final[Mapping[str, Callable[[Beacon], Step]]] = {"epas": epas_step, "native": native_step}

#: What the collector derives from the User-Agent and address: it stands in where the client states nothing.
_DERIVED: Final = ("browser", "os", "device", "country", "asn", "is_bot")


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
    for name in _DERIVED:
        # An empty statement is none, and must not hide an earlier one.
        if name in step.dimensions and not step.dimensions[name]:
            del step.dimensions[name]
    # With every beacon it would cost a look at the dimensions each; and a view without a beginning has no row.
    if step.begins:
        if derived := {name: value for name in _DERIVED if (value := getattr(beacon, name))}:
            step.dimensions[DERIVED] = derived
        if SOURCES[beacon.source].names_session:
            step.dimensions["session_id"] = beacon.view_id
    return step
