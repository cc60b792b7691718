"""One broker and one Postgres for all integration tests; a test that needs isolation makes topics and groups of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from deploy.local.broker import Broker
from deploy.local.postgres import Postgres
from services.finalizer.warehouse import session as finalizer_session
from services.finalizer.warehouse import tables
from shared.settings import Settings
from tests.integration.brokers import broker_with_topics
from tests.integration.failing import AUTHORIZER, Scene, scene_on
from tests.integration.finalizing import spark_environment
from tests.integration.warehousing import Warehouse, finalizer_settings


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker with every declared topic in profile laptop."""
    with broker_with_topics(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def settings(broker: Broker) -> Settings:
    """What all services of this installation share."""
    return Settings(kafka_bootstrap=broker.bootstrap, topics_profile="laptop", log_format="console")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A running Postgres server; `postgres.create_database(name)` gives a database of one's own."""
    server = Postgres(tmp_path_factory.mktemp("postgres"))
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker that holds nothing of other tests."""
    with broker_with_topics(tmp_path / "broker") as running:
        yield running


@pytest.fixture(scope="session")
def emptied_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker of all scenes, each of which begins with empty topics; a test may kill it and start it again."""
    with Broker(tmp_path_factory.mktemp("emptied"), properties=AUTHORIZER) as running:
        yield running


@pytest.fixture
def scene(emptied_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    """Empty topics, and slots, feeds and rows that end with the test."""
    with scene_on(emptied_broker, tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The finalizer's own Spark session, one for all tests: starting a JVM costs more than most of them."""
    settings = finalizer_settings(tmp_path_factory.mktemp("spark"), "postgresql://nobody@127.0.0.1/none", cores="2")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_environment().items():
            patch.setenv(name, value)
        session = finalizer_session.start(settings)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def empty_tables(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The folder of a warehouse whose tables have no rows: a copy costs less than to create them."""
    folder = tmp_path_factory.mktemp("empty") / "warehouse"
    tables.ensure(spark, str(folder), auto_compact=False)
    return folder


@pytest.fixture
def warehouse(tmp_path: Path, spark: SparkSession, postgres: Postgres, empty_tables: Path) -> Iterator[Warehouse]:
    """An empty one on the tests' own Spark session."""
    dsn = postgres.create_database(f"warehouse_{uuid4().hex}")
    shutil.copytree(empty_tables, tmp_path / "warehouse")
    opened = Warehouse(spark, finalizer_settings(tmp_path, dsn, slices_max="64"), tmp_path)
    yield opened
    opened.close()
