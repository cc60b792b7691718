"""From a beacon of any client to a step (docs/view.md)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from services.processor.applications.video_views.beacons.cmcd import cmcd_step
from services.processor.applications.video_views.beacons.mux import mux_failure, mux_step
from services.processor.applications.video_views.beacons.native_epas import epas_step, native_failure, native_step
from services.processor.applications.video_views.beacons.step import DERIVED, NOT_SIGNED, SIGNED, Failure, Step
from shared.codec import Undecodable
from shared.schemas.beacon import SEQ_MAX, Beacon
from shared.sources import SOURCES

#: How a beacon with a number becomes a step, and the first number of a view.
_NUMBERED: Final[Mapping[str, tuple[Callable[[Beacon, int], Step], int]]] = {
    "mux": (mux_step, SOURCES["mux"].first_number or 0),
    "cmcd": (cmcd_step, SOURCES["cmcd"].first_number or 0),
}
#: What a beacon says of a warning: the step of an error has it, a row has none of warnings.
_WARNINGS: Final[Mapping[str, Callable[[Mapping[str, Any]], Failure]]] = {"mux": mux_failure, "native": native_failure}
_BY_TIME: Final[Mapping[str, Callable[[Beacon], Step]]] = {"epas": epas_step, "native": native_step}

#: What the collector derives from the User-Agent and address: it stands in where the client states nothing.
_DERIVED: Final = ("browser", "os", "device", "country", "asn", "is_bot")
_NAMES_DERIVED: Final = frozenset(_DERIVED)


def to_step(beacon: Beacon) -> Step:
    """The step that the beacon means for its view. Raises `Undecodable` when its source or shape is not known."""
    numbered = _NUMBERED.get(beacon.source)
    if numbered is not None:
        of_beacon, first = numbered
        if beacon.seq is None or not first <= beacon.seq <= SEQ_MAX:
            raise Undecodable(f"the beacon's sequence number is {beacon.seq}; it must be {first}..{SEQ_MAX}")
        step = of_beacon(beacon, beacon.seq)
    else:
        by_time = _BY_TIME.get(beacon.source)
        if by_time is None:
            raise Undecodable(f"no view can be made of beacons from {beacon.source!r}")
        step = by_time(beacon)
    if not _NAMES_DERIVED.isdisjoint(step.dimensions):
        for name in _DERIVED:
            # An empty value states nothing, and must not hide an earlier one.
            if name in step.dimensions and not step.dimensions[name]:
                del step.dimensions[name]
    if beacon.signed is not None:
        step = replace(step, signature=SIGNED if beacon.signed else NOT_SIGNED)
    # Of other beacons it is not needed: a view without a beginning has no row.
    if step.begins:
        if derived := {name: value for name in _DERIVED if (value := getattr(beacon, name))}:
            step.dimensions[DERIVED] = derived
        if SOURCES[beacon.source].names_session:
            step.dimensions["session_id"] = beacon.view_id
    return step


def said_of(beacon: Beacon, step: Step) -> Failure | None:
    """What the beacon of this step says of its error or warning; None where it says nothing."""
    if step.failure is not None or not step.is_warning:
        return step.failure
    said = _WARNINGS.get(beacon.source)
    return None if said is None else said(beacon.attrs)
