"""What ends the finalizer's start: what would do harm is refused with what to do, and a stop is not kept waiting."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from deploy.local.postgres import Postgres
from services.finalizer import driver
from services.finalizer.__main__ import EXPECTED, land
from services.finalizer.settings import FinalizerSettings
from services.finalizer.warehouse import tables
from shared.topics import BEACONS, LATE, REJECTED, VIEWS
from tests.integration.finalizer.finalizing import Installation, Topic, a_view
from tests.integration.parts.brokers import broker_with_topics
from tests.integration.parts.installed import PARTITIONS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

#: Lands what the topics hold, unless it is to stop.
Land = Callable[[threading.Event], None]


@pytest.fixture
def installation(tmp_path: Path, postgres: Postgres) -> Iterator[Installation]:
    """An empty warehouse, and a broker whose topic `views` holds what the test has put there."""
    with broker_with_topics(tmp_path / "broker", [VIEWS, BEACONS, LATE, REJECTED]) as broker:
        yield Installation(tmp_path, broker.bootstrap, postgres.create_database(f"refusals_{uuid4().hex}"))


@pytest.fixture
def landing(installation: Installation, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Land:
    """What the process does between its settings and its exit code, on the tests' own Spark session."""
    monkeypatch.setattr(driver, "spark_session", lambda _: nullcontext(spark))
    settings = FinalizerSettings.load(installation.environment(auto_compact="false"))
    context: Any = spark.sparkContext

    def start(stop: threading.Event) -> None:
        # A process that starts knows no table yet.
        context._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        land(settings, stop, once=True)

    return start


def test_what_would_do_harm_is_refused_with_what_to_do(
    installation: Installation, landing: Land, empty_tables: Path
) -> None:
    topic = Topic(installation.bootstrap, "processor")
    topic.send([a_view("one")])
    landing(threading.Event())
    assert installation.serving("SELECT view_id FROM serving.views") == [("one",)]

    # A checkpoint of another generation of the warehouse.
    (installation.folder / "warehouse").rename(installation.folder / "former")
    shutil.copytree(empty_tables, installation.folder / "warehouse")
    with pytest.raises(EXPECTED, match="belongs to another generation of the warehouse"):
        landing(threading.Event())

    # A table whose column has another type; it is left alone.
    shutil.rmtree(installation.folder / "warehouse" / "unparsed")
    of_strings = Schema([Field("reason", PrimitiveType("string")), Field("value", PrimitiveType("string"))])
    DeltaTable.create(installation.folder / "warehouse" / "unparsed", of_strings)
    with pytest.raises(EXPECTED, match="column value of table unparsed is string, this version writes binary"):
        landing(threading.Event())
    assert installation.table("unparsed", "SELECT * FROM t") == []
    shutil.rmtree(installation.folder / "warehouse")
    (installation.folder / "former").rename(installation.folder / "warehouse")

    # Records that are gone before they were landed.
    topic.send([a_view(f"gone-{number}") for number in range(30)])
    admin = AdminClient({"bootstrap.servers": installation.bootstrap})
    partitions = [TopicPartition(VIEWS.name, number, OFFSET_END) for number in range(PARTITIONS)]
    for answer in admin.delete_records(partitions).values():
        answer.result(30)
    topic.send([a_view("after")])
    with pytest.raises(EXPECTED, match="Kafka no longer has records that were never landed"):
        landing(threading.Event())


def test_a_start_that_is_asked_to_stop_ends_before_its_next_table(
    installation: Installation, landing: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, create, created = threading.Event(), tables._create, []

    def creating(*given: Any) -> None:
        create(*given)
        created.append(given[2].name)
        stop.set()

    monkeypatch.setattr(tables, "_create", creating)
    landing(stop)
    assert created == [path.name for path in (installation.folder / "warehouse").iterdir()] == ["views"]
