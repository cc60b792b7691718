"""SlotQueries: what other threads ask of a slot's partitions. They ask through `questions`; the loop answers between records."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import Query
from services.processor.runtime.kafka.end_offsets import Ends
from services.processor.runtime.partition.answers import Answers
from services.processor.runtime.questions import Looked, Questions, Unanswered
from services.processor.runtime.slot.partitions import Partitions
from services.processor.runtime.slot.releases import Released, Releases
from services.processor.runtime.slot.watches import Watches
from services.processor.runtime.telemetry.status import QuarantinedKeyStatus, Usage, rss_bytes
from shared.schemas.slots import SlotStatus


class SlotQueries:
    """Every method but `questions.ask` and `has` is called by the loop."""

    def __init__(
        self,
        slot: str,
        topics: Sequence[str],
        partitions: Partitions,
        ends: Ends,
        usage: Usage,
        *,
        member_id: Callable[[], str],
    ) -> None:
        self._slot = slot
        self._topics = topics
        self._partitions = partitions
        self._ends = ends
        self._usage = usage
        self._member_id = member_id
        self._watches = Watches()
        self._releases = Releases()
        #: What other threads ask.
        self.questions = Questions()

    def has(self, number: int) -> bool:
        """Whether the slot has the partition."""
        return number in self._partitions

    def turn(self) -> bool:
        """Answers what waits; whether anything did, so that a partition may have something to do."""
        is_asked = self.questions.answer()
        if not self._watches and not self._releases:
            return is_asked
        working = self._partitions.working()
        self._watches.turn({number: one.commit_number for number, one in working.items()})
        self._releases.turn(working)
        return True

    def look(self, lookup: Lookup, key: bytes, number: int) -> tuple[Looked, str]:
        """Answers a lookup, with the member id under which it was read. Raises `Unanswered` or `LookFailed`."""
        answers, member_id = self._answers(number)
        return answers.look(lookup, key, self._ends.of(self._topics, number)), member_id

    def ask(self, query: Query, subject: bytes, number: int) -> tuple[bytes | None, str]:
        """Answers a query from committed rows, with the member id. Raises `Unanswered` or `LookFailed`."""
        answers, member_id = self._answers(number)
        return answers.ask(query, subject), member_id

    def watch(self, query: Query, subject: bytes, number: int, until: float) -> Future[tuple[bytes | None, str]]:
        """Answers the query as soon as there is an answer; raises as `ask` does, the future too.

        Nobody waits for it after `until` (monotonic seconds).
        """
        return self._watches.add(number, partial(self.ask, query, subject, number), until)

    def _answers(self, number: int) -> tuple[Answers, str]:
        if number not in self._partitions:
            raise Unanswered("the partition is another slot's")
        working = self._partitions.working_one(number)
        if working is None:
            raise Unanswered("the partition is being taken")
        # The id first: rows read after it are rows of this membership, or of none.
        member_id = self._member_id()
        return working.answers, member_id

    def status(self) -> SlotStatus:
        """The slot's status for operators."""
        per_record = self._usage.cpu_seconds_per_record
        return SlotStatus(
            slot=self._slot,
            partitions=[
                partition.status(self._ends.of(self._topics, partition.partition)) for partition in self._partitions
            ],
            rss_bytes=rss_bytes(),
            cpu_us_per_record=None if per_record is None else round(per_record * 1_000_000, 2),
        )

    def quarantined(self) -> list[QuarantinedKeyStatus]:
        """The quarantined keys of all partitions at work. Raises `Unanswered`."""
        return [held for working in self._partitions.working().values() for held in working.answers.quarantined()]

    def release_quarantined(self, key: bytes, until: float) -> Future[Released]:
        """Releases a quarantined key, or every one where `key` is empty: see `Releases.add`. Raises `Unanswered`."""
        return self._releases.add(key, self._partitions.working(), until)
