"""The figure of records behind an open transaction: a client that keeps failing is replaced, and the figure goes on."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.finalizer.streaming import stalls
from services.rim.telemetry.metrics import gauge
from shared.metrics import FINALIZER_STALLED_RECORDS
from shared.settings import Settings


def test_a_client_that_keeps_a_former_epoch_of_the_leaders_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[Any] = []

    def answer(client: Any, topics: Sequence[str]) -> Mapping[str, int]:
        if client not in clients:
            clients.append(client)
        if len(clients) == 1:
            raise KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH))
        return dict.fromkeys(topics, 7)

    monkeypatch.setattr(stalls, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(stalls, "stalled", answer)
    looked = stalls.Stalls(Settings(kafka_bootstrap="127.0.0.1:1"), ["views"])
    looked.look()
    looked.look()
    assert len(clients) == 2
    assert gauge(FINALIZER_STALLED_RECORDS).labels("views")._value.get() == 7
