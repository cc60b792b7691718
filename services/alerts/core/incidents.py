"""Incidents: one at a time of a rule, for all slices that it finds. Opens, updates and closes each once. Pure."""

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from shared.schemas.alerts.event import (
    SCHEMA_VERSION,
    SLICES_MAX,
    AlertEvent,
    Change,
    EndReason,
    Evidence,
    SuspectSlice,
)
from shared.schemas.alerts.rule import AlertRule

#: An incident is over when nothing was beyond its rule for so long: what comes and goes within it is one incident.
QUIET_MS: Final = 180_000
#: No more updates than one in so long.
UPDATE_MS: Final = 60_000
#: Slices that an incident remembers.
REMEMBERED_MAX: Final = 200


class Incident(msgspec.Struct, array_like=True):
    """One that is open."""

    id: str
    opened_ms: int
    last_ms: int
    revision: int
    #: When the last event was emitted.
    said_ms: int
    affected_max: int
    #: By slice, the least likely (or farthest) evidence.
    worst: dict[str, Evidence]
    suspects: list[SuspectSlice]
    #: Whether slices have joined since the last event.
    has_news: bool = False
    #: `mark_of` slices that it forgot for want of room: they do not join again. As many as it remembers, 3 bytes each.
    forgotten: list[int] = []


def follow(
    incident: Incident | None,
    rule: AlertRule,
    customer_id: str,
    found: Mapping[str, Evidence],
    end_ms: int,
    *,
    affected: int,
    suspects: Sequence[SuspectSlice],
) -> tuple[Incident | None, AlertEvent | None]:
    """Takes what the rule found in the bucket that ended at `end_ms`. Returns the incident that is open then, and the event."""
    if incident is None:
        if not found:
            return None, None
        opened = Incident(
            _id(customer_id, rule.id, end_ms), end_ms, end_ms, 1, end_ms, affected, dict(found), list(suspects)
        )
        return opened, _event(opened, rule, customer_id, "opened", end_ms)
    if found:
        _add_evidence(incident, found, end_ms, affected)
        if suspects:
            incident.suspects = list(suspects)
    elif end_ms - incident.last_ms >= QUIET_MS:
        return None, close(incident, rule, customer_id, "recovered", end_ms)
    if incident.has_news and end_ms - incident.said_ms >= UPDATE_MS:
        incident.revision += 1
        incident.said_ms, incident.has_news = end_ms, False
        return incident, _event(incident, rule, customer_id, "updated", end_ms)
    return incident, None


def close(incident: Incident, rule: AlertRule, customer_id: str, reason: EndReason, end_ms: int) -> AlertEvent:
    """The event that closes it."""
    incident.revision += 1
    return _event(incident, rule, customer_id, "closed", end_ms, reason=reason)


def _event(
    incident: Incident,
    rule: AlertRule,
    customer_id: str,
    change: Change,
    at_ms: int,
    *,
    reason: EndReason | None = None,
) -> AlertEvent:
    """The incident as it is now."""
    ranked = [evidence for _, evidence in sorted(incident.worst.items(), key=lambda one: (*one[1].rank, one[0]))]
    return AlertEvent(
        schema_version=SCHEMA_VERSION,
        customer_id=customer_id,
        incident_id=incident.id,
        revision=incident.revision,
        change=change,
        end_reason=reason,
        at_ms=at_ms,
        opened_ms=incident.opened_ms,
        last_ms=incident.last_ms,
        rule_id=rule.id,
        rule_version=rule.version,
        rule_name=rule.name,
        metric=rule.metric,
        direction=rule.direction,
        severity=rule.severity,
        affected_max=incident.affected_max,
        slices=ranked[:SLICES_MAX],
        further_slices=len(ranked[SLICES_MAX:]),
        suspects=incident.suspects,
    )


def _add_evidence(incident: Incident, found: Mapping[str, Evidence], end_ms: int, affected: int) -> None:
    incident.last_ms = end_ms
    incident.affected_max = max(incident.affected_max, affected)
    for name, evidence in found.items():
        known = incident.worst.get(name)
        if known is None:
            if len(incident.worst) >= REMEMBERED_MAX:
                continue
            if len(incident.forgotten) < REMEMBERED_MAX and mark_of(name) not in incident.forgotten:
                incident.has_news = True
            incident.worst[name] = evidence
        elif evidence.rank < known.rank:
            incident.worst[name] = evidence


def mark_of(name: str) -> int:
    """Two bytes for the name of a slice: another one has the same by a chance of 1 in 65,536."""
    return zlib.crc32(name.encode()) & 0xFFFF


def _id(customer_id: str, rule_id: str, opened_ms: int) -> str:
    """The same however often the same gauges are read."""
    named = f"{customer_id}\0{rule_id}\0{opened_ms}".encode()
    return hashlib.sha256(named).hexdigest()[:24]
