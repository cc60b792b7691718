"""The processor's own fold over records of table `bronze`: its application on its core, in memory, without Kafka.

It is the only module of the finalizer that imports the processor: a second fold could give other results.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from services.rim.process import compiled

# Each of Spark's Python processes chooses as a slot does, before it imports the fold.
BUILD: Final = compiled.choose("processor", os.environ)

from services.processor.catalogue import APPLICATIONS  # noqa: E402
from services.processor.engine.application.application import Application  # noqa: E402
from services.processor.engine.core.core import Core  # noqa: E402
from services.processor.engine.record import Output, Record  # noqa: E402
from services.processor.engine.state.failures import ApplicationFailed  # noqa: E402
from services.processor.engine.state.local import LocalMeta, MemoryStore  # noqa: E402
from services.rim.process import garbage  # noqa: E402
from shared.topics import BEACONS, VIEWS  # noqa: E402

#: Records folded between two checkpoints: what is open at once stays small.
CHECKPOINT_RECORDS: Final = 5_000


def refuse_wrong_settings(environ: Mapping[str, str]) -> None:
    """Raises `SettingsError` where the application's settings (`VIDEO_VIEWS_...`) cannot be used."""
    APPLICATIONS["video_views"](environ)


def columns_of(batches: Iterable[Any], environ: Mapping[str, str]) -> Iterator[dict[str, list[Any]]]:
    """Arrow batches of `bronze`, each Kafka partition's in the order of its offsets -> columns of topic `views`' records.

    Columns in: kafka_partition, kafka_offset, kafka_timestamp_ms, key, value; out: partition, offset, timestamp_ms, value,
    where the place is that of the last record before the row was finished.
    """
    garbage.look_seldom(garbage.FOLD_OBJECTS_MAX)
    application = APPLICATIONS["video_views"](environ)
    replay: Replay | None = None
    for batch in batches:
        folded: dict[str, list[Any]] = {"partition": [], "offset": [], "timestamp_ms": [], "value": []}
        columns = batch.to_pydict()
        rows = zip(*(columns[name] for name in COLUMNS), strict=True)
        for partition, offset, timestamp_ms, key, value in rows:
            if replay is None or replay.partition != partition:
                _append_rows(replay, folded)
                replay = Replay(application, partition)
            replay.fold(Record(BEACONS.name, partition, offset, timestamp_ms, key, value))
            if replay.waiting >= CHECKPOINT_RECORDS:
                _append_rows(replay, folded)
        # The last of a batch too, so that nothing is left when batches end.
        _append_rows(replay, folded)
        yield folded


COLUMNS: Final = ("kafka_partition", "kafka_offset", "kafka_timestamp_ms", "key", "value")


class Replay:
    """One Kafka partition's records through a core."""

    def __init__(self, application: Application, partition: int) -> None:
        self.partition = partition
        self._local = MemoryStore()
        self._core = Core(application, partition, self._local)
        self._records: list[Record] = []
        #: Place of the last record taken.
        self.offset = -1
        self.timestamp_ms = 0

    def fold(self, record: Record) -> None:
        """The partition's next record."""
        self._records.append(record)
        self.offset, self.timestamp_ms = record.offset, record.timestamp_ms

    @property
    def waiting(self) -> int:
        """Records taken and not yet folded."""
        return len(self._records)

    def rows(self) -> list[bytes]:
        """Folds what waits and returns the rows that were finished: values of topic `views`.

        The clock advances to the last record's append time and no further: the processor writes the views that are not finished by
        then.
        """
        rows: list[bytes] = []
        left = self._records
        while True:
            try:
                taken = self._core.fold(left)
                checkpoint = self._core.cut()
            except ApplicationFailed as failure:
                # What failed is rejected, as the processor did; the rest is folded again from the last checkpoint.
                self._core.retry(failure)
                left = self._records
                continue
            rows += [value for output in checkpoint.outputs if (value := _row(output)) is not None]
            self._core.commit()
            changed, meta = self._core.begin_flush()
            self._local.write(changed, LocalMeta(meta, 0))
            self._core.end_flush()
            left = left[taken:]
            if not left and not self._core.is_full:
                self._records = []
                return rows


def _row(output: Output) -> bytes | None:
    return output.value if output.topic == VIEWS.name else None


def _append_rows(replay: Replay | None, folded: dict[str, list[Any]]) -> None:
    if replay is None or not replay.waiting:
        return
    for value in replay.rows():
        folded["partition"].append(replay.partition)
        folded["offset"].append(replay.offset)
        folded["timestamp_ms"].append(replay.timestamp_ms)
        folded["value"].append(value)
