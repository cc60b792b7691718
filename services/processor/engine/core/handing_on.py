"""HandingOn: records of a key whose partition is another are produced to it, in the checkpoint that has taken them.

The number of partitions has grown, and a producer that does not know, or a record from before, goes by the former one.
"""

from services.processor.engine.application.application import Application
from services.processor.engine.core.context import CoreContext
from services.processor.engine.record import Record
from shared.partitioning import partition_of


class HandingOn:
    """Records that one core hands on. Each arrives once: it is part of the transaction that commits the input's offset."""

    def __init__(self, application: Application, context: CoreContext, partitions: int) -> None:
        self._topics = {topic.name: topic for topic in application.inputs}
        self._context = context
        self._partitions = partitions

    def takes(self, record: Record) -> bool:
        """Whether the record is of another partition; then it is on its way there."""
        key = record.key
        if key is None or partition_of(key, self._partitions) == self._context.partition:
            return False
        self._context.emit(self._topics[record.topic], key, record.value, by_key=True)
        return True
