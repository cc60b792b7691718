"""The dimensions of a view, by field of its row: those that clients state, and those that the collector derives (docs/view.md)."""

from collections.abc import Iterable
from typing import Any

from services.processor.applications.video_views.beacons.step import DERIVED, Step
from services.processor.applications.video_views.bounds import CUSTOM_VALUES_MAX
from services.processor.applications.video_views.view.timing.clock import is_nearer_copy


def stated(dimensions: dict[str, Any]) -> dict[str, Any]:
    """The dimensions as fields of the row: a derived value stands where the client states none."""
    if DERIVED not in dimensions:
        return dimensions
    return {**_values(dimensions[DERIVED]), **{name: value for name, value in dimensions.items() if name != DERIVED}}


def stated_of(dimensions: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """As `stated`, of these fields alone."""
    found: dict[str, Any] = {}
    for name in names:
        if name in dimensions:
            found[name] = dimensions[name]
            continue
        for one in dimensions.get(DERIVED, ()):
            if name in one[-1]:
                found[name] = one[-1][name]
                break
    return found


def merge(dimensions: dict[str, Any], newer: Step) -> bool:
    """Puts the dimensions of a step over older ones; of derived values the first stay. Returns whether anything changed."""
    changed = False
    for name, value in newer.dimensions.items():
        if name == DERIVED:
            changed = _derive(dimensions, newer, value) or changed
            continue
        merged = _merged(dimensions.get(name, {}), value) if isinstance(value, dict) else value
        if dimensions.get(name) != merged:
            dimensions[name] = merged
            changed = True
    return changed


def add_missing(dimensions: dict[str, Any], late: Step) -> bool:
    """Adds the dimensions of a step that no other step has given. Returns whether there were any."""
    missing_names = late.dimensions.keys() - dimensions.keys()
    for name in missing_names:
        value = late.dimensions[name]
        dimensions[name] = [_derivation(late, value)] if name == DERIVED else value
    return bool(missing_names)


def derived(dimensions: dict[str, Any], waiting: list[Step]) -> dict[str, Any]:
    """The values that the collector derived, by field, from the folded steps and those that wait."""
    found = {DERIVED: dimensions.get(DERIVED, [])}
    for one in waiting:
        _derive(found, one, one.dimensions.get(DERIVED, {}))
    return _values(found[DERIVED])


def derive_from_copy(dimensions: dict[str, Any], copy: Step) -> None:
    """Replaces what was derived from a step by what was derived from this copy of it, if the copy was received first."""
    known = dimensions.get(DERIVED)
    if known is None:
        return
    place = [copy.seq, copy.tie, copy.at_ms]
    dimensions[DERIVED] = [
        _derivation(copy, copy.dimensions.get(DERIVED, {}))
        if one[:3] == place and is_nearer_copy(copy, one[3], one[4])
        else one
        for one in known
    ]


def _derive(dimensions: dict[str, Any], one: Step, values: dict[str, Any]) -> bool:
    """Adds what the collector derived from a step, unless earlier steps gave all of it. Returns whether it added anything."""
    known, names = dimensions.get(DERIVED, []), values.keys()
    # Most requests of a view derive the same: the first of them has it all.
    if (known and names <= known[0][-1].keys()) or names <= _values(known).keys():
        return False
    dimensions[DERIVED] = [*known, _derivation(one, values)]
    return True


def _derivation(one: Step, values: dict[str, Any]) -> list[Any]:
    """What was derived from a step: the step's identity, when the copy that counts was received, the values by field."""
    return [one.seq, one.tie, one.at_ms, one.recv_ms, one.server_ms, values]


def _values(derivations: list[list[Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in derivations[::-1]:
        values.update(one[-1])
    return values


def _merged(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    merged = {**older, **newer}
    return merged if len(merged) <= CUSTOM_VALUES_MAX else dict(list(merged.items())[:CUSTOM_VALUES_MAX])
