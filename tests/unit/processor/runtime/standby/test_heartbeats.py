"""Heartbeats that are refused or do not come: the process ends, or says so."""

from collections.abc import Callable
from typing import Any

import pytest
import structlog
from confluent_kafka import KafkaError, KafkaException

from services.processor.runtime.kafka.refusals import KafkaRefused
from services.processor.runtime.standby import heartbeats as heartbeats_module
from services.processor.runtime.standby.heartbeats import BEAT_SECONDS, UNHEARD_SECONDS_MAX, Heartbeats
from shared.settings import Settings


class Broker:
    """Stands in for both clients: has a beat that is sent at once, unless it refuses it or loses it."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        #: Whether an error comes at once, and not with the delivery.
        self.is_hasty = False
        self.is_losing = False
        self._beats: list[Beat] = []
        self._reports: list[Callable[[], None]] = []

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, *, on_delivery: Any) -> None:
        error = self.error
        if error is not None and self.is_hasty:
            raise KafkaException(error)
        self._reports.append(lambda: on_delivery(error, None))
        if error is None and not self.is_losing:
            self._beats.append(Beat(value))

    def poll(self, seconds: float) -> None:
        reports, self._reports = self._reports, []
        for report in reports:
            report()

    def consume(self, number: int, seconds: float) -> "list[Beat]":
        beats, self._beats = self._beats, []
        return beats


class Beat:
    """A record as the client gives it."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def error(self) -> None:
        return None

    def value(self) -> bytes:
        return self._value


class Clock:
    """Stands in for module `time`."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(heartbeats_module, "Producer", lambda config: made)
    monkeypatch.setattr(heartbeats_module, "Consumer", lambda config: made)
    monkeypatch.setattr(heartbeats_module, "BEAT_SECONDS", 0.0)
    return made


def heartbeats(*, refused_seconds_max: float = 3_600) -> Heartbeats:
    return Heartbeats(Settings(), "app", "test/0", 1, None, refused_seconds_max=refused_seconds_max)


@pytest.mark.parametrize("is_hasty", [False, True], ids=["with the delivery", "at once"])
def test_a_replica_that_may_not_send_ends_after_the_time_for_refusals(broker: Broker, is_hasty: bool) -> None:
    broker.error, broker.is_hasty = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), is_hasty
    with pytest.raises(KafkaRefused, match="refused presence"):
        heartbeats(refused_seconds_max=0)._send()
    patient = heartbeats()
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            patient._send()
    assert [line["event"] for line in lines] == ["refused"], "once, though it sends several a second"
    # Granted in time: the time of a later refusal begins again.
    patient._refused_sends._seconds_max = 0
    broker.error = None
    with pytest.raises(KafkaRefused):
        patient._send()
    patient._refused_sends.clear("presence")
    patient._send()
    assert patient._refused_sends._since == {}


def test_a_replica_that_does_not_hear_itself_says_so_and_when_it_does_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(heartbeats_module, "time", clock)
    made = heartbeats()

    def turn(seconds: float) -> None:
        clock.now += seconds
        made._send()
        made._read()

    with structlog.testing.capture_logs() as lines:
        turn(BEAT_SECONDS)
        assert made.unheard_seconds == 0
        broker.is_losing = True
        for _ in range(3):
            turn(0.6 * UNHEARD_SECONDS_MAX)
        assert made.unheard_seconds == pytest.approx(1.8 * UNHEARD_SECONDS_MAX)
        broker.is_losing = False
        for _ in range(2):
            turn(BEAT_SECONDS)
    assert [line["event"] for line in lines] == ["heartbeats_unheard", "heartbeats_heard"]
