"""Topic ids: whether a topic is still the one that a partition was folded from. Kafka gives each new topic an id (KIP-516).

A topic that was deleted and created again has the same name and other records: offsets of the former mean nothing in it. So
each commit keeps the ids of the inputs and of the changelog in `meta`, and they are compared at a takeover and while a slot works.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final

import structlog
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._topic import TopicDescription

from services.processor.engine.application.application import Application
from services.processor.runtime.kafka.refusals import WorkerFailed
from services.rim.kafka.connection import client_config
from shared.settings import Settings

log = structlog.get_logger(__name__)

#: An answer serves all partitions that are taken at about the same time.
ANSWER_SECONDS: Final = 1.0
#: How often a slot at work asks.
ASK_SECONDS: Final = 1.0
ASK_SECONDS_MAX: Final = 5.0


class TopicReplaced(WorkerFailed):
    """A topic was deleted and created again. Its records cannot be told from those of the former one by their offsets."""


class TopicIds:
    """The ids of an application's inputs and changelog, by name."""

    def __init__(self, settings: Settings, application: Application) -> None:
        self._settings = settings
        self._names = [topic.name for topic in (*application.inputs, application.changelog)]
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None
        self._ids: dict[str, str] = {}
        self._answered_at: float | None = None
        self._asked_at = 0.0
        self._asked: dict[str, Future[TopicDescription]] | None = None

    def now(self) -> dict[str, str]:
        """The present ids; asks the broker, and waits. Any thread may ask. Raises `KafkaException`."""
        with self._lock:
            if self._answered_at is None or time.monotonic() - self._answered_at > ANSWER_SECONDS:
                self._ids = _ids(self._ask())
                self._answered_at = time.monotonic()
            return self._ids

    def news(self) -> dict[str, str] | None:
        """The ids of an answer that has come since the last call, without waiting. Called by the slot's loop, turn after turn."""
        now = time.monotonic()
        if self._asked is None:
            if now - self._asked_at >= ASK_SECONDS:
                self._asked, self._asked_at = self._ask(), now
            return None
        if not all(answer.done() for answer in self._asked.values()):
            return None
        asked, self._asked = self._asked, None
        try:
            return _ids(asked)
        except KafkaException as exception:
            # A topic that is missing, or a broker that is: the consumer notices.
            log.debug("topic_ids_unknown", code=exception.args[0].name())
            return None

    def _ask(self) -> dict[str, Future[TopicDescription]]:
        # Not `or`: a client has a length, and that of an idle one is 0.
        if self._admin is None:
            self._admin = AdminClient(client_config(self._settings, "topic-ids"))
        return self._admin.describe_topics(TopicCollection(self._names), request_timeout=ASK_SECONDS_MAX)


def _ids(answers: Mapping[str, Future[TopicDescription]]) -> dict[str, str]:
    return {name: str(answer.result().topic_id) for name, answer in answers.items()}


def check(application: Application, partition: int, folded: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Raises `TopicReplaced` when a topic is another than the one that the partition was `folded` from."""
    for name in replaced(folded, present):
        at = f"partition {partition} was folded from topic {name} with id {folded[name]}; {name} now has id {present[name]}:"
        if name == application.changelog.name:
            raise TopicReplaced(
                f"{at} it was deleted and created again. This is the changelog: the rows of the application are lost."
                " Restore it, or reset the application."
            )
        raise TopicReplaced(
            f"{at} it was deleted and created again. What was not folded of the former topic is lost. To begin with the new"
            f" topic: python -m services.processor begin-topic {name}"
        )


def replaced(folded: Mapping[str, str], present: Mapping[str, str]) -> Iterable[str]:
    """The topics that have another id now."""
    return [name for name, topic_id in folded.items() if present.get(name, topic_id) != topic_id]
