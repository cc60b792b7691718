"""Bounds: how much incidents and rules of one customer remember of slices, in bytes. Pure.

All of a customer is one row of the store. Viewers choose the names of slices, and a customer has up to `RULES_MAX` rules. Without
a bound the row would be refused, and the customer's alerts would stop.
"""

from collections.abc import Collection, Mapping
from typing import Final

from services.alerts.core.incidents import REMEMBERED_MAX, Incident, mark_of
from shared.schemas.alerts.event import Evidence

#: Of what incidents remember: one slice each, of the longest names, of as many incidents as a customer has rules.
REMEMBERED_BYTES_MAX: Final = 250_000
#: Of slices that are beyond a rule's figure and have to be so for longer.
BEYOND_BYTES_MAX: Final = 100_000
#: Of an entry besides its name, which stands in it twice.
_ENTRY_BYTES: Final = 200


def shed(incidents: Collection[Incident]) -> None:
    """Forgets suspects, then slices that are the least far beyond their rule, until the rest has room; one of each incident stays.

    Events have said the former already, and those that come are found again. Of slices a mark stays: they are no news then.
    """
    if sum(map(_size, incidents)) <= REMEMBERED_BYTES_MAX:
        return
    for incident in incidents:
        incident.suspects = []
    room = REMEMBERED_BYTES_MAX // max(1, len(incidents))
    for incident in incidents:
        kept, used = dict[str, Evidence](), 0
        for name, evidence in sorted(incident.worst.items(), key=lambda one: (*one[1].rank, one[0])):
            used += _bytes(name)
            if kept and used > room:
                break
            kept[name] = evidence
        marks = dict.fromkeys([*incident.forgotten, *(mark_of(name) for name in incident.worst if name not in kept)])
        incident.forgotten = list(marks)[:REMEMBERED_MAX]
        incident.worst = kept


def oldest(beyond: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """The slices that are beyond their rule for longest, as far as there is room: since when, by rule and slice."""
    entries = sorted((since, rule_id, name) for rule_id, slices in beyond.items() for name, since in slices.items())
    found: dict[str, dict[str, int]] = {}
    used = 0
    for since, rule_id, name in entries:
        used += _bytes(name) // 2
        if used > BEYOND_BYTES_MAX:
            break
        found.setdefault(rule_id, {})[name] = since
    return found


def _size(incident: Incident) -> int:
    of_suspects = sum(_bytes("".join(suspect.slice.values())) for suspect in incident.suspects)
    return of_suspects + sum(map(_bytes, incident.worst))


def _bytes(name: str) -> int:
    return 2 * len(name.encode()) + _ENTRY_BYTES
