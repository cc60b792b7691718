"""Driver: runs the production `Core` in memory under a hand-set clock, for tests, replays and notebooks.

It replaces the runtime only: the core takes records, folds them and returns checkpoints as in production. A crash drops the core
and builds a new one from the committed changelog, as a takeover does.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from services.processor.engine.application.application import Application, Lookup
from services.processor.engine.application.media_requests import Corrupt, MediaOutcome, MediaRequest, Verifying
from services.processor.engine.application.requests import Query
from services.processor.engine.application.tables import Tables
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.core.core import Core
from services.processor.engine.core.quarantine import QuarantinedKey
from services.processor.engine.inbox import Inbox
from services.processor.engine.record import Output, Record
from services.processor.engine.state.failures import ApplicationFailed
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.meta import META_KEY, Meta, decode_meta, encode_meta
from shared.topics import Topic

#: calm: commits; after: crashes after each commit; before: crashes before each commit, then gives the records again.
Weather = Literal["calm", "crash after commit", "crash before commit"]

#: Every end is confirmed at every time: what was piped is all there is.
_NOW = 0.0


class Driver:
    """One application on one partition, committed after every record and every advance of the clock."""

    def __init__(
        self, application: Application, weather: Weather = "calm", *, partition: int = 0, flush_every: int = 3
    ) -> None:
        self._application = application
        self._partition = partition
        self._weather = weather
        self._flush_every = flush_every
        self._changelog: list[tuple[bytes, bytes | None]] = []
        self._local = MemoryStore()
        self._inputs: dict[str, list[Record]] = {topic.name: [] for topic in application.inputs}
        #: What Kafka has: of an application that takes records by their headers, the core is not given it.
        self._values: dict[str, list[bytes | None]] = {topic.name: [] for topic in application.inputs}
        #: What the topics of global tables have: each process reads all of them.
        self._of_tables: list[Record] = []
        self._committed_outputs: list[Output] = []
        self._commits = 0
        #: The objects that the application had stored, by name; while the store is unreachable, requests wait.
        self.objects: dict[str, bytes] = {}
        self.objects_away = False
        #: Names of objects that the store refuses.
        self.objects_refused: set[str] = set()
        self._start()

    @property
    def clock_ms(self) -> int:
        """The partition's clock."""
        return self._core.clock_ms

    @property
    def rows(self) -> dict[str, int]:
        """Number of existing rows, by the name of their store."""
        return self._core.rows

    @property
    def changelog(self) -> Sequence[tuple[bytes, bytes | None]]:
        """Every change of a row that was committed, as bytes, in order; None deletes."""
        return self._changelog

    @property
    def tallies(self) -> dict[str, int]:
        """The numbers that the application keeps."""
        return self._core.tallies

    @property
    def committed(self) -> Meta:
        """The core's durable position."""
        return self._core.committed

    @property
    def quarantined(self) -> Mapping[bytes, QuarantinedKey]:
        """The quarantined keys."""
        return self._core.quarantined

    def release(self, key: bytes) -> None:
        """Ends the quarantine of a key, and commits that. Raises as `Core.release` does."""
        self._core.release(key)
        self._commit(None, None)

    def outputs(self, topic: Topic) -> list[Output]:
        """What was committed to `topic`, in order."""
        return [output for output in self._committed_outputs if output.topic == topic.name]

    def pipe(
        self,
        topic: Topic,
        key: bytes | None,
        value: bytes | None,
        *,
        at_ms: int,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None:
        """Appends a record to an input at broker time `at_ms`, folds and commits it; or to the topic of a table, and reads it."""
        if topic.name in self._inputs:
            self._append(topic, key, value, at_ms, headers)
        else:
            offset = sum(record.topic == topic.name for record in self._of_tables)
            self._of_tables.append(Record(topic.name, self._partition, offset, at_ms, key, value, headers))
            self._tables.take_records(self._of_tables[-1:])
        self._work(None)

    def lose(self, topic: Topic, before: int) -> None:
        """The records of an input before this offset are gone from Kafka, but for what was read of them already."""
        self._values[topic.name][:before] = [None] * before

    def work_media(self) -> None:
        """Works what is asked for still, and commits it."""
        self._work(None)

    def pipe_all(self, records: Iterable[tuple[Topic, bytes, bytes, int]], *, commit_every: int) -> None:
        """Appends records (topic, key, value, broker time) to the inputs, then folds them, so many to a checkpoint."""
        for topic, key, value, at_ms in records:
            self._append(topic, key, value, at_ms)
        while self._ready():
            self._work(None, records_max=commit_every)

    def advance_to(self, clock_ms: int) -> None:
        """Advances the clock to `clock_ms`, fires the rows that are due, and commits."""
        self._work(clock_ms)

    def look(self, lookup: Lookup, key: bytes) -> bytes | None:
        """Answers a lookup from what is committed."""
        return self._core.look(lookup, key)

    def ask(self, query: Query, subject: bytes) -> bytes | None:
        """Answers a question from what is committed."""
        return self._core.ask(query, subject)

    def restart_with(self, application: Application) -> None:
        """Goes on with another version of the application, as after an upgrade or a rollback. Raises `NewerFormat`."""
        self._application = application
        self._take_over()

    def _append(
        self,
        topic: Topic,
        key: bytes | None,
        value: bytes | None,
        at_ms: int,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None:
        records = self._inputs[topic.name]
        self._values[topic.name].append(value)
        folded_value = None if self._application.by_headers else value
        records.append(Record(topic.name, self._partition, len(records), at_ms, key, folded_value, headers))

    def _work(self, clock_ms: int | None, records_max: int | None = None) -> None:
        self._fold(clock_ms, records_max)
        if self._weather == "crash before commit":
            self._cut(clock_ms, records_max)
            self._take_over()
            self._fold(clock_ms, records_max)
        self._commit(clock_ms, records_max)
        while self._core.is_full:
            self._fold(clock_ms, records_max)
            self._commit(clock_ms, records_max)
        if self._weather == "crash after commit":
            self._take_over()

    def _fold(self, clock_ms: int | None, records_max: int | None) -> None:
        while True:
            try:
                self._core.reject_of_tables()
                self._fold_ready(records_max)
                if clock_ms is not None:
                    self._core.advance_to(clock_ms)
                self._work_media()
            except ApplicationFailed as failure:
                self._core.retry(failure)
                self._read_again()
            else:
                return

    def _fold_ready(self, records_max: int | None) -> None:
        # Called even with nothing to fold: timers may wait that the last checkpoint had no room for.
        while True:
            ready = self._ready()[:records_max]
            taken = self._core.fold(ready)
            self._inbox.remove_folded(taken)
            if taken < len(ready) or not ready or records_max is not None:
                return

    def _work_media(self) -> None:
        """As the runtime does: what follows from one may be asked for at once."""
        while self._core.media_requests and not self.objects_away:
            for key, request in list(self._core.media_requests.items()):
                self._core.media_done(key, request, self._stored(request))

    def _stored(self, request: MediaRequest) -> MediaOutcome:
        if request.name in self.objects_refused:
            return "refused"
        verifying, parts = Verifying(request), list[bytes]()
        for first, count in request.runs:
            for value in self._values[request.topic][first : first + count]:
                if value is None:
                    return "gone"
                parts.append(value)
        try:
            for part in parts:
                verifying.add(part)
            verifying.end()
        except Corrupt:
            return "corrupt"
        content = b"".join(parts)
        if self.objects.setdefault(request.name, content) != content:
            raise AssertionError(f"{request.name} was stored with other bytes")
        return "stored"

    def _ready(self) -> Sequence[Record]:
        for topic, records in self._inputs.items():
            self._inbox.add(topic, records[self._read_to[topic] :], len(records), _NOW)
            self._inbox.confirm(topic, len(records), _NOW)
            self._read_to[topic] = len(records)
        return self._inbox.ready(_NOW)

    def _read_again(self) -> None:
        self._read_to = {topic: self._core.next_offset(topic) or 0 for topic in self._inputs}
        self._inbox.start(self._read_to)

    def _cut(self, clock_ms: int | None, records_max: int | None) -> Checkpoint:
        while True:
            try:
                return self._core.cut()
            except ApplicationFailed as failure:
                self._core.retry(failure)
                self._read_again()
                self._fold(clock_ms, records_max)

    def _commit(self, clock_ms: int | None, records_max: int | None) -> None:
        if not self._core.is_dirty:
            return
        checkpoint = self._cut(clock_ms, records_max)
        self._changelog += checkpoint.changes.items()
        self._changelog.append((META_KEY, encode_meta(checkpoint.meta)))
        self._committed_outputs += checkpoint.outputs
        self._core.commit()
        self._commits += 1
        if self._commits % self._flush_every == 0:
            rows, meta = self._core.begin_flush()
            self._local.write(rows, LocalMeta(meta, len(self._changelog)))
            self._core.end_flush()

    def _take_over(self) -> None:
        stored = self._local.position()
        for key, row in self._changelog[stored.changelog_offset if stored else 0 :]:
            if key == META_KEY and row is not None:
                self._local.write({}, LocalMeta(decode_meta(row), len(self._changelog)))
            else:
                self._local.write({key: row}, None)
        self._start()

    def _start(self) -> None:
        self._tables = Tables(self._application.tables)
        self._tables.take_records(self._of_tables)
        self._core = Core(self._application, self._partition, self._local, tables=self._tables)
        self._inbox = Inbox(self._application)
        self._read_again()
