"""A warehouse and its checkpoint in an object store, over `s3a://` and a real S3 server."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable

from deploy.local import short_spark
from deploy.local.paths import ROOT, S3_JARS, SPARK_JARS
from deploy.local.postgres import Postgres
from shared.topics import BEACONS, LATE, REJECTED, VIEWS
from tests.integration.finalizer.expecting import expect_raw, expect_truth
from tests.integration.finalizer.finalizing import Installation, RawRecord, Topic, a_view, newest
from tests.integration.finalizer.object_server import BUCKET, ObjectServer, object_server
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.brokers import broker_with_topics

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def documented_configuration() -> str:
    """The lines for `spark-defaults.conf` of docs/warehouse.md."""
    text = (ROOT / "docs" / "warehouse.md").read_text().partition("## Object stores")[2]
    found = re.search(r"```text\n(spark\.hadoop\..*?)```", text, re.DOTALL)
    assert found
    return found[1]


@dataclass
class InObjects(Installation):
    """An installation whose tables are objects."""

    server: ObjectServer | None = None

    def delta(self, name: str) -> DeltaTable:
        assert self.server is not None
        return DeltaTable(f"s3://{BUCKET}/warehouse/{name}", storage_options=self.server.storage_options)


@contextmanager
def in_objects(folder: Path, bootstrap: str, dsn: str, server: ObjectServer) -> Iterator[InObjects]:
    """A finalizer whose tables and checkpoint are objects; its processes have one JVM, which is configured as documented."""
    jars = folder / "jars"
    jars.mkdir()
    # In this order on the class path: so the archive of classes, which has the first, is used.
    sources = [*sorted(SPARK_JARS.glob("*.jar")), *sorted(S3_JARS.glob("*.jar"))]
    for jar in sources:
        (jars / jar.name).symlink_to(jar)
    server.write_spark_defaults(folder / "spark", documented_configuration())
    environ = {
        **server.environ,
        "SPARK_CONF_DIR": str(folder / "spark"),
        short_spark.CLASS_PATH: os.pathsep.join(map(str, sources)),
        "FINALIZER_JARS_DIR": str(jars),
        "FINALIZER_WAREHOUSE_DIR": f"s3a://{BUCKET}/warehouse",
        "FINALIZER_CHECKPOINT_DIR": f"s3a://{BUCKET}/checkpoint",
    }
    jvm = WarmJvm(folder, {**short_spark.environment(), **environ})
    try:
        yield InObjects(folder, bootstrap, dsn, environ=environ, jvm=jvm, server=server)
    finally:
        jvm.end()


def test_each_record_counts_once_in_an_object_store_after_a_death_between_merge_and_rebuild(
    tmp_path: Path, postgres: Postgres
) -> None:
    dsn = postgres.create_database(f"objects_{uuid4().hex}")
    with (
        broker_with_topics(tmp_path / "broker", [VIEWS, BEACONS, LATE, REJECTED]) as broker,
        object_server(tmp_path) as server,
        in_objects(tmp_path, broker.bootstrap, dsn, server) as installation,
    ):
        topic = Topic(broker.bootstrap, "processor")
        first = [a_view(f"view-{number}", hour=number % 3, watch_ms=number) for number in range(40)]
        raw = [RawRecord(BEACONS.name, number % 3, b"acme:%d" % number, b"\xff%d" % number) for number in range(12)]
        topic.send(first)
        topic.send_raw(raw)
        assert installation.run_once(crash_at="merged") == -signal.SIGKILL

        # Rows are replaced, so that files have deletion vectors.
        revised = [a_view(f"view-{number}", revision=2, hour=1, watch_ms=7) for number in range(0, 40, 3)]
        topic.send(revised)
        assert installation.run_once() == 0
        expect_truth(installation, newest([*first, *revised]))
        expect_raw(installation, raw)
        assert not (tmp_path / "warehouse").exists()
