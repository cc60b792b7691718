"""Reports topics that an open transaction blocks: a reader of committed records waits there, and sees no lag."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from services.rim.kafka.connection import client_config
from services.rim.telemetry.metrics import gauge
from shared.metrics import FINALIZER_STALLED_RECORDS
from shared.settings import Settings

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 10.0
ANSWER_SECONDS_MAX: Final = 5.0


class Stalls:
    """Exports, by topic, how many offsets lie behind an open transaction."""

    def __init__(self, settings: Settings, topics: Sequence[str]) -> None:
        self._topics = topics
        self._settings = settings
        self._admin = self._new_admin()
        self._next_look = 0.0

    def look(self) -> None:
        """Asks the broker, if it is time again. A broker that does not answer leaves the last figures."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_SECONDS
        try:
            for topic, records in stalled(self._admin, self._topics).items():
                gauge(FINALIZER_STALLED_RECORDS).labels(topic).set(records)
        except KafkaException as error:
            log.warning("offsets_unknown", error=error.args[0].name())
            # A client whose broker was fenced keeps a former epoch of the leaders, and never asks again (FENCED_LEADER_EPOCH).
            self._admin = self._new_admin()

    def _new_admin(self) -> AdminClient:
        return AdminClient(client_config(self._settings, "finalizer-stalls"))


def stalled(admin: AdminClient, topics: Sequence[str]) -> Mapping[str, int]:
    """By topic, the offsets between its last stable offset and its end. Raises `KafkaException`."""
    known = admin.list_topics(timeout=ANSWER_SECONDS_MAX).topics
    wanted = {
        TopicPartition(topic, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for topic in topics
        for partition in (known[topic].partitions if topic in known else ())
    }
    found = dict.fromkeys(topics, 0)
    for sign, isolation in ((1, IsolationLevel.READ_UNCOMMITTED), (-1, IsolationLevel.READ_COMMITTED)):
        asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=ANSWER_SECONDS_MAX)
        for partition, answer in asked.items():
            found[partition.topic] += sign * answer.result().offset
    # The two are asked one after the other: a commit between them is no negative stall.
    return {topic: max(0, records) for topic, records in found.items()}
