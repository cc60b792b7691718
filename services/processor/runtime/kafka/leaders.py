"""Leaders: which broker leads each partition, so that questions to one broker do not wait for another."""

import threading
import time
from collections.abc import Iterable
from typing import Final

import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.rim.kafka.connection import client_config
from shared.settings import Settings

log = structlog.get_logger(__name__)

#: How old the known leaders may be: an election takes longer than this only to be noticed.
ASK_SECONDS: Final = 5.0
#: The client asks one broker, which may hang.
ANSWER_SECONDS_MAX: Final = 2.0


class Leaders:
    """The leaders of some topics' partitions, as a thread of its own asks for them. A leader may have changed since."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topics: frozenset[str] = frozenset()
        self._nodes: dict[tuple[str, int], int] = {}
        self._wanted = threading.Event()
        self._is_stopping = False
        self._asked_at = 0.0
        self._admin: AdminClient | None = None
        self._thread = threading.Thread(target=self._run, name="leaders", daemon=True)

    def start(self) -> None:
        """Begins to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; waits for the question it may be asking."""
        self._is_stopping = True
        self._wanted.set()
        self._thread.join(2 * ANSWER_SECONDS_MAX)

    def of(self, partitions: Iterable[tuple[str, int]]) -> dict[int | None, list[tuple[str, int]]]:
        """Partitions (topic and number) by the node that leads them; None where that is not known yet."""
        found: dict[int | None, list[tuple[str, int]]] = {}
        for at in partitions:
            found.setdefault(self._nodes.get(at), []).append(at)
        topics = frozenset(topic for topic, _ in partitions)
        if topics != self._topics or time.monotonic() - self._asked_at >= ASK_SECONDS:
            self._topics = topics
            self._wanted.set()
        return found

    def _run(self) -> None:
        while not self._is_stopping:
            self._wanted.wait()
            self._wanted.clear()
            self._asked_at = time.monotonic()
            for topic in self._topics:
                self._ask(topic)

    def _ask(self, topic: str) -> None:
        # Not `or`: a client has a length, and that of an idle one is 0.
        if self._admin is None:
            self._admin = AdminClient(client_config(self._settings, "leaders"))
        try:
            described = self._admin.list_topics(topic, timeout=ANSWER_SECONDS_MAX).topics[topic].partitions
        except KafkaException as error:
            log.debug("leaders_unknown", topic=topic, error=str(error))
            # A new client finds another broker.
            self._admin = None
            return
        known = {(topic, number): one.leader for number, one in described.items() if one.leader >= 0}
        self._nodes = {at: node for at, node in self._nodes.items() if at[0] != topic} | known
