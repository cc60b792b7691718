"""The finalizer as a process on a cluster of Spark, with the views of another Kafka."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyspark
import pytest

from deploy.local import short_spark
from deploy.local.broker import Broker
from deploy.local.paths import SPARK_JARS
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from deploy.topics import create_topics
from shared.topics import BEACONS, LATE, REJECTED, VIEWS
from tests.integration.finalizer.expecting import expect_raw, expect_truth
from tests.integration.finalizer.finalizing import (
    START_SECONDS_MAX,
    Installation,
    Topic,
    a_view,
    newest,
    raw_records,
    wait_for_exit,
)
from tests.integration.parts.brokers import broker_with_topics
from tests.integration.parts.installed import kafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2400)]

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker of one's own, so that topic `views` holds what the test has put there."""
    with broker_with_topics(tmp_path / "broker", [VIEWS, BEACONS, LATE, REJECTED]) as running:
        yield running.bootstrap


@pytest.fixture
def installation(tmp_path: Path, bootstrap: str, postgres: Postgres) -> Installation:
    """An empty warehouse and serving database."""
    return Installation(tmp_path, bootstrap, postgres.create_database(f"finalizer_{uuid4().hex}"))


@pytest.fixture
def views_bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker of another cluster, which has the views alone."""
    with Broker(tmp_path / "views-broker") as running:
        create_topics(kafka(running.bootstrap), [VIEWS])
        yield running.bootstrap


def test_it_runs_unchanged_on_a_cluster_with_the_views_from_another_kafka(
    installation: Installation, views_bootstrap: str
) -> None:
    views = [a_view(f"view-{number}", hour=number % 3, watch_ms=number) for number in range(30)]
    Topic(views_bootstrap, "mirror").send(views)
    # What the first one still has of them is not asked for.
    first = Topic(installation.bootstrap, "processor")
    first.send([a_view("of-the-first")])
    sent = raw_records(12)
    first.send_raw(sent)
    home = Path(pyspark.__file__).parent
    environment = {
        **installation.environment(views_bootstrap=views_bootstrap),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    # The jars come with the job alone, as on a cluster that has none of them, and its Java is that of the machine.
    for name in short_spark.OF_ARCHIVES:
        environment.pop(name, None)
    url = f"spark://127.0.0.1:{free_port()}"
    port = url.rpartition(":")[2]

    def spark_class(name: str, *arguments: str) -> Child:
        argv = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        log = installation.folder / f"{name}-{len(started)}.log"
        return Child(name, argv, log_file=log, env=environment)

    started: list[Child] = []
    try:
        master = spark_class("master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", str(free_port()))
        started.append(master)
        master.start()
        worker = spark_class(
            *("worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "1400m", "--webui-port", "0"),
            *("--work-dir", str(installation.folder / "work"), url),
        )
        started.append(worker)
        worker.start()
        log = installation.folder / "master.Master-0.log"

        def workers() -> set[str]:
            """By their addresses: one that is not answered in time registers again."""
            return set(re.findall(r"Registering worker (\S+)", log.read_text()))

        master.wait_until(lambda: len(workers()) == 1, START_SECONDS_MAX, "a worker")
        jars = ",".join(map(str, sorted(SPARK_JARS.glob("*.jar"))))
        submit = Child(
            "spark-submit",
            [
                *(str(home / "bin" / "spark-submit"), "--master", url, "--jars", jars, "--driver-memory", "1g"),
                # The worker has two executors, each a process of one core.
                *("--conf", "spark.executor.memory=600m", "--conf", "spark.executor.cores=1"),
                *("--conf", "spark.driver.host=127.0.0.1"),
                *(str(REPOSITORY / "services" / "finalizer" / "__main__.py"), "stream", "--once"),
            ],
            log_file=installation.folder / "finalizer.log",
            env=environment,
        )
        started.append(submit)
        submit.start()
        wait_for_exit(submit)
        assert submit.exit_code == 0
        assert log.read_text().count("Launching executor") >= 2, "the work was not done by executors"
    finally:
        for child in reversed(started):
            child.kill()
    expect_truth(installation, newest(views))
    expect_raw(installation, sent)
