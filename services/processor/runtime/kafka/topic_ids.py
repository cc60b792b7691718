"""Topic ids: whether a topic is still the one that a partition was folded from. Kafka gives each new topic an id (KIP-516).

A topic that was deleted and created again has the same name and other records: offsets of the former mean nothing in it. So each
commit keeps the ids of the inputs and of the changelog in `meta`. They are compared at a takeover and while a slot works.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final

import structlog
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from services.processor.engine.application.application import Application
from services.processor.runtime.kafka.refusals import WorkerFailed
from services.rim.kafka.connection import admin_config
from shared.settings import Settings

log = structlog.get_logger(__name__)

#: How often a slot at work asks; an answer serves all partitions that are taken over at about the same time.
ASK_SECONDS: Final = 1.0
#: A takeover waits no longer. The ids are not needed to go on: a slot at work compares them later too.
ANSWER_SECONDS_MAX: Final = 2.0


class TopicReplaced(WorkerFailed):
    """A topic was deleted and created again. Its records have the offsets of the former one."""


class TopicIds:
    """The ids of an application's inputs, changelog and tables, by name."""

    def __init__(self, settings: Settings, application: Application) -> None:
        self._settings = settings
        tables = [table.topic for table in application.tables]
        self._names = [topic.name for topic in (*application.inputs, application.changelog, *tables)]
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None
        self._asked_at: float | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        #: The last answer, a new object each time; None where the broker did not give one.
        self.newest: dict[str, str] | None = None

    def start(self) -> None:
        """Begins to ask every `ASK_SECONDS`, from a thread of its own."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="topic ids", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; waits for the question it may be asking."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2 * ANSWER_SECONDS_MAX)

    def _run(self) -> None:
        while not self._stop.wait(ASK_SECONDS):
            self.now()

    def now(self, *, is_fresh: bool = False) -> dict[str, str] | None:
        """The present ids, or None where the broker does not say in time. Any thread may ask.

        An answer may be `ASK_SECONDS` old, unless it `is_fresh`: then the broker is asked again.
        """
        with self._lock:
            if is_fresh or self._asked_at is None or time.monotonic() - self._asked_at >= ASK_SECONDS:
                self.newest = self._ask()
                self._asked_at = time.monotonic()
            return self.newest

    def _ask(self) -> dict[str, str] | None:
        # Not `or`: a client has a length, and that of an idle one is 0.
        if self._admin is None:
            self._admin = AdminClient(admin_config(self._settings, "topic-ids"))
        answers = self._admin.describe_topics(TopicCollection(self._names), request_timeout=ANSWER_SECONDS_MAX)
        try:
            return {name: str(answer.result(ANSWER_SECONDS_MAX).topic_id) for name, answer in answers.items()}
        except (KafkaException, TimeoutError) as error:
            # A topic that is missing, or a broker that is: the consumer notices. The client asks one broker (the controller, as
            # it says), and keeps to it when it is dead: a new client finds another.
            log.debug("topic_ids_unknown", error=str(error))
            self._admin = None
            return None


def check(application: Application, partition: int, folded: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Raises `TopicReplaced` when a topic is another than the one that the partition was `folded` from."""
    # A table that was created again is read from its beginning: nothing was folded from it.
    tables = {table.topic.name for table in application.tables}
    for name in replaced(folded, present):
        if name in tables:
            continue
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
