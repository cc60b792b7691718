"""Whether each change of an incident was emitted and notified once, and in order. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shared.schemas.alerts.event import AlertEvent


class Expected(NamedTuple):
    """One incident that a customer must have, ms since 1970."""

    customer: str
    opened_ms: int
    closed_ms: int


class Arrival(NamedTuple):
    """A message as a receiver took it: its idempotency key, and of which change it is."""

    key: str
    incident_id: str
    revision: int


def wrong_events(expected: Iterable[Expected], events: Iterable[AlertEvent]) -> list[str]:
    """What is missing, doubled or unexpected in topic `alert_events`."""
    wanted = Counter(
        (one.customer, change, at_ms)
        for one in expected
        for change, at_ms in (("opened", one.opened_ms), ("closed", one.closed_ms))
    )
    found = Counter((one.customer_id, str(one.change), one.at_ms) for one in events)
    wrong = [f"missing: {one}" for one in wanted if one not in found]
    wrong += [f"unexpected: {one}" for one in found if one not in wanted]
    return wrong + [f"doubled: {one}, {number} times" for one, number in found.items() if number > 1]


def wrong_messages(events: Iterable[AlertEvent], arrivals: Mapping[str, Sequence[Arrival]]) -> list[str]:
    """What of the changes a receiver was not notified of, or twice under two keys, or out of order. Copies under one key may be."""
    changes = {(one.incident_id, one.revision) for one in events}
    wrong = []
    for receiver, got in arrivals.items():
        keys: dict[tuple[str, int], set[str]] = defaultdict(set)
        newest: dict[str, int] = {}
        known: set[str] = set()
        for one in got:
            keys[one.incident_id, one.revision].add(one.key)
            if one.key not in known and one.revision < newest.get(one.incident_id, 0):
                wrong.append(f"{receiver}: revision {one.revision} of {one.incident_id} came after a later one")
            known.add(one.key)
            newest[one.incident_id] = max(newest.get(one.incident_id, 0), one.revision)
        wrong += [f"{receiver}: not notified of {one}" for one in sorted(changes - keys.keys())]
        wrong += [f"{receiver}: notified of {one}, which was not" for one in sorted(keys.keys() - changes)]
        wrong += [f"{receiver}: two messages of {one}" for one, several in sorted(keys.items()) if len(several) > 1]
    return wrong
