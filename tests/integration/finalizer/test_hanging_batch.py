"""A batch that hangs while nothing lags is seen by the age of the batch."""

import threading
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from deploy.local.broker import Broker
from services.finalizer.streaming import stream
from services.finalizer.streaming.batches import Batches
from services.finalizer.streaming.stream import Stream
from services.rim.telemetry.metrics import gauge
from shared.metrics import FINALIZER_BATCH_AGE_SECONDS, FINALIZER_LAG_RECORDS
from shared.topics import Topic
from tests.integration.parts.installed import kafka
from tests.integration.parts.slots import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return ()


def test_a_batch_that_hangs_without_lag_has_an_age_that_grows(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = f"hanging-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1)])[topic].result()
    send(broker, topic)
    landed, goes_on, stop = threading.Semaphore(0), threading.Event(), threading.Event()

    def work(_: DataFrame, batch_id: int) -> int:
        landed.release()
        if batch_id == 1:
            goes_on.wait(300)
        return 1

    batches = Batches(topic, work, stop)
    source = stream.read(spark, kafka(broker.bootstrap), topic, offsets_max=100, starting="earliest")
    query = source.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(batches).start()
    running = threading.Thread(
        target=stream.run, args=([Stream(query, batches)], stop), kwargs={"drain_seconds_max": 300}
    )
    running.start()
    age, lag = gauge(FINALIZER_BATCH_AGE_SECONDS).labels(topic), gauge(FINALIZER_LAG_RECORDS).labels(topic)
    try:
        assert landed.acquire(timeout=120)
        wait_until(lambda: query.lastProgress is not None, "the first batch has ended")
        send(broker, topic)
        assert landed.acquire(timeout=120)
        wait_until(lambda: age._value.get() > 2, "the age of the batch is seen")
        before = age._value.get()
        wait_until(lambda: age._value.get() > before, "it grows")
        assert lag._value.get() == 0
        goes_on.set()
        wait_until(lambda: age._value.get() < before, "the batch has ended")
    finally:
        goes_on.set()
        stop.set()
        running.join(300)


def send(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"record")
    assert producer.flush(60) == 0
