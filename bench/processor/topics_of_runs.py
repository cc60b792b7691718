"""The topics of the runs: created again for each, so that no run reads records of another."""

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from deploy.topics import create_topics
from shared import topics
from shared.settings import Settings

PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES["laptop"])
_SECONDS_MAX: Final = 60.0
_RETRY_SECONDS: Final = 0.5
#: What is deleted goes from the disk after so long.
_NO_COMPACTION_MS: Final = 24 * 3_600_000


class TopicsOfRuns:
    """Makes and deletes topics on the benchmark's broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def begin(self) -> None:
        """The declared topics, without compaction: it would hide records, and take CPU from the system that runs at the time."""
        create_topics(Settings(kafka_bootstrap=self._bootstrap))
        off = ConfigEntry(
            "log.cleaner.min.compaction.lag.ms", str(_NO_COMPACTION_MS), incremental_operation=AlterConfigOpType.SET
        )
        broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[off])
        self._admin.incremental_alter_configs([broker])[broker].result(_SECONDS_MAX)

    def create(self, deleted: Iterable[str], compacted: Iterable[str]) -> None:
        """Makes those that are not there, as all topics of views are; waits until the deletion of former ones is through."""
        plain, compact = topics.VIEWS.config(topics.PROFILES["laptop"]), topics.VIDEO_VIEWS_CHANGELOG
        wanted = dict.fromkeys(deleted, plain)
        wanted.update(dict.fromkeys(compacted, compact.config(topics.PROFILES["laptop"])))
        there = self._admin.list_topics(timeout=_SECONDS_MAX).topics
        for name, config in wanted.items():
            if name not in there:
                self._create(NewTopic(name, PARTITIONS, 1, config=config))

    def _create(self, topic: NewTopic) -> None:
        deadline = time.monotonic() + _SECONDS_MAX
        while True:
            try:
                self._admin.create_topics([topic], operation_timeout=_SECONDS_MAX)[topic.topic].result()
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def delete(self, names: list[str], group: str | None) -> None:
        """Deletes a run's topics and, where the next run has the same group, its offsets."""
        for answer in self._admin.delete_topics(names, operation_timeout=_SECONDS_MAX).values():
            answer.result()
        if group is not None:
            self._admin.delete_consumer_groups([group], request_timeout=_SECONDS_MAX)[group].result()

    def ends(self, topic: str) -> dict[int, int]:
        """The end offset of each partition."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "bench.ends"})
        try:
            return {
                partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_SECONDS_MAX)[1]
                for partition in range(PARTITIONS)
            }
        finally:
            consumer.close()
