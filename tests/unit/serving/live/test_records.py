"""What is understood of records of topics `live`, `received` and `rejected`."""

from typing import Any

from services.serving.live.minutes import Intake, Place, Refusal
from services.serving.live.records import waiting_of
from shared.codec import RECEIVED
from tests.unit.serving.live.received import received


class Message:
    """A record as the client gives it."""

    def __init__(self, topic: str, value: bytes, key: bytes | None = None, reason: bytes | None = None) -> None:
        self._topic, self._value, self._key, self._reason = topic, value, key, reason

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_000

    def value(self) -> bytes:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def headers(self) -> list[tuple[str, Any]] | None:
        return None if self._reason is None else [("reason", self._reason), ("origin", None)]


def test_what_is_no_live_record_counts_nowhere_and_stops_nothing() -> None:
    place, one = waiting_of(Message("live", b"{}"))
    assert (place, one.offset, one.record) == (Place("live", 1), 7, None)


def test_rejected_input_counts_for_the_customer_only_where_it_is_known_to_be_its_own() -> None:
    cases = [
        (b"acme:v1", b"invalid", Refusal("acme", "invalid")),
        (b"acme:v1", b"unknown_customer", Refusal("", "unknown_customer")),
        (None, b"too_large", Refusal("", "too_large")),
        (b"\xff\xfe:v", b"invalid", Refusal("", "invalid")),
        (b"acme:v1", b"what a newer version says", Refusal("acme", "(other)")),
        (b"acme:v1", None, Refusal("acme", "(other)")),
    ]
    for key, reason, wanted in cases:
        assert waiting_of(Message("rejected", b"", key, reason))[1].record == wanted


def test_what_a_collector_received_waits_by_its_clock_but_not_for_the_future() -> None:
    for bucket_ms, at_ms in ((500, 500), (900_000, 1_000)):
        value = RECEIVED.encode(received(bucket_ms))
        place, one = waiting_of(Message("received", value))
        assert (place.topic, one.at_ms, one.record) == ("received", at_ms, Intake(value))
    assert waiting_of(Message("received", b"{}"))[1].record is None
