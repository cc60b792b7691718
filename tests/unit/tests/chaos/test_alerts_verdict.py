"""The verdict of the chaos run of alerts sees a missing, a doubled, an unexpected and a misplaced notification."""

from tests.chaos.alerts_verdict import Arrival, Expected, wrong_events, wrong_messages
from tests.unit.alerts.events import AT_MS, event

OPENED = event(at_ms=AT_MS - 600_000, opened_ms=AT_MS - 600_000)
CLOSED = event("closed", 2)
EXPECTED = [Expected("acme", AT_MS - 600_000, AT_MS)]
FIRST, SECOND = Arrival("k1", OPENED.incident_id, 1), Arrival("k2", OPENED.incident_id, 2)


def test_each_change_once_is_right() -> None:
    assert wrong_events(EXPECTED, [OPENED, CLOSED]) == []
    # A copy under the same key may come, also late.
    assert wrong_messages([OPENED, CLOSED], {"hook": [FIRST, FIRST, SECOND, FIRST]}) == []


def test_a_change_that_is_missing_doubled_or_unexpected_is_seen() -> None:
    assert len(wrong_events(EXPECTED, [OPENED])) == 1
    assert len(wrong_events(EXPECTED, [OPENED, OPENED, CLOSED])) == 1
    late = event(at_ms=AT_MS - 595_000)
    assert len(wrong_events(EXPECTED, [late, CLOSED])) == 2


def test_a_message_that_is_missing_doubled_unexpected_or_out_of_order_is_seen() -> None:
    changes = [OPENED, CLOSED]
    assert len(wrong_messages(changes, {"hook": [FIRST]})) == 1
    assert len(wrong_messages(changes, {"hook": [FIRST, SECOND, Arrival("k3", OPENED.incident_id, 2)]})) == 1
    assert len(wrong_messages(changes, {"hook": [FIRST, SECOND, Arrival("k4", OPENED.incident_id, 3)]})) == 1
    assert len(wrong_messages(changes, {"hook": [SECOND, FIRST]})) == 1
    assert len(wrong_messages(changes, {"hook": [FIRST, SECOND], "mail": []})) == 2
