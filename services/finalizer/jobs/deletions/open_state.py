"""Has the processor delete its state of a viewer, or of a customer: by a record of each key in its inputs."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from services.finalizer.jobs.deletions import forgetting_records
from services.finalizer.jobs.deletions.forgetting_records import Ends
from shared.partitioning import recording_key
from shared.settings import Settings
from shared.topics import BEACONS, RECORDINGS, Topic


class OpenState:
    """One a process. What was produced is remembered; after a restart it is produced again, which deletes nothing else."""

    def __init__(self, settings: Settings, *, has_recordings: bool) -> None:
        self._settings: Final = settings
        self._has_recordings = has_recordings
        self._produced: dict[str, tuple[Mapping[str, int], Ends]] = {}

    def delete(
        self, request_id: str, customer_id: str, keys: Iterable[bytes], sessions: Iterable[str]
    ) -> Mapping[str, int] | None:
        """How many keys, by topic, once the processor has committed beyond all of their records; None: it has not yet.

        An application that never ran holds nothing. Raises `KafkaException`.
        """
        if request_id not in self._produced:
            of_recordings = [recording_key(customer_id, one) for one in sessions] if self._has_recordings else []
            records: Iterable[tuple[Topic, bytes]] = chain(
                ((BEACONS, key) for key in keys), ((RECORDINGS, key) for key in of_recordings)
            )
            produced, ends_of = forgetting_records.produce(self._settings, request_id, records)
            self._produced[request_id] = {BEACONS.name: 0} | produced, ends_of
        counts, ends = self._produced[request_id]
        if not forgetting_records.are_folded(self._settings, ends):
            return None
        del self._produced[request_id]
        return counts
