"""One Postgres and one Spark for all integration tests, and a broker for each file: an idle broker costs CPU time, too.

A test that needs isolation makes topics and groups of its own.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from deploy.local import short_spark
from deploy.local.broker import Broker
from deploy.local.postgres import Postgres
from services.finalizer.warehouse import session as finalizer_session
from services.finalizer.warehouse import tables
from shared import topics
from shared.settings import Settings
from shared.topics import Topic
from tests.integration.finalizer.warehouse.warehousing import Warehouse, finalizer_settings
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.brokers import OF_VIEWS, at_work, broker_with_topics
from tests.integration.parts.failing import Scene, scene_on
from tests.integration.parts.installed import PROFILE

#: How many tasks read, make and shuffle the rows of a frame. A task costs more CPU time than the few rows that it computes.
ONE_TASK: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.minPartitionNum": "1",
    # Of a vacuum: it lists a table's folders in so many.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    """What `broker` and `own_broker` have. A file that needs less than all says so: then its brokers start in less time."""
    return topics.ALL


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, broker_topics: Iterable[Topic]) -> Iterator[Broker]:
    """A running broker with the file's topics."""
    with broker_with_topics(tmp_path_factory.mktemp("broker"), broker_topics) as running:
        yield running


@pytest.fixture(scope="module")
def settings(broker: Broker) -> Settings:
    """What all services of this installation share."""
    return Settings(kafka_bootstrap=broker.bootstrap, topics_profile=PROFILE, log_format="console")


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
def own_broker(tmp_path: Path, broker_topics: Iterable[Topic]) -> Iterator[Broker]:
    """A broker that holds nothing of other tests."""
    with broker_with_topics(tmp_path / "broker", broker_topics) as running:
        yield running


@pytest.fixture(scope="module")
def emptied_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker of a file's scenes, each of which begins with empty topics; a test may kill it and start it again."""
    with broker_with_topics(tmp_path_factory.mktemp("emptied"), ()) as running:
        yield running


@pytest.fixture(scope="module")
def scene_topics() -> Iterable[Topic]:
    """What a scene has: the topics of a slot of `video_views`, unless a file says otherwise."""
    return OF_VIEWS


@pytest.fixture
def scene(emptied_broker: Broker, tmp_path: Path, scene_topics: Iterable[Topic]) -> Iterator[Scene]:
    """Empty topics, and slots, feeds and rows that end with the test."""
    with scene_on(at_work(emptied_broker), tmp_path, scene_topics) as made:
        yield made


@pytest.fixture(scope="session")
def warm_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJvm]:
    """A JVM for the Spark of one finalizer process after the other, and then of `spark`. Its files are not among the test's."""
    jvm = WarmJvm(tmp_path_factory.mktemp("jvm"), short_spark.environment(is_shared=True))
    yield jvm
    jvm.end()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, warm_jvm: WarmJvm) -> Iterator[SparkSession]:
    """The finalizer's own Spark session, one for all tests: starting a JVM, and warming it, costs more than most of them."""
    settings = finalizer_settings(tmp_path_factory.mktemp("spark"), "postgresql://nobody@127.0.0.1/none", cores="2")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in warm_jvm.take().items():
            patch.setenv(name, value)
        # As where the finalizer starts the JVM itself.
        patch.setattr(finalizer_session, "is_submitted", lambda: False)
        session = finalizer_session.start(settings)
    session.sparkContext.setLogLevel("OFF")
    for name, value in ONE_TASK.items():
        session.conf.set(name, value)
    yield session
    session.stop()
    warm_jvm.give_back()


@pytest.fixture
def several_tasks(spark: SparkSession) -> Iterator[None]:
    """Two tasks in place of one, as a finalizer has them by default: for tests of what is made of the parts of several."""
    for name in ONE_TASK:
        spark.conf.set(name, "2")
    yield
    for name, value in ONE_TASK.items():
        spark.conf.set(name, value)


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
