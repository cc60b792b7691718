"""From uploads to objects and rows through a whole slot, on the client library's own broker in memory."""

import dataclasses
import hashlib
import io
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from services.collector.http.recordings.uploads import UploadLimits, Uploads
from services.collector.intake.recording import Head
from services.collector.sink.kafka_sink import KafkaSink, producer_config
from services.processor.applications.recordings.app import application
from services.processor.applications.recordings.settings import SessionRules
from services.processor.runtime.kafka.topic_ids import TopicIds
from services.processor.runtime.objects.object_store import ObjectStore
from services.processor.runtime.plan import Plan
from services.processor.runtime.slot.worker import Worker
from services.processor.runtime.store.deletions import Deletions
from services.processor.runtime.store.stores import Stores
from services.processor.settings import ProcessorSettings
from shared import codec, topics
from shared.schemas.recording import RecordingRow

#: That broker makes topics of so many partitions, and no others.
PARTITIONS = 4
APPLICATION = application(SessionRules())
SIZES = {("s-1", 1): 50_000, ("s-1", 0): 10_000, ("s-2", 0): 2_500_000, ("s-1", 2): 1_200_000}


class Content:
    """A body that comes in pieces."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    async def readany(self) -> bytes:
        return self._content.read(100_000)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessorSettings]:
    profile = dataclasses.replace(
        topics.PROFILES["laptop"], recording_partitions=PARTITIONS, view_partitions=PARTITIONS
    )
    monkeypatch.setitem(topics.PROFILES, "laptop", profile)  # type: ignore[arg-type]
    # It answers neither the settings of topics nor their ids.
    monkeypatch.setattr(Deletions, "kept_ms", lambda _: 86_400_000)
    monkeypatch.setattr(TopicIds, "now", lambda _: None)
    config: dict[str, Any] = {"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0}
    broker = Producer(config)
    for topic in APPLICATION.topics:
        brokers = broker.list_topics(topic.name, timeout=20).brokers.values()
    yield ProcessorSettings(
        kafka_bootstrap=",".join(f"{one.host}:{one.port}" for one in brokers), topics_profile="laptop"
    )
    # It lives as long as this client of it.
    broker.flush(1)


def content_of(session: str, sequence: int) -> bytes:
    return f"{session}/{sequence} ".encode() * (SIZES[session, sequence] // 6)


async def upload_all(settings: ProcessorSettings) -> None:
    limits = {"queue_records_max": 1_000, "queue_kbytes_max": 64 * 1024}
    config = producer_config(settings, "test", linger_ms=0, **limits)
    sink = KafkaSink(config, ack_seconds_max=60, on_death=print, **limits)
    numbers = itertools.count()
    bounds = UploadLimits(
        payload_bytes_max=10_000_000,
        uploads_max=8,
        chunks_max=16,
        chunk_seconds_max=30,
        uploads_by_customer_max=8,
        uploads_by_address_max=8,
    )
    uploads = Uploads(sink, settings.profile, bounds, new_id=lambda: f"u{next(numbers)}")
    for session, sequence in SIZES:
        content = content_of(session, sequence)
        for _ in range(2 if sequence == 1 else 1):
            head = Head("acme", session, sequence, "text/plain", "", len(content))
            stored = await uploads.receive(head, Content(content), "203.0.113.0", lambda _: 0.0)  # type: ignore[arg-type]
            assert stored.sha256 == hashlib.sha256(content).hexdigest()
    assert await sink.close(30) == 0


def turn_until(worker: Worker, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        worker.turn()


class Rows:
    """What stands in topic `recording_index`."""

    def __init__(self, settings: ProcessorSettings) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": settings.kafka_bootstrap, "group.id": "test", "isolation.level": "read_committed"}
        )
        name = topics.RECORDING_INDEX.name
        self._consumer.assign([TopicPartition(name, number, 0) for number in range(PARTITIONS)])
        self.rows: list[RecordingRow] = []

    def read(self) -> int:
        for message in self._consumer.consume(100, 0.05):
            if message.error() is None:
                self.rows.append(codec.RECORDING.decode(message.value() or b""))
        return len(self.rows)


@pytest.mark.thorough
async def test_what_is_uploaded_is_stored_reported_once_and_found_again_by_the_next_owner(
    settings: ProcessorSettings, tmp_path: Path
) -> None:
    await upload_all(settings)
    objects = tmp_path / "objects"
    settings = settings.model_copy(update={"slot": "test/0", "state_dir": tmp_path / "state"})
    plan = Plan(settings, APPLICATION, objects=ObjectStore(str(objects)))
    rows = Rows(settings)
    former = Worker(plan, Stores(plan))
    former.start()
    turn_until(former, lambda: any(path.is_file() for path in objects.rglob("*")))
    # What is stored by now, and not committed, is stored again, and reported once.
    former.membership.abandon()
    former.close()
    successor_plan = dataclasses.replace(plan, settings=settings.model_copy(update={"state_dir": tmp_path / "other"}))
    successor = Worker(successor_plan, Stores(successor_plan))
    successor.start()
    turn_until(successor, lambda: rows.read() >= len(SIZES))
    turn_until(
        successor, lambda: not any(one.rows.get("media_requests") for one in successor.queries.status().partitions)
    )
    rows.read()
    successor.membership.abandon()
    successor.close()
    places = [(row.session_id, row.sequence) for row in rows.rows]
    assert sorted(places) == sorted(SIZES)
    assert [number for session, number in places if session == "s-1"] == [0, 1, 2]
    for row in rows.rows:
        content = (objects / row.object).read_bytes()
        assert content == content_of(row.session_id, row.sequence)
        assert row.sha256 == hashlib.sha256(content).hexdigest()
