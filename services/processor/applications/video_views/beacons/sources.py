"""From beacon to step, whatever client it came from (docs/view.md)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from services.processor.applications.video_views.beacons.cmcd import cmcd_step
from services.processor.applications.video_views.beacons.mux import mux_step
from services.processor.applications.video_views.beacons.native_epas import epas_step, native_step
from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import SEQ_MAX
from shared.codec import Undecodable
from shared.schemas.beacon import Beacon

#: The sequence number of a view's first beacon, where the source has numbers.
FIRST_SEQ: Final[Mapping[str, int]] = {"mux": 1, "cmcd": 0, "native": 1}

#: Sources whose key is a session's, with several plays in it.
SESSION_SOURCES: Final = frozenset({"cmcd"})

_SEQUENCED: Final[Mapping[str, tuple[Callable[[Beacon, int], Step], int]]] = {
    "mux": (mux_step, FIRST_SEQ["mux"]),
    "cmcd": (cmcd_step, FIRST_SEQ["cmcd"]),
}
_BY_TIME: Final[Mapping[str, Callable[[Beacon], Step]]] = {"epas": epas_step, "native": native_step}

#: What the collector knows of the client itself: it stands in where the client does not say.
_STAMPS: Final = ("browser", "os", "device", "country", "asn", "is_bot")
#: Sources whose view id is their session's: plays that re-use it have one of their own, and this in common.
_SESSIONS: Final = frozenset({"cmcd", "epas"})


def to_step(beacon: Beacon) -> Step:
    """What the beacon says of its view. Raises `Undecodable` when its source or shape is not known."""
    sequenced = _SEQUENCED.get(beacon.source)
    if sequenced is not None:
        of_source, first = sequenced
        if beacon.seq is None or not first <= beacon.seq <= SEQ_MAX:
            raise Undecodable(f"the beacon's sequence number is {beacon.seq}; it must be {first}..{SEQ_MAX}")
        step = of_source(beacon, beacon.seq)
    else:
        by_time = _BY_TIME.get(beacon.source)
        if by_time is None:
            raise Undecodable(f"no view can be made of beacons from {beacon.source!r}")
        step = by_time(beacon)
    # With every beacon it would cost a look at the dimensions each; and a view without a beginning has no row.
    if step.begins:
        _stamp(step.dimensions, beacon)
        if beacon.source in _SESSIONS:
            step.dimensions["session_id"] = beacon.view_id
    return step


def _stamp(dimensions: dict[str, Any], beacon: Beacon) -> None:
    for name in _STAMPS:
        value = getattr(beacon, name)
        if value and not dimensions.get(name):
            dimensions[name] = value
