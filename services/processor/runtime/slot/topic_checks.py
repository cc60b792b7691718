"""TopicChecks: whether the slot's topics are still those that it works with. One that was created again has other records."""

from collections.abc import Mapping
from typing import Final

from services.processor.runtime.kafka.tables import TableReader
from services.processor.runtime.kafka.topic_ids import TopicIds
from services.processor.runtime.slot.partitions import Partitions

#: How often the broker is asked why records are gone, when it does not answer.
EXPLAIN_TRIES_MAX: Final = 5


class TopicChecks:
    """Compares the ids of the topics with those of the slot's partitions and tables, by the loop."""

    def __init__(self, topic_ids: TopicIds, tables: TableReader, partitions: Partitions) -> None:
        self._topic_ids = topic_ids
        self._tables = tables
        self._partitions = partitions
        self._checked: Mapping[str, str] | None = None

    def turn(self) -> None:
        """Compares ids that are new. Raises `TopicReplaced` when a topic was created again under the slot's partitions."""
        present = self._topic_ids.newest
        if present is not None and present is not self._checked:
            self._checked = present
            self._check_partitions(present)
            self._tables.check_topics(present)

    def explain_gone_input(self) -> None:
        """Raises `TopicReplaced` where that is why records are gone."""
        for _ in range(EXPLAIN_TRIES_MAX):
            # An earlier answer may be older than the topic.
            present = self._topic_ids.now(is_fresh=True)
            if present is not None:
                self._check_partitions(present)
                return

    def _check_partitions(self, present: Mapping[str, str]) -> None:
        for working in self._partitions.working().values():
            working.check_topics(present)
