"""A process that catches up: what is older than steps are kept is the sum of all partitions, however late each is read."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, TopicPartition

from services.serving.live import landing
from services.serving.live.database import Key, LiveDatabase, LiveMove, Position
from services.serving.live.landing import TOPICS, LiveLanding
from services.serving.live.minutes import Minutes
from services.serving.settings import ServingSettings
from shared.codec import LIVE
from shared.schemas.live import BUCKET_MS
from shared.schemas.live_minute import MINUTE_MS, STEPS, WHOLE, LiveMinute, LiveSteps, add_steps, minute_of
from shared.topics import LIVE as LIVE_TOPIC
from tests.unit.alerts.live import T0, live

SETTINGS = ServingSettings.load(
    {"SERVING_POSTGRES_DSN": "postgresql://localhost/none", "PLAYHEAD_KAFKA_BOOTSTRAP": "localhost:9"}
)
STEPS_KEPT_MS = SETTINGS.live_steps_hours * 60 * MINUTE_MS
TOPIC_IDS = {topic.name: f"id of {topic.name}" for topic in TOPICS}
PLACES = [(topic.name, number) for topic in TOPICS for number in range(topic.partitions(SETTINGS.profile))]


class End:
    """A client's word that a partition was read to its end."""

    def __init__(self, topic: str, partition: int) -> None:
        self._place = topic, partition

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._PARTITION_EOF)

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]


class Gauge:
    """A record of topic `live`: a step in which the partition has 100 viewers and 10 beacons."""

    def __init__(self, partition: int, step: int) -> None:
        self._partition, self._step = partition, step

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return LIVE_TOPIC.name

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._step

    def timestamp(self) -> tuple[int, int]:
        return 1, T0 + self._step * BUCKET_MS

    def value(self) -> bytes:
        at_ms = T0 + self._step * BUCKET_MS
        return LIVE.encode(live(at_ms, self._partition, viewers_now=100, open_now=1, beacons=10))


class Kafka:
    """Gives one batch a reading, then `ended` is called."""

    def __init__(self, batches: Sequence[Sequence[End | Gauge]]) -> None:
        self._batches = deque(batches)
        self.ended: Callable[[], None] = lambda: None

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, STEPS

    def assign(self, places: list[TopicPartition]) -> None:
        pass

    def consume(self, _: int, __: float) -> Sequence[End | Gauge]:
        batch = self._batches.popleft()
        if not self._batches:
            self.ended()
        return batch

    def close(self) -> None:
        pass


class Tables:
    """Steps and minutes as Postgres has them: a minute is that of the steps that are there."""

    def __init__(self) -> None:
        self.steps: Minutes = {}
        self.minutes: dict[tuple[str, str, int], LiveMinute] = {}

    def begin(self, firsts: Mapping[Key, int]) -> dict[Key, Position]:
        return {key: Position(first, 0) for key, first in firsts.items()}

    def land(self, minutes: Minutes, moves: Mapping[Key, LiveMove]) -> None:
        for key, steps in minutes.items():
            add_steps(self.steps.setdefault(key, LiveSteps()), steps)
            self.minutes[key] = minute_of(self.steps[key], self.steps[key].heard)

    def expire(self, *, steps_before: int, pairs_before: int, minutes_before: int) -> int:
        gone = [key for key in self.steps if key[2] < steps_before]
        for key in gone:
            del self.steps[key]
        return len(gone)

    def close(self) -> None:
        pass


def landed(monkeypatch: pytest.MonkeyPatch, *batches: Sequence[End | Gauge]) -> Tables:
    """What is there after these readings, four hours after steps of the records' minute are no longer kept."""
    kafka, tables, died = Kafka(batches), Tables(), list[Exception]()
    monkeypatch.setattr(landing, "Consumer", lambda _: kafka)
    # Each reading is followed by an expiry.
    monkeypatch.setattr(landing, "_EXPIRE_SECONDS", 0)
    thread = LiveLanding(
        SETTINGS,
        cast("LiveDatabase", tables),
        TOPIC_IDS,
        now_ms=lambda: T0 + STEPS_KEPT_MS + 240 * MINUTE_MS,
        on_death=died.append,
    )
    kafka.ended = thread._stop.set
    thread.start()
    thread._thread.join(30)
    assert (died, thread._thread.is_alive()) == ([], False)
    return tables


def of_partition(partition: int) -> list[Any]:
    return [Gauge(partition, step) for step in range(STEPS)]


def test_an_old_minute_whose_partitions_are_read_one_after_another_is_their_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = landed(monkeypatch, of_partition(0), [End(LIVE_TOPIC.name, 0)], of_partition(1))
    whole = tables.minutes["acme", WHOLE, T0 // MINUTE_MS].values[""]
    assert (whole["viewers_now"], whole["beacons"]) == (2 * STEPS * 100, 2 * STEPS * 10)


def test_old_steps_go_once_each_partition_was_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [End(*place) for place in PLACES]
    assert set(landed(monkeypatch, of_partition(0), ends[1:]).steps) == {("acme", WHOLE, T0 // MINUTE_MS)}
    tables = landed(monkeypatch, of_partition(0), ends[1:], ends[:1])
    assert tables.steps == {}
    assert len(tables.minutes) == 1
