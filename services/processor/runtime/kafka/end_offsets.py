"""Asks the partition leaders for the end offsets of the input, so that cores know when they have read everything."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import structlog
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from services.processor.runtime.kafka.leaders import Leaders
from services.rim.kafka.connection import admin_config
from shared.settings import Settings

log = structlog.get_logger(__name__)

ASK_SECONDS: Final = 0.25
ANSWER_SECONDS_MAX: Final = 5.0
#: Asks in a row with an end unknown after which the client is replaced.
FAILED_ASKS_MAX: Final = 8


@dataclass(frozen=True)
class End:
    """The end of an input partition as its leader confirmed it after `asked_at` (monotonic seconds)."""

    offset: int
    asked_at: float


class _Question(NamedTuple):
    """What one broker was asked, and when (monotonic seconds)."""

    asked_at: float
    answers: Mapping[TopicPartition, Future[Any]]

    @property
    def is_over(self) -> bool:
        return all(answer.done() for answer in self.answers.values())


class Ends:
    """Keeps the confirmed ends of the partitions that `watch` names, from a thread of its own.

    While the broker is unreachable there is no confirmation, so no clock advances: an outage makes no view look idle. Each broker
    has a request of its own: one that hangs stops the clocks of its own partitions alone.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = AdminClient(admin_config(settings, "ends"))
        self._leaders = Leaders(settings)
        #: The leaders of the partitions when they were asked last, as far as they were known.
        self._led_by: dict[tuple[str, int], int] = {}
        #: The question that is under way, and how many failed one after the other, by node.
        self._questions: dict[int | None, _Question] = {}
        self._failed_asks: Counter[int | None] = Counter()
        self._watched: tuple[tuple[str, int], ...] = ()
        self._ends: dict[tuple[str, int], End] = {}
        #: How many answers have been taken in: who remembers it sees whether there is news.
        self.answers = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ends", daemon=True)

    def start(self) -> None:
        """Begins to ask."""
        self._leaders.start()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join(2 * ANSWER_SECONDS_MAX)
        self._leaders.stop()

    def watch(self, partitions: Iterable[tuple[str, int]]) -> None:
        """From now on these (topic, partition) pairs are asked for."""
        self._watched = tuple(partitions)

    def of(self, topics: Iterable[str], partition: int) -> dict[str, End]:
        """The newest confirmed ends of a partition, by topic, as far as there are."""
        known = {topic: self._ends.get((topic, partition)) for topic in topics}
        return {topic: end for topic, end in known.items() if end is not None}

    def _run(self) -> None:
        while not self._stop.wait(ASK_SECONDS):
            self._ask()

    def _ask(self) -> None:
        by_leader = self._leaders.of(self._watched)
        led_by = {at: node for node, partitions in by_leader.items() if node is not None for at in partitions}
        if any(self._led_by.get(at, node) != node for at, node in led_by.items()):
            # The client remembers the former leader, and waits for it with all partitions of a request.
            self._renew_client()
        self._led_by = led_by
        for node, partitions in by_leader.items():
            if node not in self._questions:
                self._questions[node] = self._question(partitions)
        # Most brokers answer at once; the answers of the others are taken in later.
        wait([one for question in self._questions.values() for one in question.answers.values()], ASK_SECONDS)
        for node, question in [one for one in self._questions.items() if one[1].is_over]:
            self._questions.pop(node, None)
            self._take_answers(node, question)

    def _question(self, partitions: Iterable[tuple[str, int]]) -> _Question:
        asked_at = time.monotonic()
        request = {TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in partitions}  # type: ignore[no-untyped-call]
        answers = self._admin.list_offsets(
            request, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=ANSWER_SECONDS_MAX
        )
        return _Question(asked_at, answers)

    def _take_answers(self, node: int | None, question: _Question) -> None:
        failed = 0
        for at, answer in question.answers.items():
            try:
                end = End(answer.result().offset, question.asked_at)
            except KafkaException as exception:
                failed += 1
                log.debug("end_unknown", topic=at.topic, partition=at.partition, code=exception.args[0].name())
                continue
            known = self._ends.get((at.topic, at.partition))
            # The former leader may answer after the present one.
            if known is None or known.asked_at < end.asked_at:
                self._ends[at.topic, at.partition] = end
        self.answers += 1
        self._failed_asks[node] = self._failed_asks[node] + 1 if failed else 0
        if self._failed_asks[node] >= FAILED_ASKS_MAX:
            # After an outage the client may have forgotten the leaders (_NOENT), or have a former epoch of them
            # (FENCED_LEADER_EPOCH), and it never asks for them again: without another client the clocks would stop for ever.
            log.warning("ends_client_renewed", unknown=failed)
            self._renew_client()

    def _renew_client(self) -> None:
        self._admin = AdminClient(admin_config(self._settings, "ends"))
        self._failed_asks.clear()
        # Their answers would be those of the former client, if they came at all.
        self._questions.clear()
