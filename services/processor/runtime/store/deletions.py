"""Deletions: how long the changelog keeps them. Asks the broker each time, since the operator may change it after boot."""

import threading
import time
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.rim.kafka.connection import client_config, describe_topics
from shared.settings import Settings
from shared.topics import Topic

#: An answer serves all partitions that are taken at about the same time.
ANSWER_SECONDS: Final = 5.0
ASK_SECONDS_MAX: Final = 5.0
_SETTING: Final = "delete.retention.ms"


class Deletions:
    """Asks the broker. May be asked from any thread."""

    def __init__(self, settings: Settings, changelog: Topic) -> None:
        self._settings = settings
        self._changelog = changelog
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None
        self._kept_ms = 0
        self._answered_at: float | None = None

    def kept_ms(self) -> int:
        """For how long at least after its append a reader finds a deletion, ms. Raises `KafkaException`."""
        with self._lock:
            if self._answered_at is None or time.monotonic() - self._answered_at > ANSWER_SECONDS:
                # Not `or`: a client has a length, and that of an idle one is 0.
                if self._admin is None:
                    self._admin = AdminClient(client_config(self._settings, "deletions"))
                name = self._changelog.name
                answer = describe_topics(self._admin, [name], seconds_max=ASK_SECONDS_MAX)[name]
                try:
                    self._kept_ms = int(answer.result()[_SETTING])
                except KafkaException:
                    # The client asks one broker (the controller, as it says), and keeps to it when it is dead: a new one finds
                    # another.
                    self._admin = None
                    raise
                self._answered_at = time.monotonic()
            return self._kept_ms
