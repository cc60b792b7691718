"""Outputs: reads what stands committed in the processor's output topics, on from where it was."""

from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

from shared import codec, topics
from shared.schemas.live import Live
from shared.schemas.view import View
from tests.chaos.feed import PARTITIONS
from tests.chaos.verdict import Observed
from tests.integration.parts.feed import UNHURRIED

READ: Final = (topics.VIEWS, topics.LIVE, topics.LATE, topics.REJECTED)


class Outputs:
    """Reads like any downstream consumer: committed records alone."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "chaos-outputs",
                "enable.auto.commit": False,
                # The broker is killed on purpose: that it is away is no news.
                "log_level": 0,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                **UNHURRIED,
            }
        )
        self._consumer.assign([TopicPartition(topic.name, at, 0) for topic in READ for at in range(PARTITIONS)])
        self._rows: list[View] = []
        self._live: list[Live] = []
        self._counts = {topics.LATE.name: 0, topics.REJECTED.name: 0}

    def read(self) -> Observed:
        """Everything committed until about now."""
        while messages := self._consumer.consume(5_000, 0.3):
            for message in messages:
                self._take(message)
        return Observed(self._rows, self._live, self._counts[topics.LATE.name], self._counts[topics.REJECTED.name])

    def _take(self, message: Message) -> None:
        assert message.error() is None, message.error()
        topic, value = message.topic(), message.value()
        assert topic is not None
        if topic == topics.VIEWS.name:
            assert value is not None
            self._rows.append(codec.VIEW.decode(value))
        elif topic == topics.LIVE.name:
            assert value is not None
            self._live.append(codec.LIVE.decode(value))
        else:
            self._counts[topic] += 1

    def close(self) -> None:
        """Ends the consumer."""
        self._consumer.close()
